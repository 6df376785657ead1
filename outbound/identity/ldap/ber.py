"""The part of BER that LDAP uses: definite lengths, and tags of one byte. RFC 4511 5.1."""

from __future__ import annotations

INTEGER, OCTETS, BOOLEAN, ENUMERATED, SEQUENCE, SET = 0x02, 0x04, 0x01, 0x0A, 0x30, 0x31
_MOST_LENGTH_BYTES = 4


class Malformed(ValueError):
    """The bytes are no BER, or not the expected element."""


def element(tag: int, *parts: bytes) -> bytes:
    """An element with this tag and content."""
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def integer(value: int, tag: int = INTEGER) -> bytes:
    """A whole number that is not negative."""
    return element(tag, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def octets(value: str | bytes, tag: int = OCTETS) -> bytes:
    """A string; text as UTF-8."""
    return element(tag, value.encode() if isinstance(value, str) else value)


def boolean(*, value: bool) -> bytes:
    """A boolean."""
    return element(BOOLEAN, b"\xff" if value else b"\0")


def length_bytes(first: int) -> int:
    """How many bytes of a length follow its first byte. Raises Malformed for an indefinite or a huge one."""
    if first < 0x80:
        return 0
    if not 1 <= first - 0x80 <= _MOST_LENGTH_BYTES:
        raise Malformed("length")
    return first - 0x80


class BerReader:
    """Reads the elements in some bytes, one after the other. Every method raises Malformed."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0

    @property
    def more(self) -> bool:
        """Whether an element is left."""
        return self._place < len(self._content)

    def any(self) -> tuple[int, bytes]:
        """The tag and the content of the next element."""
        place, content = self._place, self._content
        if len(content) - place < 2:
            raise Malformed("end")
        tag, first = content[place], content[place + 1]
        if tag & 0x1F == 0x1F:
            raise Malformed("tag")
        longer = length_bytes(first)
        start = place + 2 + longer
        size = int.from_bytes(content[place + 2 : start], "big") if longer else first
        if start + size > len(content):
            raise Malformed("end")
        self._place = start + size
        return tag, content[start : start + size]

    def take(self, tag: int) -> bytes:
        """The content of the next element, which must have this tag."""
        found, content = self.any()
        if found != tag:
            raise Malformed("tag")
        return content

    def number(self, tag: int = INTEGER) -> int:
        """The next whole number: at most eight bytes, not negative."""
        content = self.take(tag)
        if not 1 <= len(content) <= 8 or content[0] & 0x80:
            raise Malformed("number")
        return int.from_bytes(content, "big")
