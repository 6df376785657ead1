"""A request in parts, as the fuzzers change and send it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

JSON, FORM = "application/json", "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Message:
    """A request in parts."""

    name: str
    method: bytes
    target: bytes
    fields: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    version: bytes = b"HTTP/1.1"
    busy: bool = field(default=False)
    """Whether 503 is an answer."""
    ops: bool = field(default=False)
    """Whether it goes to the operations port."""

    def head(self) -> bytes:
        """The request line and header fields."""
        lines = [
            b" ".join((self.method, self.target, self.version)),
            *(b": ".join(one) for one in self.fields),
            b"",
            b"",
        ]
        return b"\r\n".join(lines)

    def encoded(self) -> bytes:
        """The bytes on the wire."""
        return self.head() + self.body

    def value(self, name: bytes) -> bytes:
        """The first field of this name, ignoring case."""
        return next((value for key, value in self.fields if key.lower() == name.lower()), b"")

    def with_field(self, name: bytes, value: bytes) -> Message:
        """The message with this field instead of others of its name."""
        kept = tuple(one for one in self.fields if one[0].lower() != name.lower())
        return replace(self, fields=(*kept, (name, value)))

    def with_body(self, body: bytes) -> Message:
        """The message with another body and its length."""
        return replace(self.with_field(b"Content-Length", b"%d" % len(body)), body=body)


def message(method: str, target: str, headers: dict[str, str] | None = None, body: bytes | str = b"") -> Message:
    """A request to this server that closes its connection."""
    fields = {"Host": "localhost", "Connection": "close", **(headers or {})}
    encoded = tuple((name.encode(), value.encode("latin-1")) for name, value in fields.items())
    made = Message(f"{method} {target.partition('?')[0]}", method.encode(), target.encode(), encoded)
    raw = body.encode() if isinstance(body, str) else body
    return made.with_body(raw) if raw or method in ("POST", "PUT") else made
