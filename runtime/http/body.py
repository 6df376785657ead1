"""The body of a request: of known length, or in chunks."""

from __future__ import annotations

import re
from typing import Protocol

from tornado.httputil import HTTPInputError

# RFC 9112 7.1: the size in hexadecimal. Extensions and trailers are refused: nobody sends them, and proxies disagree
# about where they end.
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})\r\n")
# The limit on chunks: a fixed number, and one more for each BYTES_EACH bytes. Each chunk takes two microseconds,
# however short it is.
MOST_CHUNKS, BYTES_EACH = 4_000, 128
_SIZE_BEGUN = re.compile(rb"[0-9A-Fa-f]{0,16}\r?")


class Body(Protocol):
    """The unread part of a body."""

    done: bool

    def read(self, data: bytes, most: int, limit: int) -> tuple[bytes, bytes]:
        """Takes at most `most` bytes of the body from `data`, which has arrived. Returns these bytes and the rest of
        the data. They are empty if more must arrive first. Raises HTTPInputError, also if the body exceeds `limit`
        bytes."""


class Sized:
    """A body of `length` bytes."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def read(self, data: bytes, most: int, limit: int) -> tuple[bytes, bytes]:
        """See Body. The caller has checked the length against the limit."""
        size = min(self._left, most)
        piece = data if len(data) <= size else data[:size]
        self._left -= len(piece)
        self.done = self._left == 0
        return piece, data[len(piece) :]


class Chunked:
    """A body in chunks. Joins chunks that have arrived together: where a chunk ends means nothing."""

    def __init__(self) -> None:
        self._left = 0
        self._total = self._chunks = 0
        # The framing between two chunks: the end of the last chunk, and the size of the next.
        self._in_chunk = False
        self._last = False
        self.done = False

    def read(self, data: bytes, most: int, limit: int) -> tuple[bytes, bytes]:
        """See Body."""
        pieces: list[bytes] = []
        size = at = 0
        while size < most and not self.done:
            if self._left:
                piece = data[at : at + min(self._left, most - size)]
                if not piece:
                    break
                pieces.append(piece)
                at, size, self._left = at + len(piece), size + len(piece), self._left - len(piece)
                continue
            after = self._frame(data, at)
            if after == at:
                break
            at = after
            if self._total > limit:
                raise HTTPInputError("chunked body too large")
        return b"".join(pieces), data[at:]

    def _frame(self, data: bytes, at: int) -> int:
        """Reads the framing between chunks. Returns the position after it, or `at` if part of it is missing."""
        if self._in_chunk or self._last:
            end = data[at : at + 2]
            if end == b"\r\n":
                self._in_chunk, self.done = False, self._last
                return at + 2
            if end not in (b"", b"\r"):
                raise HTTPInputError("improperly terminated chunk" + ("ed request" if self._last else ""))
            return at
        size = _SIZE.match(data, at)
        if size:
            self._left = int(size[1], 16)
            self._total += self._left
            self._chunks += 1
            if self._chunks > MOST_CHUNKS + self._total // BYTES_EACH:
                raise HTTPInputError("too many chunks")
            self._last = self._left == 0
            self._in_chunk = not self._last
            return size.end()
        if not _SIZE_BEGUN.fullmatch(data, at):
            raise HTTPInputError("invalid chunk size")
        return at
