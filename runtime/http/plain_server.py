"""Tornado's own HTTP server (`--http tornado`), with limits on lines of a head and chunks of a body."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from tornado.concurrent import Future
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPInputError
from tornado.iostream import IOStream

from runtime.http import body
from runtime.http.body import BYTES_EACH
from runtime.http.fields import has_long_name
from runtime.http.head import MOST_FIELDS

# Half the limit of the fast server, although a chunk costs that server a sixth as much.
MOST_CHUNKS = body.MOST_CHUNKS // 2


class PlainServer(HTTPServer):
    """Answers 400 to a head with more than MOST_FIELDS lines or with a name that is too long, before Tornado parses it:
    Tornado takes some 3 µs for each line, 64 KiB hold 20,000 lines, and Tornado caches the last thousand names. Also
    answers 400 to a body with more than MOST_CHUNKS chunks plus one for each BYTES_EACH bytes: Tornado takes some 13 µs
    for each."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Called for each new connection."""
        _Bounds(stream)
        super().handle_stream(stream, address)


class _Bounds:
    """Wraps two public methods of a stream. Relies on this: Tornado reads heads only with `read_until_regex`, and the
    size of each chunk, just before the chunk, only with `read_until`."""

    def __init__(self, stream: IOStream) -> None:
        self._read_until_regex, self._read_until = stream.read_until_regex, stream.read_until
        self._chunks = self._total = 0
        self._size: Future[bytes] | None = None
        stream.read_until_regex = self._read_head  # type: ignore[method-assign]  # Tornado has no hook for it
        stream.read_until = self._read_size  # type: ignore[method-assign]  # nor for this

    async def _read_head(self, regex: bytes, max_bytes: int | None = None) -> bytes:
        self._chunks = self._total = 0
        self._size = None
        head = await self._read_until_regex(regex, max_bytes)
        if head.count(b"\n") > MOST_FIELDS:
            raise HTTPInputError("Too many lines in a head")
        if has_long_name(head):
            raise HTTPInputError("A long name in a head")
        return head

    def _read_size(self, delimiter: bytes, max_bytes: int | None = None) -> Awaitable[bytes]:
        """Counts the previous chunk, which has been read. Returns the stream's own Future, because Tornado joins short
        chunks only while it need not wait."""
        if self._size is not None:
            self._chunks += 1
            self._total += int(self._size.result()[:-2], 16)
            if self._chunks > MOST_CHUNKS + self._total // BYTES_EACH:
                raise HTTPInputError("too many chunks")
        size = self._read_until(delimiter, max_bytes)
        assert isinstance(size, Future)
        self._size = size
        return size
