"""Assertions at a server of two processes on Valkey: one counts once, and a reload ends the trust in both."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets

from store.crypto.keyring import KeyRing
from tests.oauth.assertions.identity_provider import IdentityProvider, present
from tests.support.http.driver import Service, json_of
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Pair, Server, driven

FILE = """
[[issuer]]
issuer = "{issuer}"
domains = ["example.com"]
clients = ["web-1", "web-2", "web-3"]
[issuer.resources]
"{ours}" = ["profile", "data:read"]
"""
pytestmark = pytest.mark.gen_test(timeout=60)


class Company(NamedTuple):
    """A server of two processes, the file that it reads, and the socket of the identity provider in it."""

    two: Pair
    file: Path
    listening: socket.socket


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    [listening], [free] = bind_sockets(0, "127.0.0.1"), bind_sockets(0, "127.0.0.1")
    port, ring = free.getsockname()[1], KeyRing.generate(1)
    free.close()
    file = tmp_path_factory.mktemp("company") / "issuers.toml"
    issuer = f"http://127.0.0.1:{listening.getsockname()[1]}"
    file.write_text(FILE.format(issuer=issuer, ours=f"http://localhost:{port}"))
    with valkey() as engine:
        options = ("--redis-url", engine.url, "--workers", "2", "--assertion-issuers", str(file), *QUICK)
        with Server(*options, port=port, environment={"LATCHKEY_SECRET_KEYS": ring}) as server:
            server.ready()
            yield Company(Pair(engine, ring, (server, server)), file, listening)
    listening.close()


@pytest.fixture
def service(io_loop: IOLoop, company: Company) -> Iterator[Service]:
    with driven(io_loop, company.two) as made:
        yield made


@pytest.fixture
def provider(io_loop: IOLoop, company: Company) -> Iterator[IdentityProvider]:
    async def make() -> IdentityProvider:
        return IdentityProvider(company.two.servers[0].url, company.listening.dup())

    made = io_loop.run_sync(make)
    yield made
    io_loop.run_sync(made.close)


async def test_of_forty_requests_with_one_assertion_one_succeeds(
    service: Service, company: Company, provider: IdentityProvider
) -> None:
    app = service.web.client_id
    text = provider.assertion(app, email=company.two.email)
    answers = await asyncio.gather(*(present(service.web, text) for _ in range(40)))
    assert Counter(answer.code for answer in answers) == {200: 1, 400: 39}
    assert {json_of(answer)["error"] for answer in answers if answer.code == 400} == {"invalid_grant"}
    assert provider.asked.count("/keys") == 2, "each process fetched the keys, once"


async def test_a_reload_ends_the_trust_in_each_process_and_a_mistake_changes_nothing(
    service: Service, company: Company, provider: IdentityProvider
) -> None:
    app, right, server = service.web.client_id, company.file.read_text(), company.two.servers[0]

    async def answers() -> set[int]:
        texts = [provider.assertion(app, email=company.two.email) for _ in range(20)]
        return {answer.code for answer in await asyncio.gather(*(present(service.web, text) for text in texts))}

    async def reload(text: str, codes: set[int]) -> None:
        company.file.write_text(text)
        server.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(20):
            while await answers() != codes:
                await asyncio.sleep(0.05)

    assert await answers() == {200}
    await reload(right.replace("example.com", "example.org"), {400})
    await reload(right, {200})
    company.file.write_text(right.replace("profile", "openid"))
    server.process.send_signal(signal.SIGHUP)
    async with asyncio.timeout(20):
        while "reload failed" not in server.log:
            await asyncio.sleep(0.05)
    assert await answers() == {200}
    company.file.write_text(right)
