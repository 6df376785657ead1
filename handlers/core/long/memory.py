"""The memory for long bodies: a share of the process, and files in memory that hold the bodies."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from io import FileIO

from handlers.core.concurrency import OVERLOADED, later
from store.phrases import Phrase
from store.refused import Refused
from store.results import Window

PART = 2
"""A person's bodies take at most the free bytes divided by this, unless it is the only body of the person."""


class BodyMemory:
    """The bytes that long bodies of this process may take together: `most`. A person's first body takes what is free;
    further ones take less the fuller it is, so that it takes several people to fill it."""

    def __init__(self, most: int) -> None:
        self.most = most
        """Bytes. A change leaves what is taken."""
        self.taken = 0
        """Bytes."""
        self._people: Counter[str] = Counter()

    def require(self, size: int) -> None:
        """Raises Refused("temporarily_unavailable") if `size` bytes are not free."""
        if self.taken + size > self.most:
            raise Refused(OVERLOADED.code, OVERLOADED.description, retry_after=later())

    def take(self, person: str, size: int, window: Window | None = None) -> BodyRoom:
        """Takes `size` bytes for a body of a person. Raises Refused: "temporarily_unavailable" if they are not free,
        "rate_limited" with the `window` if the person's other bodies take too much."""
        self.require(size)
        own = self._people[person]
        if own and own + size > (self.most - self.taken) // PART:
            words = Phrase("Too many of these are already in progress.")
            raise Refused("rate_limited", words, window=window, retry_after=later())
        self.change(person, size)
        return BodyRoom(self, person, size)

    def change(self, person: str, size: int) -> None:
        """Adds `size` bytes, which may be negative, to what a person's bodies take."""
        self.taken += size
        self._people[person] += size
        if not self._people[person]:
            del self._people[person]


class BodyRoom:
    """The bytes that one body takes of the share."""

    def __init__(self, memory: BodyMemory, person: str, size: int) -> None:
        self._memory, self._person, self.size = memory, person, size

    def resize(self, size: int) -> None:
        """Takes `size` bytes from now on; 0 at the end."""
        self._memory.change(self._person, size - self.size)
        self.size = size


class LongBody:
    """A body in a file in memory, outside the interpreter's heap: it is never joined or copied as a whole here, and
    another process can read it. `room` is given back when it closes, or if the system has no file left; that raises
    Refused("temporarily_unavailable")."""

    def __init__(self, room: BodyRoom) -> None:
        self._room = room
        try:
            self.file = _file_in_memory()
        except OSError:
            room.resize(0)
            raise Refused(OVERLOADED.code, OVERLOADED.description, retry_after=later()) from None
        self.size = 0
        """Bytes."""
        self._closing = False

    def write(self, piece: bytes) -> None:
        """Appends a piece. Raises OSError if the system has no memory."""
        left = memoryview(piece)
        while left:
            left = left[self.file.write(left) or 0 :]
        self.size += len(piece)

    def now_has(self, size: int) -> None:
        """The file has `size` bytes now: the share gets the rest back."""
        self.size = size
        self._room.resize(size)

    def close(self) -> None:
        """Frees the memory soon. May be called again."""
        if not self._closing:
            self._closing = True
            # In a thread: the system takes milliseconds to free 32 MiB, and many bodies may end together.
            closed = asyncio.get_running_loop().run_in_executor(None, self.file.close)
            closed.add_done_callback(lambda _: self._room.resize(0))


def _file_in_memory() -> FileIO:
    if hasattr(os, "memfd_create"):
        return FileIO(os.memfd_create("latchkey-body", os.MFD_CLOEXEC), "r+b")
    # Other systems than Linux have none: a file without a name, which nobody else can open.
    number, name = tempfile.mkstemp(prefix="latchkey-body-")
    os.unlink(name)
    return FileIO(number, "r+b")
