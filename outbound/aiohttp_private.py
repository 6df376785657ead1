"""What this program knows of the inside of aiohttp. tests/webhooks/test_aiohttp_private.py checks it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from yarl import URL

INTERIM = 8
"""Interim answers (1xx) before the one that counts. A receiver that sends them without end would have this server read
them, some thousands in one piece, for as long as a post may take."""


_OF_A_BODY = ("content-length", "content-type", "transfer-encoding")
"""Headers that a request without a body gets, and that each post has of its own."""


class BoundedResponse(aiohttp.ClientResponse):
    """One that gives up on a receiver of too many interim answers."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """As in aiohttp, which has no bound of its own. Relies on: `start` calls `read` of the connection's protocol
        once for each answer, interim ones included, and raises ClientResponseError for this exception."""
        protocol = connection.protocol
        assert protocol is not None
        read, left = protocol.read, INTERIM

        async def counted() -> Any:
            nonlocal left
            if left < 0:
                raise HttpProcessingError(code=502, message="interim answers without end")
            left -= 1
            return await read()

        protocol.read = counted  # type: ignore[method-assign]  # aiohttp has no bound of its own
        return await super().start(connection)


class Heads(NamedTuple):
    """What posts to one address have in common: the request that names the server to the connector, and the begin of
    the head."""

    request: aiohttp.ClientRequest
    text: str


def server_of(url: URL, headers: Mapping[str, str]) -> Heads:
    """The common part of posts to a URL, with these headers.

    Relies on: a connector reads a request's server from `ClientRequest`, and nothing that belongs to one post; its
    headers are those that the session would send, with the host first.
    """
    request = aiohttp.ClientRequest("POST", url, headers=headers, loop=asyncio.get_running_loop())
    lines = [f"{name}: {value}\r\n" for name, value in request.headers.items() if name.lower() not in _OF_A_BODY]
    return Heads(request, f"POST {url.raw_path_qs} HTTP/1.1\r\n{''.join(lines)}")


async def begin_answer(connection: Connection, request: bytes, read_bytes: int, interim: int) -> tuple[Any, Any]:
    """Sends a request, and returns the head of the answer and the reader of its body, after at most `interim` interim
    answers. Raises aiohttp.ClientError.

    Relies on: `set_response_params` readies the protocol of a connection for one answer, and `read` returns it.
    """
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
    protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=read_bytes)
    transport.write(request)
    try:
        for _ in range(interim + 1):
            message, content = await protocol.read()
            if not 100 <= message.code < 200 or message.code == 101:
                return message, content
    except HttpProcessingError as error:
        raise aiohttp.ClientPayloadError(f"no HTTP answer: {type(error).__name__}") from error
    raise aiohttp.ClientPayloadError("interim answers without end")
