"""Posts on aiohttp's connections without its session: the same requests, and connections that are reused or closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from outbound.ai.quick_post import INTERIM, QuickPosts

pytestmark = pytest.mark.gen_test

ALWAYS = {"accept-encoding": "identity", "user-agent": "Latchkey"}
OWN = {"content-type": "application/json", "x-api-key": "a key", "X-Request-Id": "5"}
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Mark: a\r\n\r\n{}"
ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"


class Server:
    """Answers every request with `answer`, and notes the requests and how many connections there were."""

    def __init__(self, answer: bytes = WHOLE) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.connections = 0
        self.hangs_up = False
        self._serving: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until its client closes it."""
        self.connections += 1
        self._serving.append(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.requests.append(head + await reader.readexactly(2))
                writer.write(self.answer)
                if self.hangs_up:
                    writer.close()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[tuple[str, QuickPosts, aiohttp.ClientSession]]:
        """Its address, and two clients with the same connector."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        connector = aiohttp.TCPConnector(limit=2)
        skipped = ("user-agent",)
        async with aiohttp.ClientSession(connector=connector, headers=ALWAYS, skip_auto_headers=skipped) as session:
            port = server.sockets[0].getsockname()[1]
            yield f"http://127.0.0.1:{port}/v1/a%20b?c=d", QuickPosts(connector, ALWAYS), session
        server.close()
        await asyncio.gather(*filter(None, self._serving))


async def ask(posts: QuickPosts, url: str, **headers: str) -> tuple[int, bytes]:
    """The status and the body of one answer."""
    async with await posts.post(url, b"{}", {**OWN, **headers}, 10.0, 2**16) as answer:
        return answer.status, await answer.content.read()


async def test_a_request_is_that_of_the_session_and_uses_its_connection() -> None:
    server = Server()
    async with server.listening() as (url, posts, session):
        async with session.post(url, data=b"{}", headers=OWN) as answer:
            await answer.read()
        assert await ask(posts, url) == (200, b"{}")
        other, own = (sorted(request.lower().split(b"\r\n")) for request in server.requests)
        assert own == other
        assert server.requests[1].startswith(b"POST /v1/a%20b?c=d HTTP/1.1\r\nHost: 127.0.0.1:")
        assert server.connections == 1


async def test_an_answer_that_nobody_reads_to_its_end_closes_its_connection() -> None:
    server = Server(ENDLESS)
    async with server.listening() as (url, posts, _):
        answer = await posts.post(url, b"{}", OWN, 10.0, 2**16)
        reading = asyncio.ensure_future(answer.content.read())
        await asyncio.sleep(0)
        answer.close()
        assert answer.closed
        with pytest.raises(aiohttp.ClientConnectionError):
            await reading
        server.answer = WHOLE
        assert await ask(posts, url) == (200, b"{}")
        assert server.connections == 2


async def test_a_call_that_is_given_up_closes_its_connection() -> None:
    server = Server(b"")
    async with server.listening() as (url, posts, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ask(posts, url)
        server.answer = WHOLE
        assert await ask(posts, url) == (200, b"{}")
        assert server.connections == 2


async def test_interim_answers_are_skipped_and_counted() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    server = Server(hint * INTERIM + WHOLE)
    async with server.listening() as (url, posts, _):
        assert await ask(posts, url) == (200, b"{}")
        server.answer = hint * (INTERIM + 1) + WHOLE
        with pytest.raises(aiohttp.ClientError, match="interim answers without end"):
            await ask(posts, url)


async def test_what_is_no_http_is_an_error_of_the_client() -> None:
    server = Server(b"SSH-2.0-OpenSSH\r\n\r\n")
    async with server.listening() as (url, posts, _):
        with pytest.raises(aiohttp.ClientError):
            await ask(posts, url)


async def test_a_server_that_hangs_up_is_an_error_of_the_client() -> None:
    server = Server()
    async with server.listening() as (url, posts, _):
        server.answer = b"HTTP/1.1 2"
        server.hangs_up = True
        with pytest.raises(aiohttp.ClientError):
            await ask(posts, url)


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nX-Admin: 1", "a\r", "a\0"])
async def test_a_header_cannot_begin_another_line(value: str) -> None:
    server = Server()
    async with server.listening() as (url, posts, _):
        with pytest.raises(ValueError, match="a line break"):
            await ask(posts, url, mark=value)
        assert server.requests == []


async def test_a_post_waits_for_a_connection_no_longer_than_it_may() -> None:
    server = Server(b"")
    async with server.listening() as (url, posts, _):
        waiting = [asyncio.ensure_future(ask(posts, url)) for _ in range(2)]
        while len(server.requests) < 2:
            await asyncio.sleep(0.001)
        with pytest.raises(aiohttp.ConnectionTimeoutError):
            await posts.post(url, b"{}", OWN, 0.05, 2**16)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
