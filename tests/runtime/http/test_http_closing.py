"""The end of connections and of the fast HTTP server, including TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import tornado.test
from tornado.testing import bind_unused_port
from tornado.web import Application

from runtime import event_loop
from runtime.http.server import HttpServer
from tests.support.http import recording_app
from tests.support.http.http_servers import SECONDS, Client, request, running, statuses, until, within
from tests.support.http.recording_app import MEGABYTE, Notes, both, settled

notes, site = recording_app.notes, recording_app.site


@pytest.mark.gen_test
@both
async def test_a_handler_may_cut_its_answer(http: str, site: Application, notes: Notes) -> None:
    async with running(site, http) as server:
        received = await server.ask(request("GET", "/cutting"))
        await until(lambda: notes.raised is not None)
    assert received.endswith(b"4\r\nhalf\r\n")


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
async def test_closing_all_cuts_requests_in_progress(http: str, site: Application, notes: Notes) -> None:
    async with running(site, http) as server, await server.connect() as idle, await server.connect() as client:
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
def test_a_late_connection_does_not_delay_shutdown(
    new_loop: Callable[[], asyncio.AbstractEventLoop], tls: bool, turns: int, site: Application
) -> None:
    async def end() -> None:
        server = HttpServer(site, ssl_options=server_tls() if tls else None)
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
async def test_a_missing_tls_handshake_delays_nobody(site: Application) -> None:
    async with running(site, ssl_options=server_tls()) as server, await server.connect() as client:
        await settled(client)
        await within(server.server.close_all_connections())
        assert await client.rest() == b""
