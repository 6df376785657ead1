"""A long request for a server: its text lies in a file in memory and is sent from there, so that this process never has
it as an object."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from io import FileIO
from types import MappingProxyType
from typing import Any

from outbound.ai.events import WrittenRequest, encoded

LONG = "\0long"
"""The member of a request that has a LongRequest. No app sends a name with NUL."""
SLICE = 2**16
"""Bytes that are sent at once."""
BYTES_PER_TOKEN = 8
"""A token has at most as many."""


class LongRequest:
    """The members of a JSON object, without its braces, in the first `size` bytes of a file. `count` counts their
    tokens up to some number above the one given, and returns None if it can't."""

    def __init__(self, file: FileIO, size: int, count: Callable[[int], Awaitable[int | None]]) -> None:
        self._file = file
        self.size = size
        """Bytes."""
        self._count = count

    async def tokens(self, enough: int) -> int:
        """The number of tokens, or some number above `enough`."""
        found = await self._count(enough)
        return self.size // BYTES_PER_TOKEN if found is None else found

    async def slices(self, end: bytes) -> AsyncIterator[bytes]:
        """The object in slices: its brace, these members, and `end`. Raises ValueError if the file is closed."""
        yield b"{"
        at = 0
        while at < self.size:
            piece = os.pread(self._file.fileno(), min(SLICE, self.size - at), at)
            at += len(piece)
            yield piece
            await asyncio.sleep(0)  # a fast server never makes this wait
        yield end


class Posted:
    """The body of a request to a server, as often as it is sent."""

    headers: Mapping[str, str] = MappingProxyType({})
    """Headers that belong to it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def short(self) -> bytes | None:
        """The body, if it can be sent at once."""
        return self._content if len(self._content) <= SLICE else None

    def data(self) -> Any:
        """The body, for aiohttp. It is sent in pieces: more than 1 MiB at once would block the event loop."""
        return io.BytesIO(self._content)


class _LongPosted(Posted):
    def __init__(self, request: LongRequest, end: bytes) -> None:
        super().__init__(end)
        self._request = request
        # Without a length it would be sent in chunks, which some servers refuse.
        self.headers = {"content-length": str(1 + request.size + len(end))}

    short = None

    def data(self) -> Any:
        return self._request.slices(self._content)


def posted(body: Mapping[str, Any]) -> Posted:
    """The body for a request. Members next to a long one come after it."""
    if isinstance(body, WrittenRequest):
        return Posted(body.text)
    request = body.get(LONG)
    if request is None:
        return Posted(encoded(body))
    return _LongPosted(request, b"," + encoded({name: body[name] for name in body if name != LONG})[1:])
