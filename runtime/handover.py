"""What a supervisor has read anew, for its workers: all take up the same, whatever became of the files since."""

from __future__ import annotations

import mmap

LARGEST = 2**20
"""Bytes. The system gives memory only to what is written."""
_HEAD = 24
# How often something was given, and the bytes of the one slot and of the other.
_GIVEN = 0
_LENGTHS = (1, 2)


class Handover:
    """Memory of a process and of those that it forks. It gives; they take what was given last.

    What is given goes by turns into two slots: the one that is read is not the one that is written.
    """

    def __init__(self) -> None:
        whole = memoryview(mmap.mmap(-1, _HEAD + 2 * LARGEST))
        self._figures: memoryview[int] = whole[:_HEAD].cast("Q")
        self._slots = (whole[_HEAD : _HEAD + LARGEST], whole[_HEAD + LARGEST :])

    def give(self, content: bytes) -> None:
        """Raises ValueError for more than there is room for."""
        if len(content) > LARGEST:
            raise ValueError(f"there is room for {LARGEST} bytes")
        given = self._figures[_GIVEN] + 1
        self._slots[given % 2][: len(content)] = content
        self._figures[_LENGTHS[given % 2]] = len(content)
        self._figures[_GIVEN] = given

    def take(self) -> bytes | None:
        """What was given last; None where nothing was."""
        while given := self._figures[_GIVEN]:
            content = bytes(self._slots[given % 2][: self._figures[_LENGTHS[given % 2]]])
            if self._figures[_GIVEN] == given:
                return content
        return None
