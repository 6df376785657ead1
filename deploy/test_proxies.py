"""The sites for nginx, Caddy and HAProxy, each checked by its program, and all in front of a server at work."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import re
import tomllib
from pathlib import Path
from urllib.parse import urlencode

import pytest

from deploy.programs import HERE, ran, tool
from deploy.proxies import PROXIES, Proxied, in_front, proxied
from dev.lab.engines import wait_until
from dev.lab.ports import free_port
from store.crypto.keyring import KeyRing
from tests.ai.test_ai_processes import CONFIG
from tests.support.http.driver import PASSWORD
from tests.support.http.http_servers import Client, request
from tests.support.http.raw_http import EMAIL
from tests.support.http.steady_clients import HEALTH, Steady
from tests.support.http.upstream import Plan
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Server

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for localhost that it signed itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    names = str(folder / "cert.pem"), str(folder / "key.pem")
    ran(
        *(tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        *("-out", names[0], "-keyout", names[1]),
    )
    return names


@pytest.mark.parametrize("which", PROXIES)
def test_a_proxy_in_front(which: str, tmp_path: Path, certificate: tuple[str, str]) -> None:
    async def check() -> None:
        async with proxied(which, tmp_path, certificate) as found:
            session = await ids_and_addresses(found)
            await streams(found)
            await large_bodies(found, session)
            assert "Traceback" not in found.server.log

    asyncio.run(check())


@pytest.mark.parametrize("which", PROXIES)
def test_behind_a_proxy_a_server_is_replaced_and_nobody_who_reads_notices(
    which: str, tmp_path: Path, certificate: tuple[str, str]
) -> None:
    async def replace() -> None:
        port, shared = free_port(), ("--redis-url", engine.url, "--reuse-port", *QUICK)
        options = (*shared, "--base-url", f"https://localhost:{port}", "--trusted-proxies", "127.0.0.1")
        keys = {"LATCHKEY_SECRET_KEYS": KeyRing.generate(1)}
        backend = free_port()
        with contextlib.ExitStack() as servers:
            old = servers.enter_context(Server(*options, port=backend, environment=keys))
            await asyncio.to_thread(wait_until, lambda: "listening" in old.out)
            async with in_front(which, tmp_path, backend, port, certificate) as trust:
                load = Steady(port, (("GET", "/signin", {}), HEALTH), trust=trust)
                async with load.at_work():
                    await load.more(100)
                    new = servers.enter_context(Server(*options, port=backend, environment=keys))
                    await asyncio.to_thread(wait_until, lambda: "listening" in new.out)
                    await load.more(50)
                    assert await asyncio.to_thread(old.stop) == 0
                    await load.more(100)
        assert (load.lost, load.refused) == ([], 0)
        assert set(load.statuses) == {200}, (load.statuses, (tmp_path / "log").read_text())

    with valkey() as engine:
        asyncio.run(replace())


@pytest.mark.parametrize("which", PROXIES)
def test_what_meets_a_connection_that_was_just_closed_is_sent_again_where_it_only_reads(
    which: str, tmp_path: Path, certificate: tuple[str, str]
) -> None:
    async def check() -> None:
        seen: list[str] = []
        served: list[asyncio.Task[None]] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Answers the first request of a connection, and the next one by closing it."""
            served.append(asyncio.current_task())  # type: ignore[arg-type]  # a server's callback is a task
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionResetError):
                for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""):
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    seen.append(head.partition(" ")[0])
                    await reader.readexactly(4 if "Content-Length: 4" in head else 0)
                    writer.write(answer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

        async def ask(method: str, body: bytes = b"") -> int:
            opened = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="localhost")
            async with Client(*opened) as client:
                client.write(request(method, body=body))
                return (await client.answer()).status

        port = free_port()
        backend = await asyncio.start_server(serve, "127.0.0.1", 0)
        behind = backend.sockets[0].getsockname()[1]
        async with backend, in_front(which, tmp_path, behind, port, certificate) as trust:
            # HAProxy opens a new connection for the first request of a client, so that one meets none just closed.
            changed = 200 if which == "haproxy" else 502
            assert [await ask("GET"), await ask("GET"), await ask("POST", b"once")] == [200, 200, changed]
            assert [await ask("GET"), await ask("PUT", b"once")] == [200, changed]
        await asyncio.gather(*served)
        again = ["GET"] * (which != "haproxy")
        assert seen == ["GET", "GET", *again, "POST", "GET", "PUT"]

    asyncio.run(check())


