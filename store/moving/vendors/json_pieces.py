"""Reads the objects of a large JSON file one by one, in constant memory: those of an array, of the member `users` of an
object, or one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

CHUNK: Final = 64 * 1024
MOST: Final = 1024 * 1024
"""Bytes of one object. A longer one is skipped."""
MOST_TEXT: Final = 16 * 1024 * 1024
"""Bytes of one text, also in what is skipped."""
MOST_DEPTH: Final = 1000

_SPACE = re.compile(rb"[ \t\r\n,]*")
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.S)
_MARK = re.compile(rb'[][{}"]')
_SCALAR = re.compile(rb"[^][{},\s]*")
CUT_SHORT = "The file ends in the middle of a value, or is no JSON."


def objects_in(file: BinaryIO, *, in_users: bool) -> Iterator[bytes]:
    """Yields each object, and b"" for one of more than MOST bytes. `in_users`: an object outside an array has them in
    its member `users`. Raises ValueError for a file that is no JSON."""
    pieces = _Pieces(file)
    while first := pieces.peek():
        if first == b"[":
            pieces.take(1)
            yield from _items(pieces)
        elif first == b"{" and in_users:
            yield from _users(pieces)
        else:
            yield pieces.value()


def _items(pieces: _Pieces) -> Iterator[bytes]:
    while (first := pieces.peek()) != b"]":
        if not first:
            raise ValueError(CUT_SHORT)
        yield pieces.value()
    pieces.take(1)


def _users(pieces: _Pieces) -> Iterator[bytes]:
    """The objects of the member `users`; all other members are skipped."""
    pieces.take(1)
    while (first := pieces.peek()) != b"}":
        name = pieces.value() if first == b'"' else b""
        if pieces.peek() != b":":
            raise ValueError(CUT_SHORT)
        pieces.take(1)
        if name == b'"users"' and pieces.peek() == b"[":
            pieces.take(1)
            yield from _items(pieces)
        else:
            pieces.skip()
    pieces.take(1)


class _Pieces:
    """The values of a JSON text, in order."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = b""
        self._at = 0

    def peek(self) -> bytes:
        """The first byte of what comes next, without spaces and commas; b"" at the end."""
        while True:
            found = _SPACE.match(self._buffer, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._more():
                return b""

    def take(self, count: int) -> bytes:
        """The next bytes, which were seen before."""
        taken = self._buffer[self._at : self._at + count]
        self._at += count
        return taken

    def value(self) -> bytes:
        """The next value; b"" if it is longer than MOST."""
        parts, size = [], 0
        for part in self._parts():
            size += len(part)
            if size <= MOST:
                parts.append(part)
        return b"".join(parts) if size <= MOST else b""

    def skip(self) -> None:
        """Passes over the next value, of any length."""
        for _ in self._parts():
            pass

    def _parts(self) -> Iterator[bytes]:
        first = self.peek()
        if first == b'"':
            yield self._text()
            return
        if first not in (b"{", b"["):
            yield self._scalar()
            return
        depth = 0
        while True:
            found = _MARK.search(self._buffer, self._at)
            if found is None:
                yield self.take(len(self._buffer) - self._at)
                if not self._more():
                    raise ValueError(CUT_SHORT)
                continue
            yield self.take(found.start() - self._at)
            if found[0] == b'"':
                yield self._text()
                continue
            depth += 1 if found[0] in b"{[" else -1
            if depth > MOST_DEPTH:
                raise ValueError("The file is nested too deep.")
            yield self.take(1)
            if depth == 0:
                return

    def _text(self) -> bytes:
        while True:
            found = _TEXT.match(self._buffer, self._at)
            if found is not None:
                return self.take(found.end() - self._at)
            # A text is read again from its beginning, so each time as much is added as there is.
            size = len(self._buffer) - self._at
            if size > MOST_TEXT or not self._more(max(CHUNK, size)):
                raise ValueError(CUT_SHORT)

    def _scalar(self) -> bytes:
        while True:
            found = _SCALAR.match(self._buffer, self._at)
            end = found.end() if found else self._at
            if end < len(self._buffer) or not self._more():
                if end == self._at or end - self._at > CHUNK:
                    raise ValueError(CUT_SHORT)
                return self.take(end - self._at)

    def _more(self, size: int = CHUNK) -> bool:
        """Reads on, and forgets what was taken."""
        chunk = self._file.read(size)
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        return bool(chunk)
