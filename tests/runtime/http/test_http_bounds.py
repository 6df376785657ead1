"""Limits of the fast HTTP server: waiting for a client, connections, open files, log lines."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tornado.web import Application

from runtime.http import server as server_module
from runtime.http.files import room_for
from runtime.http.server import HttpServer
from tests.support.http import recording_app
from tests.support.http.http_servers import Client, Running, request, running, until
from tests.support.http.recording_app import Notes, settled

notes, site = recording_app.notes, recording_app.site


def front_of(server: Running) -> HttpServer:
    """The fast HTTP server, for inspection."""
    assert isinstance(server.server, HttpServer)
    return server.server


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
async def test_a_client_that_sends_nothing_is_cut(sent: bytes, options: dict[str, Any], site: Application) -> None:
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
async def test_connection_timeouts_pause_during_a_request(sent: bytes, site: Application, notes: Notes) -> None:
    limits: dict[str, Any] = {
        "idle_connection_timeout": 0.05,
        "head_timeout": 0.05,
        "body_timeout": 0.05,
        "stall_timeout": 0.05,
    }
    async with running(site, **limits) as server, await server.connect() as client:
        client.write(sent)
        asyncio.get_running_loop().call_later(0.2, notes.go_on.set)
        assert (await client.answer()).status == 200


@pytest.mark.gen_test
async def test_a_trickled_head_gets_no_more_time(site: Application) -> None:
    async with running(site, head_timeout=5.0) as server, await server.connect() as client:
        http = front_of(server)
        sent = request("GET", "/held")[:20]
        deadlines = set()
        for number in range(1, len(sent) + 1):
            client.write(sent[number - 1 : number])
            await until(lambda number=number: http.slow.total == number)  # type: ignore[misc]  # mypy knows no such lambda
            deadlines |= {connection.patience() for connection in vars(http)["_open"]}
        assert len(deadlines) == 1


@pytest.mark.gen_test
async def test_idle_connections_make_room_at_the_limit(site: Application, notes: Notes) -> None:
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
@pytest.mark.parametrize("longest", range(3))
async def test_the_longest_idle_connection_makes_room(longest: int, site: Application, notes: Notes) -> None:
    notes.go_on.set()
    time = asyncio.get_running_loop().time
    async with running(site, connections=3) as server:
        clients = [await server.connect() for _ in range(3)]
        for place in range(3):  # the order of the last answers is not the order of connecting
            client = clients[(longest + place) % 3]
            client.write(request("GET", "/held"))
            await client.answer()
            answered = time()
            await until(lambda answered=answered: time() > answered)  # type: ignore[misc]  # as above
        async with await server.connect() as newcomer:
            newcomer.write(request("GET", "/held"))
            assert (await newcomer.answer()).body == b"done"
            await until(lambda: any(client.reader.at_eof() for client in clients))
        assert [client.reader.at_eof() for client in clients] == [place == longest for place in range(3)]
        for client in clients:
            client.close()


@pytest.mark.gen_test
async def test_a_burst_of_connections_stays_within_the_limit(site: Application) -> None:
    async with running(site, connections=3) as server:
        http = front_of(server)
        burst = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
        seen = set()
        for _ in range(20):
            await asyncio.sleep(0)
            seen.add(http.open_connections)
        assert max(seen) == 3
        for one in burst:
            one.close()


@pytest.mark.gen_test
async def test_a_client_waits_if_all_connections_are_busy(site: Application, notes: Notes) -> None:
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
async def test_a_waiting_client_replaces_a_newly_idle_connection(site: Application, notes: Notes) -> None:
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
    """Uses up the process's file descriptors; the returned function frees them."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def forbid() -> Any:
        os.close(free := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, before)

    yield forbid
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.gen_test
async def test_accepting_waits_for_a_free_file_descriptor(
    site: Application,
    notes: Notes,
    no_more_files: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(server_module, "RETRY_SECONDS", 0.01)
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


def test_the_open_file_limit_is_raised_to_the_maximum(no_more_files: Any) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert room_for(10, 20) == 10
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    assert room_for(soft + 5, 20) == min(soft + 5, hard - 20)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(soft + 25, hard), hard)
    assert room_for(hard, 20) == hard - 20


@pytest.mark.gen_test
async def test_a_request_is_logged_as_one_short_line(site: Application, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running(site) as server:
        await server.ask(request("POST", "/", "Content-Length: " + "\xe9\x85" * 5000))
    (line,) = [record.getMessage() for record in caplog.records if record.name == "tornado.general"]
    assert len(line) < 1000
    assert line.isascii()