async def ids_and_addresses(found: Proxied) -> str:
    """The proxy's request id is taken, its client's is not; the address is the client's, whatever that makes up.
    Returns the cookie of a session."""
    host = f"Host: localhost:{found.port}"
    made_up = ("X-Request-Id: made-up-by-the-client", "X-Forwarded-For: 203.0.113.77", "X-Real-Ip: 203.0.113.78")
    async with await found.connect("127.0.0.9") as client:
        client.write(request("GET", "/signin", host, *made_up, version="1.1").replace(b"Host: localhost\r\n", b""))
        page = await client.answer()
        assert page.status == 200
        request_id = page.fields["x-request-id"]
        assert re.fullmatch(r"[0-9a-f]{32}|[0-9a-f-]{36}", request_id), request_id
        await asyncio.to_thread(wait_until, lambda: f'"request_id":"{request_id}"' in found.server.log)
        [line] = [
            line for line in map(json.loads, found.server.log.splitlines()) if line.get("request_id") == request_id
        ]
        assert (line["request_id"], line["route"]) == (request_id, "signin")
        assert page.fields["strict-transport-security"]
        cookie = page.fields["set-cookie"].partition(";")[0]
        assert cookie.startswith("__Host-latchkey_xsrf=")
        [xsrf] = set(re.findall(rb'name="_xsrf" value="([^"]+)"', page.body))
        form = urlencode({"_xsrf": xsrf.decode(), "email": EMAIL, "password": PASSWORD}).encode()
        kind = "Content-Type: application/x-www-form-urlencoded"
        sent = request("POST", "/signin", host, kind, f"Cookie: {cookie}", *made_up, body=form)
        client.write(sent.replace(b"Host: localhost\r\n", b""))
        text = (await client.reader.readuntil(b"\r\n\r\n")).decode()
        assert " 303 " in text.partition("\r\n")[0]
        [session] = re.findall(r"(__Host-latchkey_session=[^;]+)", text)
    async with await found.connect("127.0.0.9") as client:
        sent = request("GET", "/account/security", host, f"Cookie: {session}", "Connection: close")
        client.write(sent.replace(b"Host: localhost\r\n", b""))
        page = await client.answer()
        assert page.status == 200
        assert b"127.0.0.9" in page.body
        assert b"203.0.113" not in page.body
    return str(session)


async def streams(found: Proxied) -> None:
    """A stream is passed on as it comes; its trace and its id go on to the upstream."""
    gate = asyncio.Semaphore(3)
    found.upstream.plan = Plan(gate=gate)
    question = {"model": "small", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    question["model"] = tomllib.loads(CONFIG)["upstream"][0]["models"][0]["id"]
    headers = ("Content-Type: application/json", f"Authorization: Bearer {found.token}", "tracestate: rojo=1")
    trace = f"traceparent: 00-{TRACE}-b7ad6b7169203331-01"
    async with await found.connect() as client:
        client.write(request("POST", "/api/v1/ai/messages", *headers, trace, body=json.dumps(question).encode()))
        head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 10)
        assert b" 200 " in head
        began = b""
        while began.count(b"event: ") < 3:  # what follows waits at the gate
            began += await asyncio.wait_for(client.reader.read(65_536), 10)
        assert b"message_stop" not in began
        for _ in range(100):
            gate.release()
        while b"message_stop" not in began:
            began += await asyncio.wait_for(client.reader.read(65_536), 10)
    [call] = found.upstream.calls
    assert call.request.headers["traceparent"].startswith(f"00-{TRACE}-")
    assert call.request.headers["tracestate"] == "rojo=1"
    request_id = re.findall(rb"(?i)x-request-id: (\S+)", head)[0].decode()
    assert call.request.headers["X-Request-Id"] == request_id
    await asyncio.to_thread(wait_until, lambda: f'"trace_id":"{TRACE}"' in found.server.log)
    lines = [json.loads(line) for line in found.server.log.splitlines()]
    assert [line["request_id"] for line in lines if line.get("trace_id") == TRACE] == [request_id]


async def large_bodies(found: Proxied, session: str) -> None:
    """What is far too large ends at the proxy; what Latchkey refuses, it refuses in its own words."""
    async with await found.connect() as client:
        client.write(request("POST", "/api/oauth/token", "Content-Type: application/json", body=b"x" * 100_000))
        answer = await client.answer()
        assert (answer.status, json.loads(answer.body)["error"]) == (413, "invalid_request")
    async with await found.connect() as client:
        kind = "Content-Type: multipart/form-data; boundary=b"
        client.write(request("POST", "/account/picture", kind, f"Cookie: {session}", body=b"x" * 5_000_000))
        answer = await client.answer()
        assert (answer.status, "We couldn't read the form" in html.unescape(answer.body.decode())) == (400, True)
    async with await found.connect() as client:
        client.write(request("POST", "/api/oauth/token", "Content-Type: application/json", "Content-Length: 5000000"))
        with contextlib.suppress(ConnectionError):
            client.write(b"x" * 5_000_000)
        head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 10)
        # Caddy passes the head on before it has counted. Then it is Latchkey that cuts it off, with a 400 that reaches
        # Caddy or, while that is still sending, does not.
        assert head.split(b" ")[1] in ((b"413",) if found.which == "nginx" else (b"413", b"400", b"502"))


def test_the_caddyfile_is_formatted() -> None:
    said = ran(tool("caddy"), "fmt", "--diff", str(HERE / "Caddyfile"))
    assert not [line for line in said.stdout.splitlines() if line[:1] in ("+", "-")]
    assert not re.search("^\t* +\t", (HERE / "Caddyfile").read_text(), re.MULTILINE)
