"""Slow clients on the fast HTTP server: their total buffers are bounded, and they are cut in time."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, cast

import pytest
from tornado.web import Application, RequestHandler

from runtime.http import server as server_module
from runtime.http import slow as slow_module
from runtime.http.outgoing import LEAST_TAKEN, Outgoing
from runtime.http.server import HttpServer
from runtime.http.slow import Slow
from tests.support.http.http_servers import Client, Running, request, running, until

pytestmark = [pytest.mark.gen_test(timeout=30), pytest.mark.protocol]

KILO = 2**10
MEGA = 2**20


class Taken(RequestHandler):
    """Takes a body."""

    def post(self) -> None:
        self.finish(str(len(self.request.body)))


class Large(RequestHandler):
    """Sends 30 MB, and waits for nobody."""

    def get(self) -> None:
        self.finish(b"x" * 30 * MEGA)


@pytest.fixture
def site() -> Application:
    return Application([("/taken", Taken), ("/large", Large)], log_function=lambda handler: None)


class Held:
    """Keeps what it receives, and reports when the connection was cut."""

    def __init__(self) -> None:
        self.cut = False

    def close(self) -> None:
        self.cut = True


def server_of(server: Running) -> HttpServer:
    assert isinstance(server.server, HttpServer)
    return server.server


def alive(clients: list[Client]) -> list[Client]:
    """The clients that were not cut."""
    return [client for client in clients if not client.reader.at_eof()]


async def test_at_the_limit_the_slowest_clients_are_cut_first(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(asyncio.get_running_loop(), 100)
    first, second, third = Held(), Held(), Held()
    slow.buffers(first, 40)
    slow.buffers(second, 40)
    slow.buffers(first, 50)  # it was slow before, and is no later for that
    assert (slow.total, len(slow)) == (90, 2)
    slow.buffers(third, 11)
    assert (first.cut, second.cut, third.cut) == (True, False, False)
    assert slow.total == 51
    slow.buffers(second, 0)
    slow.buffers(first, 0)
    assert (slow.total, len(slow)) == (11, 1)
    slow.buffers(third, 1000)
    assert (third.cut, slow.total, len(slow)) == (True, 0, 0)


async def test_newly_slow_clients_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, one = Slow(asyncio.get_running_loop(), 100), Held()
    slow.buffers(one, 1)
    slow.make_room(5)
    assert not one.cut
    monkeypatch.setattr(slow_module, "PATIENCE", 0.0)
    slow.make_room(5)
    assert one.cut


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        pytest.param(request("POST", "/taken", "Content-Length: 100001"), b"x" * 100_000, id="a body"),
        pytest.param(
            request("POST", "/taken", "Transfer-Encoding: chunked"), b"186a1\r\n" + b"x" * 100_000, id="a chunk"
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"x" * 60_000, id="a head"),
    ],
)
async def test_buffered_requests_are_bounded_in_total(head: bytes, piece: bytes, site: Application) -> None:
    async with running(site, slow_bytes=MEGA) as server, AsyncExitStack() as stack:
        slow = server_of(server).slow
        clients = []

        def counted(number: int) -> bool:
            return slow.total >= min(number * 60_000, 900 * KILO)

        for number in range(1, 41):
            client = await stack.enter_async_context(await server.connect())
            client.write(head + piece)
            clients.append(client)
            await until(partial(counted, number))
            assert slow.total <= MEGA
        await until(lambda: len(alive(clients)) == len(slow))
        kept = alive(clients)
        assert 9 <= len(kept) <= 17
        assert kept == clients[-len(kept) :], "the last to come are left"
        if b"POST" in head:
            for client in kept:
                client.write(b"y" if b"Length" in head else b"y\r\n0\r\n\r\n")
                assert (await client.answer()).body == b"100001"
        else:
            for client in kept:
                client.write(b"\r\n\r\n")
                assert (await client.answer()).status == 404
        assert (slow.total, len(slow)) == (0, 0)


async def test_buffered_answers_are_bounded_in_total(site: Application) -> None:
    async with running(site, slow_bytes=64 * MEGA) as server, AsyncExitStack() as stack:
        slow = server_of(server).slow
        clients = []
        for number in range(1, 7):
            client = await stack.enter_async_context(await server.connect())
            client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # nothing is taken
            client.write(request("GET", "/large"))
            clients.append(client)
            await until(lambda number=number: len(slow) == min(number, 2))  # type: ignore[misc]  # as above
            assert slow.total <= 64 * MEGA
        # Two of 30 MB are what there is room for.
        for client in clients[-2:]:
            client.reader._transport.resume_reading()  # type: ignore[attr-defined]  # asyncio hides it
        for client in clients[-2:]:
            assert len((await client.answer()).body) == 30 * MEGA
        assert (slow.total, len(slow)) == (0, 0)


async def test_data_sent_ahead_of_an_unread_answer_counts(site: Application) -> None:
    async with running(site) as server, await server.connect() as client:
        slow = server_of(server).slow
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # nothing is taken
        client.write(request("GET", "/large"))
        await until(lambda: slow.total > 0)
        answer = slow.total
        client.write(b"x" * 200 * KILO)
        await until(lambda: slow.total >= answer + 60 * KILO)
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]  # asyncio hides it
        assert len((await client.answer()).body) == 30 * MEGA
        assert (await client.answer()).status == 414
        await until(lambda: (slow.total, len(slow)) == (0, 0))


async def test_a_client_reading_byte_by_byte_is_cut(site: Application) -> None:
    """A few bytes now and then are not enough: that client's buffers would be held for hours."""
    async with running(site, stall_timeout=0.3) as server:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KILO)
        raw.setblocking(False)
        loop = asyncio.get_running_loop()
        with raw:
            await loop.sock_connect(raw, ("127.0.0.1", server.port))
            await loop.sock_sendall(raw, request("GET", "/large"))
            await until(lambda: len(server_of(server).slow) == 1)
            taken = 0
            with suppress(ConnectionError):
                while server_of(server).slow.total:
                    taken += len(await loop.sock_recv(raw, 100))
                    await asyncio.sleep(0.01)
            assert 0 < taken < MEGA
        await until(lambda: not vars(server.server)["_open"])


