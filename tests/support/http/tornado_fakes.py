"""Fakes of Tornado's connection and transport, for tests that need no socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tornado.httputil import HTTPConnection, HTTPHeaders, RequestStartLine, ResponseStartLine


class Context:
    """The client of a connection."""

    remote_ip, protocol = "192.0.2.1", "https"


class Connection(HTTPConnection):
    """Records what is written."""

    def __init__(self) -> None:
        self.context = Context()
        self.noted: list[Any] = []

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        self.noted.append(("close callback", callback and callback.__name__))

    def write_headers(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders, chunk: bytes | None = None
    ) -> Any:
        self.noted.append((start_line, sorted(headers.get_all()), chunk))

    def write(self, chunk: bytes) -> Any:
        self.noted.append(chunk)

    def finish(self) -> None:
        self.noted.append("finished")


async def moment() -> None:
    """One turn of the event loop."""
    await asyncio.sleep(0)
