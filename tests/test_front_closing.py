"""Clients that hang up, do not read, or do not send, and the ends of connections, on the fast HTTP server."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tornado.test
from tornado.iostream import StreamClosedError
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler, stream_request_body

import front.server
from front import FrontServer
from front.files import room_for
from serving import event_loop
from tests.fronts import SECONDS, Client, joined, request, running, statuses, until, within

both = pytest.mark.parametrize("front", ["fast", "tornado"])
MEGABYTE = b"x" * 2**20


class Notes:
    """What happened in the application."""

    def __init__(self) -> None:
        self.begun = 0
        self.closed = 0
        self.written = 0
        self.raised: BaseException | None = None
        self.go_on = asyncio.Event()


class Noting(RequestHandler):
    """Tells of a client that is gone."""

    @property
    def notes(self) -> Notes:
        found: Notes = self.application.settings["notes"]
        return found

    def on_connection_close(self) -> None:
        super().on_connection_close()
        self.notes.closed += 1

    async def said(self, piece: bytes | str) -> None:
        """Writes, and notes it."""
        self.write(piece)
        try:
            await self.flush()
        except StreamClosedError as error:
            self.notes.raised = error
            raise
        self.notes.written += len(piece)


class Held(Noting):
    """Answers when it may go on."""

    async def get(self) -> None:
        self.notes.begun += 1
        await self.notes.go_on.wait()
        await self.said("done")

    post = get


class Begun(Noting):
    """Says something, waits, and says something more."""

    async def get(self) -> None:
        await self.said("begun")
        await self.notes.go_on.wait()
        await self.said("done")


class Endless(Noting):
    """Sends 20 MB, which no buffer between the two takes."""

    async def get(self) -> None:
        for _ in range(20):
            await self.said(MEGABYTE)


class Large(Noting):
    """Sends 20 MB, and waits for nobody."""

    def get(self) -> None:
        self.finish(MEGABYTE * 20)
        self.notes.written += 1


class Cutting(Noting):
    """Cuts the connection in the middle of the answer."""

    async def get(self) -> None:
        connection: Any = self.request.connection
        await self.said("half")
        connection.stream.close()
        assert connection.stream.closed()
        await self.said("an answer")


@stream_request_body
class Taking(Noting):
    """Takes a body, a piece at a time, when it may go on."""

    async def data_received(self, chunk: bytes) -> None:
        self.notes.begun += 1
        self.notes.written += len(chunk)
        await self.notes.go_on.wait()

    def post(self) -> None:
        self.finish("taken")


@stream_request_body
class Preparing(Noting):
    """Takes its time before it takes a body."""

    async def prepare(self) -> None:
        await self.notes.go_on.wait()

    def data_received(self, chunk: bytes) -> None:
        """Passes it over."""

    def post(self) -> None:
        self.finish("taken")


class Detaching(Noting):
    """Asks for what there is not."""

    def get(self) -> None:
        with pytest.raises(NotImplementedError):
            self.request.connection.detach()
        self.finish(f"{self.request.protocol} {self.request.remote_ip} {self.request.get_ssl_certificate()}")


@pytest.fixture
def notes(io_loop: Any) -> Iterator[Notes]:
    notes = Notes()
    yield notes
    notes.go_on.set()  # what still waits ends with the test, and not when its loop is collected
    io_loop.run_sync(lambda: asyncio.sleep(0.01))


@pytest.fixture
def site(notes: Notes) -> Application:
    handlers = [Held, Begun, Endless, Large, Cutting, Taking, Preparing, Detaching]
    return Application(
        [(f"/{handler.__name__.lower()}", handler) for handler in handlers],
        notes=notes,
        log_function=lambda handler: None,
    )


async def settled(client: Client) -> int:
    """What the client still has to send when nothing moves any more, in bytes."""
    sizes = [-1]
    while len(sizes) < 20 or len(set(sizes[-20:])) > 1:
        sizes.append(client.writer.transport.get_write_buffer_size())
        await asyncio.sleep(0.001)
    return sizes[-1]


@pytest.mark.gen_test
@pytest.mark.parametrize("target", ["/held", "/begun"])
@pytest.mark.parametrize(
    ("front", "ahead"),
    [
        pytest.param("fast", b"", id="fast"),
        pytest.param("tornado", b"", id="tornado"),
        pytest.param("fast", request("GET", "/held"), id="fast, with a request behind it"),
    ],
)
async def test_a_handler_learns_at_once_that_its_client_is_gone(
    front: str, target: str, ahead: bytes, site: Application, notes: Notes
) -> None:
    async with running(site, front) as server:
        async with await server.connect() as client:
            client.write(request("GET", target) + ahead)
            await until(lambda: bool(notes.begun or notes.written))
        await until(lambda: notes.closed == 1)
        notes.go_on.set()
        await until(lambda: notes.raised is not None)
    assert notes.closed == 1


@pytest.mark.gen_test
@pytest.mark.parametrize("handler_first", [True, False])
async def test_a_reset_is_an_end_like_another(
    handler_first: bool, site: Application, notes: Notes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(site) as server:
        async with await server.connect() as client:
            client.write(request("GET", "/begun"))
            await until(lambda: notes.written > 0)
            raw = client.writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.writer.transport.abort()
            if handler_first:  # it writes on while the reset is on its way
                notes.go_on.set()
        await until(lambda: not vars(server.server)["_open"])
        assert notes.closed == 1 or handler_first
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.gen_test
@both
async def test_a_handler_that_receives_a_body_learns_it_too(front: str, site: Application, notes: Notes) -> None:
    notes.go_on.set()
    async with running(site, front) as server:
        async with await server.connect() as client:
            client.write(request("POST", "/taking", "Content-Length: 100") + b"x")
            await until(lambda: notes.begun == 1)
        await until(lambda: notes.closed == 1)


@pytest.mark.gen_test
@both
async def test_nobody_is_told_when_a_client_leaves_between_requests(
    front: str, site: Application, notes: Notes
) -> None:
    notes.go_on.set()
    async with running(site, front) as server:
        async with await server.connect() as client:
            client.write(request("GET", "/held"))
            assert (await client.answer()).body == b"done"
        async with await server.connect() as client:
            client.write(b"GET /held HTT")
    assert notes.closed == 0


@pytest.mark.gen_test
@both
async def test_a_client_that_does_not_read_stops_the_handler(front: str, site: Application, notes: Notes) -> None:
    async with running(site, front) as server, await server.connect() as client:
        client.reader._limit = 2**16  # type: ignore[attr-defined]  # what the client's own side takes
        client.write(request("GET", "/endless"))
        await until(lambda: notes.written > 0)
        await settled(client)
        stopped = notes.written
        assert stopped < 20 * len(MEGABYTE)
        await client.reader.readuntil(b"\r\n\r\n")
        assert sum(map(len, await client.chunks())) == 20 * len(MEGABYTE)
    assert notes.raised is None


@pytest.mark.gen_test
async def test_a_handler_that_waits_for_its_reader_learns_that_it_is_gone(site: Application, notes: Notes) -> None:
    async with running(site) as server:
        async with await server.connect() as client:
            client.write(request("GET", "/endless"))
            await until(lambda: notes.written > 0)
            await settled(client)
            client.writer.transport.abort()
        await until(lambda: notes.raised is not None)
    assert notes.closed == 1


@pytest.mark.gen_test
async def test_a_client_that_takes_nothing_is_cut(site: Application, notes: Notes) -> None:
    async with running(site, stall_timeout=0.1) as server, await server.connect() as client:
        client.write(request("GET", "/endless"))
        await until(lambda: notes.raised is not None)
    assert notes.closed == 1


@pytest.mark.gen_test
@pytest.mark.parametrize("fields", [(), ("Connection: close",)], ids=["kept", "to be closed"])
async def test_a_client_that_takes_nothing_of_a_complete_answer_is_cut(
    fields: tuple[str, ...], site: Application, notes: Notes
) -> None:
    async with running(site, stall_timeout=0.1) as server, await server.connect() as client:
        client.write(request("GET", "/large", *fields))
        await until(lambda: notes.written > 0)
        await until(lambda: not vars(server.server)["_open"])
        assert len(await client.rest()) < 20 * len(MEGABYTE)


@pytest.mark.gen_test
async def test_an_application_that_does_not_take_a_body_stops_its_sender(site: Application, notes: Notes) -> None:
    async with running(site, max_body_size=2**30) as server, await server.connect() as client:
        client.write(request("POST", "/taking", "Content-Length: 50000000") + b"x" * 50_000_000)
        await until(lambda: notes.begun == 1)
        assert await settled(client) > 10_000_000
        assert notes.written <= 65_536
        notes.go_on.set()
        assert (await client.answer()).body == b"taken"
    assert notes.written == 50_000_000


@pytest.mark.gen_test
async def test_a_client_that_sends_ahead_is_not_read_for_ever(site: Application, notes: Notes) -> None:
    async with running(site) as server, await server.connect() as client:
        client.write(joined([request("GET", "/held")] * 1_000_000))
        await until(lambda: notes.begun == 1)
        assert await settled(client) > 10_000_000
        assert notes.begun == 1
        client.writer.transport.abort()


@pytest.mark.gen_test
async def test_the_next_request_waits_until_the_answer_before_it_is_taken(site: Application, notes: Notes) -> None:
    async with running(site) as server, await server.connect() as client:
        client.write(request("GET", "/large") * 2)
        await until(lambda: notes.written > 0)
        assert await settled(client) == 0
        assert notes.written == 1
        for _ in range(2):
            assert len((await client.answer()).body) == 20 * len(MEGABYTE)


@pytest.mark.gen_test
@both
async def test_a_handler_may_cut_its_answer(front: str, site: Application, notes: Notes) -> None:
    async with running(site, front) as server:
        received = await server.ask(request("GET", "/cutting"))
        await until(lambda: notes.raised is not None)
    assert received.endswith(b"4\r\nhalf\r\n")


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("sent", "options"),
    [
        pytest.param(b"", {"idle_connection_timeout": 0.05}, id="nothing"),
        pytest.param(b"GET / HT", {"idle_connection_timeout": 0.05}, id="half a head"),
        pytest.param(b"GET / HT", {"head_timeout": 0.05}, id="half a head, with a limit of its own"),
        pytest.param(b"\r\n", {"head_timeout": 0.05}, id="a blank line"),
        pytest.param(request("POST", "/taking", "Content-Length: 9"), {"body_timeout": 0.05}, id="no body"),
        pytest.param(
            request("POST", "/taking", "Transfer-Encoding: chunked") + b"1\r\nx",
            {"body_timeout": 0.05},
            id="half a body",
        ),
    ],
)
async def test_who_does_not_send_is_cut(sent: bytes, options: dict[str, float], site: Application) -> None:
    async with running(site, **options) as server:
        assert await server.ask(sent) == b""


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(request("GET", "/held"), id="without a body"),
        pytest.param(request("POST", "/held", body=b"x"), id="with a body"),
        pytest.param(request("POST", "/preparing", body=b"x"), id="before its body is taken"),
    ],
)
async def test_no_limit_of_a_connection_counts_while_a_request_is_at_work(
    sent: bytes, site: Application, notes: Notes
) -> None:
    limits = {"idle_connection_timeout": 0.05, "head_timeout": 0.05, "body_timeout": 0.05, "stall_timeout": 0.05}
    async with running(site, **limits) as server, await server.connect() as client:
        client.write(sent)
        asyncio.get_running_loop().call_later(0.2, notes.go_on.set)
        assert (await client.answer()).status == 200


@pytest.mark.gen_test
async def test_idle_connections_make_room_at_the_bound(site: Application, notes: Notes) -> None:
    notes.go_on.set()
    async with running(site, connections=3) as server:
        clients = [await server.connect() for _ in range(3)]
        for client in clients:
            client.write(request("GET", "/held"))
            await client.answer()
        async with await server.connect() as newcomer:
            newcomer.write(request("GET", "/held"))
            assert (await newcomer.answer()).body == b"done"
        await until(lambda: any(client.reader.at_eof() for client in clients))
        kept = [client for client in clients if not client.reader.at_eof()]
        assert len(kept) == 2
        for client in kept:
            client.write(request("GET", "/held"))
            assert (await client.answer()).body == b"done"
        for client in clients:
            client.close()


@pytest.mark.gen_test
async def test_who_comes_when_all_are_at_work_waits(site: Application, notes: Notes) -> None:
    async with running(site, connections=1) as server, await server.connect() as first:
        first.write(request("GET", "/held", "Connection: close"))
        await until(lambda: notes.begun == 1)
        async with await server.connect() as second:
            second.write(request("GET", "/held"))
            await settled(second)
            assert notes.begun == 1
            notes.go_on.set()
            assert (await first.answer()).body == b"done"
            assert (await second.answer()).body == b"done"


@pytest.mark.gen_test
async def test_who_waits_takes_the_place_of_one_that_has_become_idle(site: Application, notes: Notes) -> None:
    async with running(site, connections=1) as server, await server.connect() as first:
        first.write(request("GET", "/held"))
        await until(lambda: notes.begun == 1)
        async with await server.connect() as second:
            second.write(request("GET", "/held"))
            await settled(second)
            assert notes.begun == 1
            notes.go_on.set()
            assert (await first.answer()).body == b"done"
            assert (await second.answer()).body == b"done"
            assert await first.rest() == b""


@pytest.fixture
def no_more_files() -> Iterator[Any]:
    """Calling it leaves the process no file to open; calling what it returns ends that."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def forbid() -> Any:
        os.close(free := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, before)

    yield forbid
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.gen_test
async def test_without_a_file_to_open_it_waits_for_one(
    site: Application,
    notes: Notes,
    no_more_files: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(front.server, "RETRY_SECONDS", 0.01)
    notes.go_on.set()
    async with running(site) as server:
        asking = socket.socket()
        asking.setblocking(False)
        allow = no_more_files()
        await asyncio.get_running_loop().sock_connect(asking, ("127.0.0.1", server.port))
        await until(lambda: "Cannot accept" in caplog.text)
        allow()
        client = Client(*await asyncio.open_connection(sock=asking))
        client.write(request("GET", "/held", "Connection: close"))
        assert (await client.answer()).body == b"done"
        client.close()


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be(no_more_files: Any) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert room_for(10, 20) == 10
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    assert room_for(soft + 5, 20) == min(soft + 5, hard - 20)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(soft + 25, hard), hard)
    assert room_for(hard, 20) == hard - 20