class Half:
    """A transport whose client reads what the test says. The kernel takes a megabyte at a time, or nothing."""

    def __init__(self) -> None:
        self.left = 0
        self.cut = False

    def write(self, data: bytes) -> None:
        self.left += len(data)

    def get_write_buffer_size(self) -> int:
        return self.left

    def is_closing(self) -> bool:
        return self.cut

    def abort(self) -> None:
        self.cut = True


@pytest.mark.parametrize(("taken", "cut"), [(LEAST_TAKEN - 1, True), (LEAST_TAKEN, False)])
async def test_a_client_must_read_a_minimum_in_its_time(taken: int, cut: bool) -> None:
    loop, transport = asyncio.get_running_loop(), Half()
    outgoing = Outgoing(loop, Slow(loop, 30 * MEGA), 0.05)
    outgoing._transport = cast(asyncio.Transport, transport)
    outgoing.send(b"x" * MEGA)
    outgoing.pause_writing()
    first = outgoing._stall
    transport.left -= taken
    await until(lambda: outgoing._stall is not first)
    assert transport.cut is cut
    outgoing.connection_lost(None)


async def test_a_client_that_reads_enough_is_not_cut(site: Application) -> None:
    async with running(site, stall_timeout=0.1) as server, await server.connect() as client:
        client.write(request("GET", "/large"))
        await client.reader.readuntil(b"\r\n\r\n")
        left = 30 * MEGA
        while left:
            piece = await client.reader.read(256 * KILO)
            assert piece, "it was cut"
            left -= len(piece)
            await asyncio.sleep(0.002)


async def test_slow_clients_lose_their_connections(site: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an idle connection among them, long-slow clients make room for new ones."""
    monkeypatch.setattr(slow_module, "PATIENCE", 0.1)
    monkeypatch.setattr(server_module, "RETRY_SECONDS", 0.02)
    async with running(site, connections=4) as server, AsyncExitStack() as stack:
        for _ in range(4):
            slow = await stack.enter_async_context(await server.connect())
            slow.write(request("POST", "/taken", "Content-Length: 10") + b"x")
        await until(lambda: len(server_of(server).slow) == 4)
        newcomer: Any = await stack.enter_async_context(await server.connect())
        newcomer.write(request("POST", "/taken", body=b"xx"))
        assert (await newcomer.answer()).body == b"2"
