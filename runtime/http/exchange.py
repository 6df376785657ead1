"""One request and its answer, as the application sees them: Tornado's HTTPConnection."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from tornado.concurrent import Future
from tornado.escape import native_str
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPOutputError,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream

from runtime.http.head import Head
from runtime.http.tornado_private import field_of, has_field, lines_of

# Status lines by status and reason. Bounded, because an application may invent reasons.
_STATUS_LINES: dict[tuple[int, str], str] = {}
_MOST_STATUS_LINES = 500
_DIGITS = re.compile("[0-9]+")


class Stream(Protocol):
    """A connection, as its exchange sees it. The application uses it as an IOStream."""

    @property
    def context(self) -> object:
        """`remote_ip` and `protocol`."""

    @property
    def socket(self) -> Any:
        """The socket, for facts about the client. With TLS, its `getpeercert` returns the client's certificate."""

    def closed(self) -> bool:
        """Whether nothing more can reach the client."""

    def close(self) -> None:
        """Cuts the connection."""

    def send(self, data: bytes) -> Future[None]:
        """Sends. Returns a future that is done when more may be sent, or fails with StreamClosedError."""

    def broken(self) -> Future[None]:
        """The result of a write that cannot reach the client."""

    def answered(self, exchange: Exchange) -> None:
        """The answer is complete."""


class Exchange(HTTPConnection):
    """The application writes the answer to it. Unusable once the answer or the connection has ended."""

    delegate: HTTPMessageDelegate | None = None
    """Receives the request. None at the end, because the two would keep each other in memory."""
    delegate_waits = False
    """Whether the delegate has the head, but has not yet heard of the end of the request or of the connection."""
    answering = False
    """Whether the answer has begun."""
    finished = False
    """Whether the answer is complete."""
    body_counts = True
    """Whether the received part of the body counts as memory for slow clients. False if the application counts it."""
    _close_callback: Callable[[], None] | None = None
    _left: int | None = None
    _chunked = False
    _open = True

    def __init__(self, connection: Stream, head: Head, max_body_size: int, body_timeout: float | None) -> None:
        self.stream = connection
        """The connection: `close()`, `closed()` and `socket`, as an IOStream has them."""
        self.context = connection.context
        """`remote_ip` and `protocol`."""
        self.max_body_size = max_body_size
        """Bytes."""
        self.body_timeout = body_timeout
        """Seconds."""
        self.keep_alive = head.keep_alive
        """Whether another request may follow."""
        self._request = head.start_line

    def set_max_body_size(self, max_body_size: int) -> None:
        """Sets the limit of this request, in bytes. If the length is known, call it before the delegate has read the
        head."""
        self.max_body_size = max_body_size

    def set_body_timeout(self, timeout: float) -> None:
        """Sets the limit of this request, in seconds, before the delegate has read the head."""
        self.body_timeout = timeout

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        """Sets the callback for a client that leaves before the answer is complete. While the request is arriving, the
        delegate's own method is called instead."""
        self._close_callback = callback

    def close(self) -> None:
        """Cuts the connection."""
        self.stream.close()

    def detach(self) -> IOStream:
        """Raises NotImplementedError: an asyncio transport is not an IOStream. Websockets need Tornado's own server."""
        raise NotImplementedError("this server has no IOStream to give away")

    def write_headers(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders, chunk: bytes | None = None
    ) -> Future[None]:
        """Writes the status line, the headers and the first part of the body together. Returns a future that is done
        when the connection takes more, or fails with StreamClosedError. Raises ValueError for an invalid header,
        HTTPOutputError for a part longer than Content-Length."""
        assert isinstance(start_line, ResponseStartLine)
        data = self._head(start_line, headers)
        if not self._open:
            return self.stream.broken()
        self.answering = True
        return self.stream.send(data + self._framed(chunk) if chunk else data)

    def _head(self, start_line: ResponseStartLine, headers: HTTPHeaders) -> bytes:
        request = self._request
        code = start_line.code
        without_body = code in (204, 304) or 100 <= code < 200
        if has_field(headers, "Content-Length"):
            length = field_of(headers, "Content-Length")
            if not _DIGITS.fullmatch(length):
                raise ValueError(f"not a length: {length!r}")
            self._left = int(length)
        elif request.method != "HEAD" and not without_body:
            if request.version == "HTTP/1.1":
                self._chunked = True
                headers["Transfer-Encoding"] = "chunked"
            else:
                self.keep_alive = False  # closing the connection marks the end of the body
        if request.method == "HEAD" or code == 304:
            self._left = 0
        if has_field(headers, "Connection") and "close" in headers["Connection"].lower():
            self.keep_alive = False
        elif request.version == "HTTP/1.0":
            if self.keep_alive:
                headers["Connection"] = "Keep-Alive"
        elif not self.keep_alive:
            headers["Connection"] = "close"
        lines = lines_of(headers)
        text = _status_line(code, start_line.reason) + "\r\n".join(lines) + ("\r\n\r\n" if lines else "\r\n")
        data = text.encode("latin-1")
        if data.count(b"\n") != len(lines) + 2 or data.count(b"\r") != len(lines) + 2:
            raise ValueError("CR or LF in a header")
        return data

    def _framed(self, chunk: bytes) -> bytes:
        """The part of the body with its framing. Raises HTTPOutputError."""
        if self._left is not None:
            self._left -= len(chunk)
            if self._left < 0:
                self.stream.close()  # or the client would read the excess as the next answer
                raise HTTPOutputError("Tried to write more data than Content-Length")
        if self._chunked and chunk:
            return b"%x\r\n%b\r\n" % (len(chunk), chunk)
        return chunk

    def write(self, chunk: bytes) -> Future[None]:
        """Writes a part of the body; before the headers, raw bytes. Returns and raises like `write_headers`."""
        if not self._open:
            return self.stream.broken()
        self.answering = True
        return self.stream.send(self._framed(chunk))

    def finish(self) -> None:
        """Ends the answer. Raises HTTPOutputError if it is shorter than its Content-Length."""
        if self._open:
            if self._left and not self.stream.closed():
                self.stream.close()
                raise HTTPOutputError(f"Tried to write {self._left} bytes less than Content-Length")
            if self._chunked:
                self.stream.send(b"0\r\n\r\n")
        self.finished = True
        self._close_callback = None
        if self._open:
            self._open = False
            self.stream.answered(self)

    def end(self, *, gone: bool) -> None:
        """Ends the exchange for the connection. `gone`: the client left before the answer was complete. This calls the
        delegate while the request is arriving, and the close callback after that."""
        self._open = False
        callback, self._close_callback = self._close_callback, None
        delegate, self.delegate = self.delegate, None
        if self.delegate_waits and delegate is not None:
            self.delegate_waits = False
            delegate.on_connection_close()
        elif gone and callback is not None:
            callback()


def _status_line(code: int, reason: str) -> str:
    found = _STATUS_LINES.get((code, reason))
    if found is None:
        found = f"HTTP/1.1 {code} {native_str(reason)}\r\n"
        if found.count("\n") != 1 or found.count("\r") != 1:
            raise ValueError("CR or LF in a reason")
        if len(_STATUS_LINES) < _MOST_STATUS_LINES:
            _STATUS_LINES[code, reason] = found
    return found
