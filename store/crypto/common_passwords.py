"""A Bloom filter of some 100,000 common passwords, names and words: 244 KB, no list to ship.

`dev/checks/common_passwords.py` builds the file from two packages and keeps its hash. The filter recognises every
entry; it wrongly recognises one in 10,000 other texts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("common_passwords.bloom")
WRONG = 1e-4
"""The share of other texts that the filter wrongly recognises."""


class Filter:
    """A set of texts with a few false positives. `bits` is a whole number of bytes."""

    def __init__(self, bits: bytes) -> None:
        self._bits = bits

    def __contains__(self, text: str) -> bool:
        return all(self._bits[place >> 3] >> (place & 7) & 1 for place in _places(text, len(self._bits) * 8))

    @classmethod
    def of(cls, texts: Iterable[str]) -> Filter:
        """A filter of these texts; their order does not matter."""
        found = set(texts)
        bits = bytearray(math.ceil(-len(found) * math.log(WRONG) / math.log(2) ** 2 / 8))
        for text in found:
            for place in _places(text, len(bits) * 8):
                bits[place >> 3] |= 1 << (place & 7)
        return cls(bytes(bits))

    def to_bytes(self) -> bytes:
        """The content of its file."""
        return self._bits


def _places(text: str, size: int) -> Iterator[int]:
    digest = hashlib.sha256(text.encode()).digest()
    first, step = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big") | 1
    for number in range(math.ceil(-math.log2(WRONG))):
        yield (first + number * step) % size


@cache
def common() -> Filter:
    """The filter of the file, read once in a process."""
    return Filter(FILE.read_bytes())
