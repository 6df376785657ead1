"""Servers leave without losing requests: started ones are answered, connected clients served, and one server replaces
another. On both HTTP servers, with one process and with several."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from tornado.web import Application, RequestHandler

from dev.lab.engines import wait_until
from runtime.http.server import ACCEPTED_AT_ONCE
from runtime.listening import Listening, begin_no_more
from store.crypto.keyring import KeyRing
from tests.runtime.test_workers import freeze, open_requests, workers
from tests.support.http.http_servers import Client, request, running, statuses
from tests.support.http.raw_http import all_serve, listens, status_of
from tests.support.http.steady_clients import HEALTH, Steady, revocation
from tests.support.processes.engines import Engine, valkey
from tests.support.processes.processes import QUICK, Server, children, refused, refused_port

pytestmark = pytest.mark.slow

shapes = pytest.mark.parametrize(
    "shape",
    [
        pytest.param(("--http", which, "--workers", count), id=f"{which}, {count}")
        for which in ("fast", "tornado")
        for count in ("1", "2")
    ],
)
two_shapes = pytest.mark.parametrize(
    "shape",
    [
        pytest.param(("--http", "fast", "--workers", "1"), id="fast, 1"),
        pytest.param(("--http", "tornado", "--workers", "2"), id="tornado, 2"),
    ],
)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="SO_REUSEPORT spreads connections on Linux alone")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """A store that several servers share."""
    with valkey() as running:
        yield running


class Served(RequestHandler):
    """Answers."""

    def get(self) -> None:
        self.finish("served")


RING = KeyRing.generate(1)


def server_on(engine: Engine, *options: str, port: int = 0) -> Server:
    """A server on that store."""
    return Server("--redis-url", engine.url, *QUICK, *options, port=port, environment={"LATCHKEY_SECRET_KEYS": RING})


async def ended(server: Server) -> int:
    """The exit status of a server after SIGTERM."""
    server.process.send_signal(signal.SIGTERM)
    return await asyncio.to_thread(server.wait)


@on_linux
@pytest.mark.parametrize("count", ["1", "2"])
def test_a_server_that_fails_to_start_takes_no_connection_from_the_running_one(engine: Engine, count: str) -> None:
    async def fail() -> None:
        with server_on(engine, "--reuse-port") as old:
            load = Steady(old.ready().port)
            async with load.at_work():
                await load.more(50)
                other_keys = {"LATCHKEY_SECRET_KEYS": KeyRing.generate(2)}
                options = ("--redis-url", engine.url, "--workers", count, "--reuse-port", *QUICK)
                status, log = await asyncio.to_thread(refused, *options, port=old.port, environment=other_keys)
                assert (status, "none of the configured secret keys" in log) == (1, True)
                await load.more(100)
            assert (load.lost, load.refused) == ([], 0)

    asyncio.run(fail())


@on_linux
@shapes
def test_replacing_a_server_loses_no_request(engine: Engine, shape: tuple[str, ...]) -> None:
    async def replace() -> None:
        with server_on(engine, *shape, "--reuse-port") as old:
            load = Steady(old.ready().port, (HEALTH, await revocation(engine.url, RING, old.here)))
            async with load.at_work():
                await load.more(200)
                with server_on(engine, *shape, "--reuse-port", port=old.port) as new:
                    await asyncio.to_thread(new.ready)
                    await load.more(100)
                    assert await ended(old) == 0
                    await load.more(200)
                    assert (load.lost, load.refused) == ([], 0)
                    # And once more, without another one.
                    load.until_refused = True
                    assert await ended(new) == 0
                    said = old.log + new.log
        assert load.lost == []
        assert load.refused > 0
        assert set(load.statuses) == {200}
        assert load.last
        assert all(load.last)
        assert "Traceback" not in said
        assert "ERROR" not in said

    asyncio.run(replace())


@two_shapes
def test_waiting_connections_are_served_before_the_socket_closes(shape: tuple[str, ...]) -> None:
    with Server(*QUICK, *shape) as server:
        port = server.ready().port
        wait_until(lambda: len(children(server.process.pid)) == (3 if shape[-1] == "2" else 1))  # the store is one
        frozen = workers(server) if shape[-1] == "2" else [server.process.pid]
        for pid in frozen:
            freeze(pid)
        with open_requests(port) as waiting:
            server.process.send_signal(signal.SIGTERM)
            # The supervisor closes its own, which the frozen ones still have.
            time.sleep(0.3)
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
            assert [connection.getresponse().status for connection in waiting] == [200] * len(waiting)
            assert server.wait() == 0


@pytest.mark.parametrize("http", ["fast", "tornado"])
def test_a_long_accept_queue_is_served_before_the_socket_closes(http: str) -> None:
    async def leave() -> None:
        async with running(Application([("/", Served)], log_function=lambda handler: None), http) as server:
            listening: Any = Listening(cast(Any, None), server.server, [server.socket])
            waiting = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(ACCEPTED_AT_ONCE + 36)]
            await listening.leave(shared=False)
            for one in waiting:
                client = Client(*await asyncio.open_connection(sock=one))
                client.write(request("GET", "/", "Connection: close"))
                assert statuses(await client.rest()) == (200,)
                client.close()

    asyncio.run(leave())


@two_shapes
def test_readiness_fails_before_the_drain(shape: tuple[str, ...]) -> None:
    with Server(*QUICK, *shape, "--drain-delay", "3") as server:
        all_serve(port := server.ready().port)
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        kept.request("GET", "/signin")
        assert kept.getresponse().read()
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: {status_of(port, "/readyz") for _ in range(8)} == {503})
        # It goes on serving, and connections that were kept end with their next answer.
        assert status_of(port, "/healthz") == 200
        assert status_of(port, "/signin") == 200
        kept.request("GET", "/readyz")
        last = kept.getresponse()
        assert (last.status, last.headers["Connection"]) == (503, "close")
        assert int(last.headers["Retry-After"]) > 0
        kept.close()
        assert server.wait() == 0
        assert 3 <= time.monotonic() - began < 20
        assert not listens(port)


@pytest.mark.parametrize("count", ["1", "2"])
def test_ctrl_c_skips_the_wait_for_balancers(count: str) -> None:
    with Server(*QUICK, "--workers", count, "--drain-delay", "600") as server:
        port = server.ready().port
        assert server.stop(signal.SIGINT) == 0
        assert not listens(port)
    with Server(*QUICK, "--workers", count, "--drain-delay", "600") as server:
        all_serve(port := server.ready().port)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: {status_of(port, "/readyz") for _ in range(8)} == {503})
        assert server.stop(signal.SIGINT) == 0


def test_a_partial_head_gets_a_moment_during_the_drain() -> None:
    async def finish() -> None:
        with Server(*QUICK, "--redis-url", "memory", "--http", "fast") as server:
            port, whole = server.ready().port, request("GET", "/healthz")
            async with Client(*await asyncio.open_connection("127.0.0.1", port)) as client:
                client.write(whole[:10])
                assert [status_of(port), status_of(port)] == [200, 200]  # as in SignIn
                server.process.send_signal(signal.SIGTERM)
                while listens(port):
                    await asyncio.sleep(0.01)
                client.write(whole[10:])
                assert statuses(await client.rest()) == (200,)
            assert await asyncio.to_thread(server.wait) == 0

    asyncio.run(finish())


def test_idle_connections_do_not_delay_the_drain() -> None:
    with Server(*QUICK, "--redis-url", "memory") as server:
        kept = http.client.HTTPConnection("127.0.0.1", server.ready().port, timeout=10)
        kept.request("GET", "/healthz")
        assert kept.getresponse().read()
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 5
        kept.close()


@on_linux
def test_a_port_is_shared_only_with_servers_that_allow_it(engine: Engine) -> None:
    with server_on(engine, "--reuse-port") as server:
        port = server.ready().port
        status, log = refused(*QUICK, "--redis-url", "memory", port=port)
    assert (status, log) == (1, refused_port(port))


@on_linux
def test_a_closing_tls_socket_completes_started_handshakes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        before = socket.create_connection(listening.getsockname())
        begin_no_more(listening)
        with socket.socket() as late:
            late.settimeout(0.3)
            with pytest.raises(TimeoutError):
                late.connect(listening.getsockname())
        accepted, _ = listening.accept()
        before.sendall(b"here")
        accepted.settimeout(5)
        assert accepted.recv(10) == b"here"
        with pytest.raises(BlockingIOError):
            listening.accept()
        before.close()
        accepted.close()
