"""The CBOR of authenticators (CTAP 2.1, 8): bounded, without tags, and in one spelling.

A library that implements all of RFC 8949 acts on tags: it compiles the sender's regular expression (tag 35), parses
dates and addresses, builds numbers of any length. CTAP2 has no tags, so this module refuses them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

MOST_DEPTH = 4
"""The deepest nesting of arrays and maps, as in CTAP 2.1, 8."""
MOST_ITEMS = 256
"""The most values in one piece of CBOR. A real attestation has about 20."""
MOST_BYTES = 8192
"""The most bytes of one piece. A real attestation has 200 to 1,500, with a chain of certificates up to 6,000."""

_SIMPLE = {20: False, 21: True, 22: None, 23: None}


class NotCanonical(ValueError):
    """The bytes are not the canonical CBOR of authenticators."""


class Item(NamedTuple):
    """A value, and the position after its last byte."""

    value: Any
    end: int


def read_item(data: bytes, at: int = 0, *, shortest: bool = True) -> Item:
    """Reads the value at this position: integer, bytes, text, list, dict, True, False or None.

    `shortest`: lengths and numbers must have their shortest form, so a reader that re-encodes a value to learn where it
    ended finds the same place. Raises NotCanonical for tags, floats, indefinite lengths, keys other than text and
    numbers, repeated keys, and for data that is too large, too deep or truncated.
    """
    if len(data) > MOST_BYTES:
        raise NotCanonical("too many bytes")
    reader = _Reader(data, at, shortest)
    return Item(reader.value(0), reader.at)


class _Reader:
    def __init__(self, data: bytes, at: int, shortest: bool) -> None:
        self.data, self.at, self._shortest = data, at, shortest
        self._left = MOST_ITEMS

    def value(self, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise NotCanonical("too many values")
        major, info = divmod(self._take(1)[0], 32)
        if major == 7:
            if info not in _SIMPLE:
                raise NotCanonical("neither true, false, null nor undefined")
            return _SIMPLE[info]
        number = self._number(info)
        match major:
            case 0:
                return number
            case 1:
                return -1 - number
            case 2:
                return self._take(number)
            case 3:
                try:
                    return self._take(number).decode()
                except UnicodeDecodeError:
                    raise NotCanonical("text that is not UTF-8") from None
            case 4 | 5 if depth == MOST_DEPTH:
                raise NotCanonical("nested too deep")
            case 4:
                return [self.value(depth + 1) for _ in range(self._bounded(number))]
            case 5:
                return self._map(self._bounded(number), depth + 1)
        raise NotCanonical("a tag")

    def _map(self, pairs: int, depth: int) -> dict[int | str, Any]:
        found: dict[int | str, Any] = {}
        for _ in range(pairs):
            key = self.value(depth)
            if type(key) not in (int, str) or key in found:  # a boolean is an int for isinstance, and equal to one
                raise NotCanonical("a key that is repeated, or neither number nor text")
            found[key] = self.value(depth)
        return found

    def _number(self, info: int) -> int:
        """The number after the first byte. RFC 8949 3: 28 to 30 are reserved, 31 is an indefinite length."""
        if info < 24:
            return info
        if info > 27:
            raise NotCanonical("an indefinite or reserved length")
        size = 1 << info - 24
        number = int.from_bytes(self._take(size))
        if self._shortest and number < (24 if size == 1 else 1 << 4 * size):
            raise NotCanonical("a number that has a shorter form")
        return number

    def _bounded(self, count: int) -> int:
        """Checks a count of values against the room left, before a list of that length is built."""
        if count > self._left:
            raise NotCanonical("too many values")
        return count

    def _take(self, size: int) -> bytes:
        begin, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise NotCanonical("cut off")
        return self.data[begin : self.at]
