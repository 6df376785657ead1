"""Posts of short bodies on aiohttp's connections, without what aiohttp's session does for other requests.

The connector makes, keeps and limits the connections as before, and aiohttp's parser reads the answers. Left out are
redirects, cookies, proxies, middlewares and the objects for them: two thirds of what a call cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self

import aiohttp
from yarl import URL

from outbound.aiohttp_private import Heads, begin_answer, server_of

INTERIM = 8
"""Interim answers (1xx) before the one that counts."""


class QuickResponse:
    """An answer whose head has arrived; `content` is its body. The connection is free again once the body was read to
    its end, and is closed otherwise."""

    __slots__ = ("_connection", "content", "headers", "status")

    def __init__(self, connection: aiohttp.connector.Connection, message: Any, content: aiohttp.StreamReader) -> None:
        self._connection: aiohttp.connector.Connection | None = connection
        self.status: int = message.code
        self.headers: Mapping[str, str] = message.headers
        self.content = content
        content.on_eof(self._release)

    @property
    def closed(self) -> bool:
        """Whether the connection is gone or free again."""
        return self._connection is None

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release()

    def close(self) -> None:
        """Closes the connection, unless the body was read to its end. Whoever reads the body gets a ClientError."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self.content.exception() is None:
                self.content.set_exception(aiohttp.ClientConnectionError("Connection closed"))
            connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()


class QuickPosts:
    """Posts over the connections of `connector`. `headers` are sent with every post."""

    def __init__(self, connector: aiohttp.BaseConnector, headers: Mapping[str, str]) -> None:
        self._connector = connector
        self._headers = headers
        self._heads: dict[str, Heads] = {}

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], connect: float, read_bytes: int
    ) -> QuickResponse:
        """The answer, once its head has arrived; its body is read ahead up to about `read_bytes`. `connect`: the time
        in seconds to get a connection. Raises aiohttp.ClientError, and ValueError for a header with a line break."""
        known = self._heads.get(url)
        if known is None:
            known = self._heads[url] = server_of(URL(url), self._headers)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
            raise ValueError("a line break in a header")
        head = f"{known.text}{lines}Content-Length: {len(body)}\r\n\r\n".encode()
        try:
            connection = await self._connector.connect(known.request, [], _limits(connect))
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {url}") from error
        try:
            message, content = await begin_answer(connection, head + body, read_bytes, INTERIM)
        except BaseException:
            connection.close()
            raise
        return QuickResponse(connection, message, content)


@lru_cache(maxsize=64)
def _limits(connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=connect)