@pytest.mark.gen_test
async def test_after_stop_an_answer_ends_its_connection(site: Application, notes: Notes) -> None:
    async with running(site) as server, await server.connect() as client:
        client.write(request("GET", "/held"))
        await until(lambda: notes.begun == 1)
        server.server.stop()
        notes.go_on.set()
        assert (await client.answer()).body == b"done"
        client.write(request("GET", "/held"))
        last = await client.rest()
        assert statuses(last) == (200,)
        assert b"Connection: close" in last
        with pytest.raises(ConnectionRefusedError):
            await server.connect()


@pytest.mark.gen_test
@both
async def test_closing_all_cuts_what_is_at_work(front: str, site: Application, notes: Notes) -> None:
    async with running(site, front) as server, await server.connect() as idle, await server.connect() as client:
        client.write(request("GET", "/begun"))
        await until(lambda: notes.written > 0)
        await server.server.close_all_connections()
        await until(lambda: notes.closed == 1)
        assert not (await client.rest()).endswith(b"0\r\n\r\n")
        assert await idle.rest() == b""


@pytest.mark.gen_test
async def test_closing_all_lets_a_complete_answer_arrive(site: Application, notes: Notes) -> None:
    async with running(site) as server, await server.connect() as client:
        client.write(request("GET", "/large"))
        await until(lambda: notes.written > 0)
        assert await settled(client) == 0
        closing = asyncio.ensure_future(server.server.close_all_connections())
        assert len((await client.answer()).body) == 20 * len(MEGABYTE)
        assert await client.rest() == b""
        await within(closing)


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("new_loop", {asyncio.new_event_loop, event_loop.new_event_loop})
def test_who_connects_while_it_ends_does_not_keep_it(
    new_loop: Callable[[], asyncio.AbstractEventLoop], tls: bool, turns: int, site: Application
) -> None:
    async def end() -> None:
        server = FrontServer(site, ssl_options=server_tls() if tls else None)
        listening, port = bind_unused_port()
        server.add_socket(listening)
        with socket.create_connection(("127.0.0.1", port)):
            for _ in range(turns):  # of the loop: what was accepted becomes a connection in some of them
                await asyncio.sleep(0)
            server.stop()
            async with asyncio.timeout(SECONDS):  # `wait_for` would take a turn
                await server.close_all_connections()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(end())


