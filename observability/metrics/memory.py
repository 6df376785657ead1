"""Rows of figures in memory that the supervisor and all workers share. Each worker writes in its own place, and any
process reads all places.

Other processes see a figure as soon as it is written. So a process that is killed loses only events that it had noted
but not counted, and its replacement continues with its figures. There are no locks: a place has one writer, a directory
of lines that only grows, and figures of eight bytes, each written in one step.
"""

from __future__ import annotations

import json
import logging
import mmap
from collections.abc import Iterator
from typing import NamedTuple

from observability.metrics.rows import DIED, KEPT, Labels, RowFamily

log = logging.getLogger("latchkey.metrics")

DIRECTORY = 2**18
"""Bytes of a place for the names of its rows."""
FIGURES = 2**15
"""Figures of a place. The system allocates memory only when it is written, usually some 100 KiB."""
_BYTES = DIRECTORY + 8 * FIGURES
_PIECE = 2**12
# The first figure says whether a process uses the place. The row after it takes counts for which there is no room.
_TAKEN = 0
_LOST = 1
_FIRST = 64


class MetricRow(NamedTuple):
    """A row, as read. `place`: the number of its place; `taken`: whether a process uses the place."""

    place: int
    taken: bool
    family: RowFamily
    labels: Labels
    figures: list[float]


class MetricsMemory:
    """The places of all workers. Made before the fork; freed with the last process that has it."""

    def __init__(self, places: int = 1) -> None:
        whole = memoryview(mmap.mmap(-1, places * _BYTES))
        self._parts = [whole[number * _BYTES : (number + 1) * _BYTES] for number in range(places)]
        for part in self._parts:  # at exit, there may be no room
            Place(part).row(DIED)
        # Separate from the place that is written, because a thread reads them.
        self._read = [Place(part) for part in self._parts]

    def place(self, number: int) -> Place:
        """The place of a process, which starts to use it."""
        place = Place(self._parts[number])
        place.take()
        return place

    def leave(self, number: int, *, died: bool = True) -> None:
        """Clears the levels of a process that has ended. Another process calls this, and writes in the place until the
        next process takes it. `died`: the process ended without being told to."""
        place = self.place(number)
        if died:
            place.figures[place.row(DIED)] += 1.0
        place.figures[_TAKEN] = 0.0

    def read(self) -> Iterator[MetricRow]:
        """All rows of all places. Only one thread may call this at a time."""
        for number, place in enumerate(self._read):
            taken = bool(place.figures[_TAKEN])
            for family, labels, at in place.rows():
                yield MetricRow(number, taken, family, labels, list(place.figures[at : at + family.width]))


class Place:
    """The rows of one process. `figures` is written directly: `figures[at] += 1`."""

    def __init__(self, memory: memoryview) -> None:
        self._directory = memory[:DIRECTORY]
        self.figures: memoryview[float] = memory[DIRECTORY:].cast("d")
        # The bytes of the directory that were read, and their rows.
        self._read, self._next = 0, _FIRST
        self._rows: list[tuple[RowFamily, Labels, int]] = []
        self._at: dict[tuple[str, Labels], int] = {}
        self._full = False

    def rows(self) -> list[tuple[RowFamily, Labels, int]]:
        """All rows, each with the position of its first figure. Skips an incomplete line."""
        written = self._written()
        whole = written[: written.rfind(b"\n") + 1]
        for line in whole.splitlines():
            name, *labels = json.loads(line)
            self._add(KEPT[name], tuple(labels))
        self._read += len(whole)
        return self._rows

    def _written(self) -> bytes:
        """The unread part of the directory. Doesn't touch the bytes after it, which have no memory yet."""
        pieces = []
        for at in range(self._read, DIRECTORY, _PIECE):
            piece, end, _ = bytes(self._directory[at : at + _PIECE]).partition(b"\0")
            pieces.append(piece)
            if end:
                break
        return b"".join(pieces)

    def _add(self, family: RowFamily, labels: Labels) -> int:
        at, self._next = self._next, self._next + family.width
        self._rows.append((family, labels, at))
        self._at[family.name, labels] = at
        return at

    def take(self) -> None:
        """Starts to write. Keeps counts, clears levels, and removes an incomplete line."""
        for family, _, at in self.rows():
            if family.level:
                self.figures[at] = 0.0
        begun = len(self._written())
        self._directory[self._read : self._read + begun] = bytes(begun)
        self.figures[_TAKEN] = 1.0

    def row(self, family: RowFamily, *labels: str) -> int:
        """The position of a row's first figure. Makes the row at first use. Without room, returns a row that nobody
        reads."""
        found = self._at.get((family.name, labels))
        if found is not None:
            return found
        line = json.dumps([family.name, *labels]).encode() + b"\n"
        if self._read + len(line) >= DIRECTORY or self._next + family.width > FIGURES:
            if not self._full:
                self._full = True
                log.error("no room for more metrics: new rows are not counted")
            return _LOST
        self._directory[self._read : self._read + len(line)] = line
        self._read += len(line)
        return self._add(family, labels)
