"""Requests and answers as bytes, for requests that are answered before their head is parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tornado.httputil import HTTPConnection, HTTPHeaders, ResponseStartLine

from runtime.http.tornado_private import headers_of

SHORT_BODY = 16_384
"""Bytes of a body that is passed over, so that its connection can be kept."""

# A GET whose line and headers are in order as far as lines go, on a connection that is kept, without a body.
_PLAIN = re.compile(rb"GET (/[!\"$-~]*) HTTP/1\.1\r\n(?:[!-9;-~]+:[\t !-~]*\r\n)+\r\n")
_NOT_PLAIN = re.compile(rb"\n(?:content-length|transfer-encoding|connection|expect|upgrade):", re.IGNORECASE)


def plain_path(head: bytes) -> str | None:
    """The path of a GET without a body, on a connection that is kept. None for every other head: the usual way answers
    those, and refuses the malformed ones."""
    plain = _PLAIN.fullmatch(head)
    if plain is None or _NOT_PLAIN.search(head):
        return None
    return plain[1].partition(b"?")[0].decode()


def names_html(head: bytes) -> bool:
    """Whether a head names HTML, as browsers do in Accept."""
    return b"text/html" in head


def has_long_body(headers: HTTPHeaders) -> bool:
    """Whether the body of a request takes long to arrive, or may."""
    length = headers.get("Content-Length", "0")
    return "Transfer-Encoding" in headers or not length.isdecimal() or int(length) > SHORT_BODY


def field_lines(fields: Mapping[str, str]) -> bytes:
    """Header fields as lines. Nothing in them is checked."""
    return "".join([f"{name}: {value}\r\n" for name, value in fields.items()]).encode()


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer that was written out once, but for the fields that differ each time."""

    before: bytes
    after: bytes

    @classmethod
    def of(cls, status: int, reason: str, fields: Mapping[str, str], body: bytes) -> RawAnswer:
        """Writes it out; Content-Length is one of the fields."""
        return cls(f"HTTP/1.1 {status} {reason}\r\n".encode() + field_lines(fields), b"\r\n" + body)

    def with_fields(self, fields: Mapping[str, str]) -> bytes:
        """The whole answer."""
        return self.before + field_lines(fields) + self.after


def answer_whole(
    connection: HTTPConnection, method: str, status: int, reason: str, fields: Mapping[str, str], body: bytes
) -> None:
    """Answers a request of this method. Names are spelt `Header-Case`; nothing in the fields is checked."""
    headers = headers_of({name: [value] for name, value in fields.items()})
    connection.write_headers(ResponseStartLine("", status, reason), headers, b"" if method == "HEAD" else body)
    connection.finish()
