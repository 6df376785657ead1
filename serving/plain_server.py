"""Tornado's own HTTP server (`--http tornado`), with a bound for the lines of a head."""

from __future__ import annotations

from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPInputError
from tornado.iostream import IOStream

from front.head import MOST_FIELDS


class PlainServer(HTTPServer):
    """Answers 400 to a head of more than MOST_FIELDS lines before anything reads them: Tornado takes some 3 µs for
    each, and 64 KiB hold 20,000."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """A client has connected. Heads are what Tornado reads up to a pattern."""
        read = stream.read_until_regex

        async def read_head(regex: bytes, max_bytes: int | None = None) -> bytes:
            head = await read(regex, max_bytes)
            if head.count(b"\n") > MOST_FIELDS:
                raise HTTPInputError("Too many lines in a head")
            return head

        stream.read_until_regex = read_head  # type: ignore[method-assign]  # Tornado offers no hook for it
        super().handle_stream(stream, address)
