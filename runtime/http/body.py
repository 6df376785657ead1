"""The body of a request: of a length that is known, or in chunks."""

from __future__ import annotations

import re
from typing import Protocol

from tornado.httputil import HTTPInputError

# RFC 9112 7.1: the size in hexadecimal. No extensions and no trailer section: nobody sends them, and programs that pass
# a request on disagree about where they end.
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})\r\n")
# Of chunks there may be so many, and one more for so many bytes: each takes two microseconds, however short it is.
MOST_CHUNKS, BYTES_EACH = 4_000, 128
_SIZE_BEGUN = re.compile(rb"[0-9A-Fa-f]{0,16}\r?")


class Body(Protocol):
    """What is left of a body."""

    done: bool

    def read(self, data: bytes, most: int, limit: int) -> tuple[bytes, bytes]:
        """Takes from `data`, which has arrived, a piece of the body of at most `most` bytes. Returns the piece and the
        rest of the data; an empty piece where more must arrive first. Raises HTTPInputError, also when the body has
        more than `limit` bytes."""


class Sized:
    """A body of `length` bytes."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def read(self, data: bytes, most: int, limit: int) -> tuple[bytes, bytes]:
        """As Body says; the length was held against the limit before."""
        size = min(self._left, most)
        piece = data if len(data) <= size else data[:size]
        self._left -= len(piece)
        self.done = self._left == 0
        return piece, data[len(piece) :]


class Chunked:
    """A body in chunks. Chunks mean nothing, so what has arrived of several of them becomes one piece."""

    def __init__(self) -> None:
        self._left = 0
        self._total = self._chunks = 0
        # What stands between two pieces of the body: the end of the chunk before, then the size of the next.
        self._in_chunk = False
        self._last = False
        self.done = False

    def read(self, data: bytes, most: int, limit: int) -> tuple[bytes, bytes]:
        """As Body says."""
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
        """Reads what stands between chunks. Returns the position behind it: `at` where it is not all there."""
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
