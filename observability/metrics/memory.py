"""Rows of figures in memory that the supervisor and all workers share: each worker writes in a place of its own, and
whichever is asked reads all of them.

A figure is there for the others as soon as it is written, so a process that is killed takes no more with it than what
it had noted and not counted yet; the one that replaces it goes on with what it finds. Nobody waits for anybody: a place
has one writer, a directory of lines that only grows, and figures of eight bytes, each of which is written at once.
"""

from __future__ import annotations

import json
import logging
import mmap
from collections.abc import Iterator
from typing import NamedTuple

from observability.metrics.declared import DIED, KEPT, Labels, RowFamily

log = logging.getLogger("latchkey.metrics")

DIRECTORY = 2**18
"""Bytes of a place for the names of its rows."""
FIGURES = 2**15
"""Figures of a place. The system gives memory to what is written alone, mostly some 100 KiB."""
_BYTES = DIRECTORY + 8 * FIGURES
_PIECE = 2**12
# The first figure says whether somebody works at the place; into the row behind it goes what there is no room for.
_TAKEN = 0
_LOST = 1
_FIRST = 64


class MetricRow(NamedTuple):
    """A row as it was read. `place`: the number of the place it is from; `taken`: whether a process works there."""

    place: int
    taken: bool
    family: RowFamily
    labels: Labels
    figures: list[float]


class MetricsMemory:
    """So many places. Made before workers are forked; ends with the last process that has it."""

    def __init__(self, places: int = 1) -> None:
        whole = memoryview(mmap.mmap(-1, places * _BYTES))
        self._parts = [whole[number * _BYTES : (number + 1) * _BYTES] for number in range(places)]
        for part in self._parts:  # by then, there may be no room
            Place(part).row(DIED)
        # Apart from the place that is written: they are read by a thread.
        self._read = [Place(part) for part in self._parts]

    def place(self, number: int) -> Place:
        """The place of a process, which begins to work at it."""
        place = Place(self._parts[number])
        place.take()
        return place

    def leave(self, number: int, *, died: bool = True) -> None:
        """The process at a place has ended: its levels are no more. To be called by another one, which writes there
        until the next process does: that it `died`, where nobody had told it to end."""
        place = self.place(number)
        if died:
            place.figures[place.row(DIED)] += 1.0
        place.figures[_TAKEN] = 0.0

    def read(self) -> Iterator[MetricRow]:
        """All rows of all places. Called by one thread at a time."""
        for number, place in enumerate(self._read):
            taken = bool(place.figures[_TAKEN])
            for family, labels, at in place.rows():
                yield MetricRow(number, taken, family, labels, list(place.figures[at : at + family.width]))


class Place:
    """The rows of one process. `figures` is written directly: `figures[at] += 1`."""

    def __init__(self, memory: memoryview) -> None:
        self._directory = memory[:DIRECTORY]
        self.figures: memoryview[float] = memory[DIRECTORY:].cast("d")
        # What was read of the directory: its bytes, and the rows in them.
        self._read, self._next = 0, _FIRST
        self._rows: list[tuple[RowFamily, Labels, int]] = []
        self._at: dict[tuple[str, Labels], int] = {}
        self._full = False

    def rows(self) -> list[tuple[RowFamily, Labels, int]]:
        """The rows there are, each with the place of its first figure. A line that is not complete is none yet."""
        written = self._written()
        whole = written[: written.rfind(b"\n") + 1]
        for line in whole.splitlines():
            name, *labels = json.loads(line)
            self._add(KEPT[name], tuple(labels))
        self._read += len(whole)
        return self._rows

    def _written(self) -> bytes:
        """What follows what was read. The rest of the directory is not touched: it has no memory yet."""
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
        """Begins to write. What was counted here before stands; what was a level does not, and a line that was begun is
        none."""
        for family, _, at in self.rows():
            if family.level:
                self.figures[at] = 0.0
        begun = len(self._written())
        self._directory[self._read : self._read + begun] = bytes(begun)
        self.figures[_TAKEN] = 1.0

    def row(self, family: RowFamily, *labels: str) -> int:
        """Where the first figure of a row stands, which is made when it is first asked for. Where there is no room, it
        is one that nobody reads."""
        found = self._at.get((family.name, labels))
        if found is not None:
            return found
        line = json.dumps([family.name, *labels]).encode() + b"\n"
        if self._read + len(line) >= DIRECTORY or self._next + family.width > FIGURES:
            if not self._full:
                self._full = True
                log.error("there is no room for more metrics: what is new is not counted")
            return _LOST
        self._directory[self._read : self._read + len(line)] = line
        self._read += len(line)
        return self._add(family, labels)
