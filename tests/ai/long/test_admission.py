"""The sender of a long request is admitted before its body is read, on both HTTP servers."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from handlers.core.application import Latchkey
from handlers.core.long.bodies import LONG_REQUEST
from handlers.core.site import Site
from store import keys
from store.lifetimes import AI
from tests.ai.long.kit import LONG_TEXT, MOST, bodies_of, helper, long_question, site
from tests.ai.openai.kit import CHAT, CLAUDE, RESPONSES, chat
from tests.support.http.driver import Service
from tests.support.http.http_servers import HTTP_SERVERS, Answer, Client, running, statuses, until
from tests.support.http.upstream import Plan, ScriptedUpstream
from tests.support.store.ai_spender import NATIVE, SDK, Spender, at_rest, reached

pytestmark = pytest.mark.gen_test(timeout=60)
__all__ = ["helper", "site"]

both_servers = pytest.mark.parametrize("http", HTTP_SERVERS)
BODY = json.dumps(long_question()).encode()


@asynccontextmanager
async def connection(app: Latchkey, http: str, **options: Any) -> AsyncIterator[Client]:
    """A connection to the service on this HTTP server."""
    async with running(app, http, max_body_size=2 * LONG_REQUEST, **options) as server, await server.connect() as made:
        yield made


def head(path: str, token: str, *framing: str) -> bytes:
    """The head of a call."""
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}", *framing)
    return "\r\n".join((*lines, "Content-Type: application/json", "", "")).encode()


def sized(length: int) -> str:
    """The framing of a body of this length."""
    return f"Content-Length: {length}"


def chunk(piece: bytes) -> bytes:
    """A chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


CHUNKED = "Transfer-Encoding: chunked"


def kind_of(answer: Answer) -> str:
    """The type in the error of either dialect."""
    kind: str = json.loads(answer.body)["error"]["type"]
    return kind


@both_servers
@pytest.mark.parametrize(
    ("path", "kind"), [(SDK, "authentication_error"), (CHAT, "authentication_error"), (f"{SDK}/count_tokens", "")]
)
async def test_a_stranger_sends_no_body(service: Service, app: Latchkey, http: str, path: str, kind: str) -> None:
    async with connection(app, http) as client:
        client.write(head(path, "lk_at_forged", sized(MOST)))
        answer = await client.answer()
    assert (answer.status, kind_of(answer)) == (401, kind or "authentication_error")
    assert app.in_flight == 0


@both_servers
@pytest.mark.parametrize("length", [MOST + 1, 2**45])
async def test_a_body_beyond_the_limit_is_refused_by_its_length(
    service: Service, app: Latchkey, http: str, length: int
) -> None:
    async with connection(app, http) as client:
        client.write(head(SDK, "any", sized(length)))
        answer = await client.answer()
    assert (answer.status, kind_of(answer)) == (413, "request_too_large")


@both_servers
async def test_a_full_memory_refuses_before_the_body_and_the_window(
    service: Service, site: Site, app: Latchkey, http: str
) -> None:
    spender, memory = await Spender.make(service), site.long_bodies.memory
    rooms = [memory.take(f"person {number}", MOST) for number in range(3)]
    rooms.append(memory.take("the last", MOST - len(BODY) + 1))
    for path, kind in ((SDK, "api_error"), (CHAT, "server_error"), (RESPONSES, "server_error")):
        async with connection(app, http) as client:
            client.write(head(path, spender.token, sized(len(BODY))))
            answer = await client.answer()
        assert (answer.status, kind_of(answer)) == (503, kind)
        assert 1 <= int(answer.fields["retry-after"]) <= 3
    assert await service.store.client.exists(keys.limit(spender.user, "ai")) == 0
    rooms[0].resize(0)
    async with connection(app, http) as client:
        client.write(head(SDK, spender.token, sized(len(BODY))) + BODY)
        assert (await client.answer()).status == 200
    for room in rooms[1:]:
        room.resize(0)


@both_servers
async def test_a_full_window_refuses_before_the_body(service: Service, app: Latchkey, http: str) -> None:
    spender = await Spender.make(service)
    for _ in range(AI.limit):
        await spender.ask(b"{}")
    async with connection(app, http) as client:
        client.write(head(NATIVE, spender.token, sized(len(BODY))))
        answer = await client.answer()
    assert (answer.status, answer.fields["x-ratelimit-remaining"]) == (429, "0")


@both_servers
async def test_a_long_body_counts_once(service: Service, app: Latchkey, http: str) -> None:
    spender = await Spender.make(service)
    async with connection(app, http) as client:
        client.write(head(SDK, spender.token, sized(len(BODY)), "Expect: 100-continue"))
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        client.write(BODY)
        answer = await client.answer()
        assert (answer.status, answer.fields["x-ratelimit-remaining"]) == (200, str(AI.limit - 1))
        client.write(head(SDK, spender.token, sized(len(BODY))) + BODY)
        assert (await client.answer()).status == 200, "the connection stays"
    await at_rest(app)
    assert (app.in_flight, len(await spender.charged())) == (0, 2)


