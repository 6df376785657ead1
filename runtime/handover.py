"""Settings that a supervisor has read, for its workers: all take the same ones, even if the files change."""

from __future__ import annotations

import mmap

from settings.types import SettingsError

LARGEST = 2**22
"""Bytes, enough for a brand with all that it may have. The system allocates memory only when it is written."""
_HEAD = 24
# Positions of the count of handovers, and of the length of each slot's content.
_GIVEN = 0
_LENGTHS = (1, 2)


class Handover:
    """Shared memory of a process and its forks. The process gives content; the forks take the latest.

    Content goes into two slots in turn, so that a write never touches the slot that others read.
    """

    def __init__(self) -> None:
        whole = memoryview(mmap.mmap(-1, _HEAD + 2 * LARGEST))
        self._figures: memoryview[int] = whole[:_HEAD].cast("Q")
        self._slots = (whole[_HEAD : _HEAD + LARGEST], whole[_HEAD + LARGEST :])

    def give(self, content: bytes) -> None:
        """Raises SettingsError if the content is too large."""
        if len(content) > LARGEST:
            raise SettingsError(
                f"the settings and the files that they name are too large: there is room for {LARGEST} bytes"
            )
        given = self._figures[_GIVEN] + 1
        self._slots[given % 2][: len(content)] = content
        self._figures[_LENGTHS[given % 2]] = len(content)
        self._figures[_GIVEN] = given

    def take(self) -> bytes | None:
        """The latest content, or None if there is none."""
        while given := self._figures[_GIVEN]:
            content = bytes(self._slots[given % 2][: self._figures[_LENGTHS[given % 2]]])
            if self._figures[_GIVEN] == given:
                return content
        return None
