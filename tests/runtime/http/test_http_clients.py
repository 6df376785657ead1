"""Clients that hang up or do not read, and applications that do not read, on the fast HTTP server."""

from __future__ import annotations

import socket
import struct

import pytest
from tornado.web import Application

from tests.support.http import recording_app
from tests.support.http.http_servers import joined, request, running, until
from tests.support.http.recording_app import MEGABYTE, Notes, both, settled

notes, site = recording_app.notes, recording_app.site


@pytest.mark.gen_test
@pytest.mark.parametrize("target", ["/held", "/begun"])
@pytest.mark.parametrize(
    ("http", "ahead"),
    [
        pytest.param("fast", b"", id="fast"),
        pytest.param("tornado", b"", id="tornado"),
        pytest.param("fast", request("GET", "/held"), id="fast, with a request behind it"),
    ],
)
async def test_a_handler_learns_at_once_that_its_client_has_gone(
    http: str, target: str, ahead: bytes, site: Application, notes: Notes
) -> None:
    async with running(site, http) as server:
        async with await server.connect() as client:
            client.write(request("GET", target) + ahead)
            await until(lambda: bool(notes.begun or notes.written))
        await until(lambda: notes.closed == 1)
        notes.go_on.set()
        await until(lambda: notes.raised is not None)
    assert notes.closed == 1


@pytest.mark.gen_test
@pytest.mark.parametrize("handler_first", [True, False])
async def test_a_reset_counts_as_a_close(
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
async def test_a_handler_reading_a_body_learns_that_its_client_has_gone(
    http: str, site: Application, notes: Notes
) -> None:
    notes.go_on.set()
    async with running(site, http) as server:
        async with await server.connect() as client:
            client.write(request("POST", "/taking", "Content-Length: 100") + b"x")
            await until(lambda: notes.begun == 1)
        await until(lambda: notes.closed == 1)


@pytest.mark.gen_test
@both
async def test_a_close_between_requests_notifies_no_handler(http: str, site: Application, notes: Notes) -> None:
    notes.go_on.set()
    async with running(site, http) as server:
        async with await server.connect() as client:
            client.write(request("GET", "/held"))
            assert (await client.answer()).body == b"done"
        async with await server.connect() as client:
            client.write(b"GET /held HTT")
    assert notes.closed == 0


@pytest.mark.gen_test
@both
async def test_a_client_that_does_not_read_pauses_the_handler(http: str, site: Application, notes: Notes) -> None:
    async with running(site, http) as server, await server.connect() as client:
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
async def test_a_paused_handler_learns_that_its_client_has_gone(site: Application, notes: Notes) -> None:
    async with running(site) as server:
        async with await server.connect() as client:
            client.write(request("GET", "/endless"))
            await until(lambda: notes.written > 0)
            await settled(client)
            client.writer.transport.abort()
        await until(lambda: notes.raised is not None)
    assert notes.closed == 1


@pytest.mark.gen_test
async def test_a_client_that_never_reads_is_cut(site: Application, notes: Notes) -> None:
    async with running(site, stall_timeout=0.1) as server, await server.connect() as client:
        client.write(request("GET", "/endless"))
        await until(lambda: notes.raised is not None)
    assert notes.closed == 1


@pytest.mark.gen_test
@pytest.mark.parametrize("fields", [(), ("Connection: close",)], ids=["kept", "to be closed"])
async def test_a_client_that_never_reads_a_complete_answer_is_cut(
    fields: tuple[str, ...], site: Application, notes: Notes
) -> None:
    async with running(site, stall_timeout=0.1) as server, await server.connect() as client:
        client.write(request("GET", "/large", *fields))
        await until(lambda: notes.written > 0)
        await until(lambda: not vars(server.server)["_open"])
        assert len(await client.rest()) < 20 * len(MEGABYTE)


@pytest.mark.gen_test
async def test_an_application_that_does_not_read_a_body_pauses_the_client(site: Application, notes: Notes) -> None:
    async with running(site, max_body_size=2**30) as server, await server.connect() as client:
        client.write(request("POST", "/taking", "Content-Length: 50000000") + b"x" * 50_000_000)
        await until(lambda: notes.begun == 1)
        assert await settled(client) > 10_000_000
        assert notes.written <= 65_536
        notes.go_on.set()
        assert (await client.answer()).body == b"taken"
    assert notes.written == 50_000_000


@pytest.mark.gen_test
async def test_reading_ahead_is_bounded(site: Application, notes: Notes) -> None:
    async with running(site) as server, await server.connect() as client:
        client.write(joined([request("GET", "/held")] * 1_000_000))
        await until(lambda: notes.begun == 1)
        assert await settled(client) > 10_000_000
        assert notes.begun == 1
        client.writer.transport.abort()


@pytest.mark.gen_test
async def test_the_next_request_waits_for_the_answer_before_it(site: Application, notes: Notes) -> None:
    async with running(site) as server, await server.connect() as client:
        client.write(request("GET", "/large") * 2)
        await until(lambda: notes.written > 0)
        assert await settled(client) == 0
        assert notes.written == 1
        for _ in range(2):
            assert len((await client.answer()).body) == 20 * len(MEGABYTE)