@both_servers
async def test_a_client_that_leaves_gives_its_memory_back(
    service: Service, site: Site, app: Latchkey, http: str
) -> None:
    spender, memory = await Spender.make(service), site.long_bodies.memory
    async with connection(app, http) as client:
        client.write(head(SDK, spender.token, sized(len(BODY))) + BODY[:100_000])
        await until(lambda: memory.taken == len(BODY))
    await until(lambda: (memory.taken, app.in_flight, app.bound) == (0, 0, app.most))


@both_servers
async def test_a_slow_body_gives_its_memory_back(service: Service, site: Site, app: Latchkey, http: str) -> None:
    spender, memory = await Spender.make(service), site.long_bodies.memory
    async with connection(app, http, body_timeout=0.5) as client:
        client.write(head(SDK, spender.token, sized(len(BODY))) + BODY[:100_000])
        assert await client.rest() == b""
        await until(lambda: (memory.taken, app.in_flight) == (0, 0))


async def test_a_body_without_a_file_gives_its_memory_back(
    service: Service, site: Site, app: Latchkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_file(*options: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    spender = await Spender.make(service)
    monkeypatch.setattr(os, "memfd_create", no_file)
    answer = await spender.ask(BODY, SDK)
    assert (answer.code, site.long_bodies.memory.taken) == (503, 0)
    monkeypatch.undo()
    assert (await spender.ask(BODY, SDK)).code == 200


@both_servers
async def test_memory_is_taken_until_the_call_ends(
    service: Service, site: Site, app: Latchkey, upstream: ScriptedUpstream, http: str
) -> None:
    spender, memory = await Spender.make(service), site.long_bodies.memory
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(gate=gate)
    async with connection(app, http) as client:
        client.write(head(SDK, spender.token, sized(2 * len(BODY))) + BODY.ljust(2 * len(BODY)))
        await until(lambda: bool(upstream.calls))
        assert LONG_REQUEST < memory.taken <= len(BODY), "without the white space"
        gate.release()
        assert (await client.answer()).status == 200
    await until(lambda: memory.taken == 0)
    await reached(upstream, 1)


@both_servers
async def test_chunks_become_a_long_body(service: Service, site: Site, app: Latchkey, http: str) -> None:
    spender, memory = await Spender.make(service), site.long_bodies.memory
    body = json.dumps(chat(LONG_TEXT, CLAUDE)).encode()
    async with connection(app, http) as client:
        client.write(head(CHAT, spender.token, CHUNKED) + chunk(body[:1000]) + chunk(body[1000:LONG_REQUEST]))
        client.write(b"10000\r\n" + body[LONG_REQUEST : LONG_REQUEST + 2**16] + b"\r\n")
        await until(lambda: memory.taken == MOST)
        client.write(chunk(body[LONG_REQUEST + 2**16 :]) + b"0\r\n\r\n")
        answer = await client.answer()
    assert answer.status == 200, answer.body
    await until(lambda: memory.taken == 0)


@both_servers
async def test_chunks_of_strangers_and_too_many_are_refused(
    service: Service, site: Site, app: Latchkey, http: str
) -> None:
    spender = await Spender.make(service)
    for token, pieces, status in (("forged", 2, 401), (spender.token, MOST // LONG_REQUEST, 413)):
        async with connection(app, http) as client:
            client.write(head(CHAT, token, CHUNKED))
            for _ in range(pieces):
                client.write(chunk(b" " * LONG_REQUEST))
            client.write(chunk(b" "))
            # Tornado's server may cut a client that still sends before it reads the answer.
            assert statuses(await client.rest()) in ([(status,)] if http == "fast" else [(status,), ()])
    await until(lambda: (site.long_bodies.memory.taken, app.in_flight) == (0, 0))


@both_servers
async def test_other_long_bodies_are_not_read(service: Service, app: Latchkey, http: str) -> None:
    async with connection(app, http) as client:
        client.write(head("/api/oauth/token", "any", sized(MOST)))
        assert (await client.answer()).status == 400


async def test_one_person_leaves_room_for_others(service: Service, site: Site, app: Latchkey) -> None:
    spender, memory = await Spender.make(service), site.long_bodies.memory
    first = memory.take(spender.user, MOST)
    second = memory.take("another", MOST)
    answer = await spender.ask(BODY.ljust(MOST), SDK)
    assert (answer.code, memory.taken) == (429, 2 * MOST)
    first.resize(0)
    assert (await spender.ask(BODY.ljust(MOST), SDK)).code == 200
    second.resize(0)


async def test_the_memory_of_slow_clients_does_not_count_long_bodies(service: Service, app: Latchkey) -> None:
    spender = await Spender.make(service)
    async with connection(app, "fast", slow_bytes=2**18) as client:
        client.write(head(SDK, spender.token, sized(len(BODY))) + BODY[:LONG_REQUEST])
        await until(lambda: bodies_of(os.getpid()) == LONG_REQUEST)
        client.write(BODY[LONG_REQUEST:])
        assert (await client.answer()).status == 200