CERTIFICATE = Path(tornado.test.__file__).parent / "test.crt"


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
    return context


@pytest.mark.gen_test
async def test_tls(site: Application, notes: Notes) -> None:
    notes.go_on.set()
    trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    async with running(site, ssl_options=server_tls(), max_body_size=2**30) as server:
        opened = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
        async with Client(*opened) as client:
            client.write(request("GET", "/detaching"))
            assert (await client.answer()).body == b"https 127.0.0.1 None"
            client.write(request("POST", "/taking", body=MEGABYTE) + request("GET", "/endless"))
            assert (await client.answer()).body == b"taken"
            assert len((await client.answer()).body) == 20 * len(MEGABYTE)
            client.write(b"\r\n\r\nnonsense\r\n\r\n")
            assert statuses(await client.rest()) == (400,)


@pytest.mark.gen_test
async def test_a_handshake_that_does_not_come_keeps_nobody(site: Application) -> None:
    async with running(site, ssl_options=server_tls()) as server, await server.connect() as client:
        await settled(client)
        await within(server.server.close_all_connections())
        assert await client.rest() == b""


@pytest.mark.gen_test
async def test_what_is_logged_of_a_request_is_one_short_line(
    site: Application, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with running(site) as server:
        await server.ask(request("POST", "/", "Content-Length: " + "\xe9\x85" * 5000))
    (line,) = [record.getMessage() for record in caplog.records if record.name == "tornado.general"]
    assert len(line) < 1000
    assert line.isascii()
