"""Configurable limits, on real processes and both HTTP servers."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import psutil
import pytest

from dev.lab.engines import wait_until
from handlers.core.site import Site
from handlers.routes import make_application
from runtime.http.plain_server import PlainServer
from runtime.http.protocols import ConnectionLimits
from runtime.http.server import HttpServer
from runtime.listening import Listening, make_server
from settings.declared import Settings
from store.crypto.keyring import KeyRing, Keys
from store.wiring import Store
from tests.support.http.driver import PASSWORD, Browser, Service
from tests.support.http.http_servers import request, statuses
from tests.support.http.raw_http import status_of
from tests.support.processes.engines import Engine, valkey
from tests.support.processes.processes import QUICK, Server, opened, shared
from tests.support.store.many_documents import connect_app, numbered, stock

both = pytest.mark.parametrize("which", ["fast", "tornado"])
TIMES = ("--idle-timeout", "1", "--head-timeout", "1", "--body-timeout", "1", "--write-timeout", "1")
MEGA = 2**20


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The module's own Valkey, which may be frozen."""
    with valkey() as made:
        yield made


def connected(port: int, stack: ExitStack, sent: bytes = b"") -> socket.socket:
    """A connection on which something was sent."""
    made = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
    made.sendall(sent)
    return made


def rest(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    received = b""
    with suppress(ConnectionError):
        while piece := connection.recv(2**16):
            received += piece
    return received


@both
def test_the_settings_bound_size_and_time_and_the_requests_at_work(which: str, engine: Engine) -> None:
    flags = ("--http", which, *TIMES, "--max-head", "4096", "--max-body", "1024", "--requests", "1", *QUICK)
    engine.empty()
    ring = KeyRing.generate(1)
    with shared(ring, "--redis-url", engine.url, *flags) as server, ExitStack() as stack:
        port = server.ready().port
        long = request("GET", "/healthz", "X-Long: " + "x" * 4100)
        assert statuses(rest(connected(port, stack, long))) == ((431,) if which == "fast" else ())
        longest = request("GET", "/healthz", "X-Long: " + "x" * 3900, "Connection: close")
        assert statuses(rest(connected(port, stack, longest))) == (200,)
        form = request("POST", "/api/oauth/revoke", "Connection: close", body=b"token=" + b"x" * 1020)
        assert statuses(rest(connected(port, stack, form))) == (413,)
        slow = [
            connected(port, stack, sent)
            for sent in (b"", b"GET /hea", request("POST", "/api/oauth/token", "Content-Length: 9") + b"x")
        ]
        began = time.monotonic()
        assert [rest(one) for one in slow] == [b""] * 3
        assert time.monotonic() - began < 8
        engine.pause()
        try:
            first = connected(port, stack, request("GET", "/readyz"))
            assert status_of(port) == 200
            second = connected(port, stack, request("GET", "/oauth/authorize", "Connection: close"))
            received = rest(second)
        finally:
            engine.resume()
        assert statuses(received) == (503,)
        assert b"\r\nRetry-After: " in received
        assert first.recv(2**16).startswith(b"HTTP/1.1 200 ")


def test_every_limit_is_a_setting(memory_store: Store) -> None:
    given = Settings(
        max_head=5000,
        max_body=6000,
        idle_timeout=7,
        head_timeout=3,
        body_timeout=9,
        write_timeout=10,
        slow_memory=2**20,
        connections=20,
        requests=11,
    )
    application = make_application(Site(memory_store, "http://localhost:8080"))
    server = make_server(application, given, 24_000)
    assert isinstance(server, HttpServer)
    assert server.limits == ConnectionLimits(
        head_bytes=5000,
        body_bytes=24_000,
        piece_bytes=65_536,
        idle_seconds=7,
        head_seconds=3,
        body_seconds=9,
        stall_seconds=10,
    )
    assert (vars(server)["_most"], vars(server)["_slow_bytes"]) == (20, 2**20)
    listening = Listening.start(application, [], given, 24_000)
    assert (listening.application.bound, listening.application.reserve) == (11, 2)
    plain = make_server(application, Settings(http="tornado", max_head=5000, idle_timeout=7, body_timeout=9), 24_000)
    assert type(plain) is PlainServer
    params = plain.conn_params
    assert (params.max_header_size, params.header_timeout, params.body_timeout, params.max_body_size) == (
        5000,
        7,
        9,
        24_000,
    )


def settled(process: psutil.Process) -> int:
    """Memory in bytes of an idle process."""
    sizes = [0]
    deadline = time.monotonic() + 20
    while len(sizes) < 6 or max(sizes[-6:]) - min(sizes[-6:]) > MEGA // 4:
        assert time.monotonic() < deadline, f"it does not come to rest: {sizes[-6:]}"
        time.sleep(0.05)
        sizes.append(process.memory_info().rss)
    return sizes[-1]


def test_slow_senders_fill_no_memory() -> None:
    """A hundred and fifty endless bodies of 1.4 MB would be 210 MB if they were kept."""
    head = request("POST", "/api/v1/ai/messages", "Content-Length: 1500000", "Content-Type: application/json")
    flags = ("--http", "fast", "--redis-url", "memory", "--slow-memory", str(8 * MEGA), *QUICK)
    with Server(*flags) as server, ExitStack() as stack:
        port = server.ready().port
        assert status_of(port) == 200
        process = psutil.Process(server.process.pid)
        rest_size = settled(process)
        for _ in range(150):
            with suppress(ConnectionError):
                connected(port, stack, head + b" " * 1_400_000)
        assert settled(process) - rest_size < 70 * MEGA
        assert status_of(port) == 200


@pytest.mark.gen_test(timeout=60)
async def test_slow_readers_of_downloads_fill_no_memory(engine: Engine) -> None:
    """Sixteen unread downloads of 5 MB would be 80 MB if they were written ahead."""
    engine.empty()
    ring = KeyRing.generate(1)
    flags = ("--http", "fast", "--redis-url", engine.url, "--downloads", "16", *QUICK)
    with shared(ring, *flags) as server, ExitStack() as stack:
        server.ready()
        async with opened(engine.url, Keys(KeyRing.parse(ring))) as store:
            service = Service(server.here, store)
            await service.add_app("web-app")
            app = await store.apps.find("web-app")
            assert app is not None
            browsers = []
            for number in range(8):
                user = await service.add_person(f"person-{number}@example.com")
                await connect_app(store, user, app)
                await stock(store, user, "web-app", numbered(50, 100_000))
                browser = Browser(server.here)
                assert (await browser.sign_in(f"person-{number}@example.com", PASSWORD)).code == 303
                browsers.append(browser)
        process = psutil.Process(server.process.pid)
        before = settled(process)
        for browser in browsers:
            cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
            for _ in range(2):
                raw = stack.enter_context(socket.socket())
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                raw.connect(("127.0.0.1", server.port))
                raw.sendall(request("GET", "/account/download?format=jsonl", f"Cookie: {cookie}"))
                assert raw.recv(12) == b"HTTP/1.1 200"
        assert settled(process) - before < 30 * MEGA
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("GET", "/account/download", headers={"Cookie": cookie})
        assert connection.getresponse().status == 503
        connection.close()
        wait_until(lambda: status_of(server.port) == 200)
