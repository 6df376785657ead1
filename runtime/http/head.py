"""Reads the head of a request, and refuses a head that two programs could read differently.

llhttp parses the lines. This module checks where llhttp is lenient: leading blank lines, other protocols and versions,
the target, the number of Host lines, transfer codings. A refused head is answered 400 before the application sees it.
The connection closes, because the start of the next request is unknown.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from tornado.httputil import HTTPHeaders, HTTPInputError, RequestStartLine, parse_request_start_line

from runtime.http.fields import has_long_name, spelled
from runtime.http.tornado_private import Lines, headers_of

MOST_FIELDS = 200
CHUNKED = -1

# RFC 9112 3: method, target, version, with one space between them. One leading blank line is ignored (2.2). The target
# is a path or `*`: clients send nothing else to a server that is no proxy. `#` starts a fragment, which is never sent.
_REQUEST_LINE = re.compile(rb"(?:\r\n)?([!#$%&'*+\-.^_`|~0-9A-Za-z]+) (/[!\"$-~]*|\*) HTTP/1\.([01])\r\n")
_VERSIONS = {b"1": "HTTP/1.1", b"0": "HTTP/1.0"}
# Bytes allowed anywhere in a head: no control characters except line ends and tabs.
_POSSIBLE = bytes([*b"\t\r\n", *range(0x20, 0x7F), *range(0x80, 0x100)])
# For llhttp, other methods have another grammar (CONNECT, PRI) or are unknown.
_PLAIN_METHODS = frozenset([b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH"])


class Head(NamedTuple):
    """The head of a request."""

    start_line: RequestStartLine
    headers: HTTPHeaders
    length: int
    """Bytes of the body, or CHUNKED if unknown."""
    keep_alive: bool
    expects_continue: bool


class Overlong(HTTPInputError):
    """A head that is too long. `status` is the status line of the answer."""

    def __init__(self, status: bytes) -> None:
        super().__init__(status.decode())
        self.status = status


MOST_KEPT, LONGEST_KEPT, LONGEST_PATH = 256, 1024, 64
"""Heads that are kept, and the characters of one and of its path. No token fits into such a path."""
KEPT_FIELDS = frozenset(
    {"Host", "Connection", "User-Agent", "Accept", "Accept-Encoding", "Accept-Language", "Content-Type"}
    | {"Content-Length", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-Ip"}
)
"""The fields of heads that are kept. Others may be secrets, or differ each time. Browsers always send others."""
_Parts = tuple[RequestStartLine, Lines, int, bool, bool]
kept: dict[bytes, _Parts] = {}
"""Heads of requests with a body, with their parts. A program sends the same head with every form of one length, and
reading it takes longer than finding it here."""

TOO_LARGE = b"431 Request Header Fields Too Large"
URI_TOO_LONG = b"414 URI Too Long"


def check_beginning(data: bytes, since: int, most: int) -> None:
    """Checks an incomplete head from `since` on, to refuse an invalid one without waiting for the rest.

    Raises HTTPInputError; Overlong beyond `most` bytes.
    """
    if len(data) > most:
        raise Overlong(TOO_LARGE if b"\r\n" in data[2:most] else URI_TOO_LONG)
    # Checks both bytes of a line end together.
    part = data[since - 1 if data[since - 1 : since] == b"\r" else since :]
    ends = part.count(b"\r\n")
    if part.count(b"\n") != ends or part.count(b"\r") - part.endswith(b"\r") != ends or part.translate(None, _POSSIBLE):
        raise HTTPInputError("Control characters, CR or LF alone, in a request head")


def read_head(data: bytes) -> Head:
    """The head in `data`, which includes the final empty line. Raises HTTPInputError."""
    parts = kept.get(data)
    if parts is None:
        parts = _parts_of(data)
        _keep(data, parts)
    start_line, lines, length, keep_alive, expects = parts
    # Handlers may change what they get.
    headers = headers_of({name: [*values] for name, values in lines.items()})
    return Head(start_line, headers, length, keep_alive, expects)


def _keep(data: bytes, parts: _Parts) -> None:
    """Keeps a head in which nothing is a secret. Of too many, the oldest goes."""
    start_line, lines, length, _, _ = parts
    if length > 0 and len(data) <= LONGEST_KEPT and KEPT_FIELDS.issuperset(lines):
        path = start_line.path
        if len(path) <= LONGEST_PATH and "?" not in path:
            while len(kept) >= MOST_KEPT:
                del kept[next(iter(kept))]
            kept[data] = parts


def _parts_of(data: bytes) -> _Parts:
    line = _REQUEST_LINE.match(data)
    if line is None:
        raise HTTPInputError("Malformed HTTP request line")
    # Counts a line that ends in LF alone too. llhttp refuses that, but searches the whole head for its error message.
    if data.count(b"\n") > MOST_FIELDS:
        raise Overlong(TOO_LARGE)
    method, target, version = line.groups()
    if target == b"*" and method != b"OPTIONS":
        raise HTTPInputError("Malformed HTTP request line")
    fields = _Fields()
    try:
        fields.feed(data if method in _PLAIN_METHODS else b"POST" + data[line.end(1) :])
    except HttpParserError as error:
        # Also catches the errors of `spelled`.
        if has_long_name(data):
            raise Overlong(TOO_LARGE) from None
        raise HTTPInputError(_in_words(data, error)) from None
    start_line = RequestStartLine(method.decode(), target.decode(), _VERSIONS[version])
    lines = fields.lines
    check_host(start_line, lines)
    length = 0
    if "Content-Length" in lines or "Transfer-Encoding" in lines:
        length = body_length(start_line, lines)
    keep_alive = version == b"1"
    if "Connection" in lines:
        options = {option.strip(" \t").lower() for option in ",".join(lines["Connection"]).split(",")}
        keep_alive = "close" not in options and (keep_alive or "keep-alive" in options)
    expects = "Expect" in lines and lines["Expect"][0].lower() == "100-continue" and version == b"1"
    return start_line, lines, length, keep_alive, expects


class _Fields:
    """Receives the fields from llhttp."""

    def __init__(self) -> None:
        self.lines: Lines = {}
        self.complete = False

    def feed(self, data: bytes) -> None:
        """Raises HttpParserError."""
        # A new parser for each head, because a parser keeps state. A request for an upgrade is read like any other.
        try:  # noqa: SIM105  # suppress() would cost every request a context manager
            HttpRequestParser(self).feed_data(data)
        except HttpParserUpgrade:
            pass
        if not self.complete:
            raise HttpParserError("The head does not end where it should")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by llhttp."""
        field = spelled(name)
        text = value.decode("latin-1").strip(" \t")
        if field in self.lines:
            self.lines[field].append(text)
        else:
            self.lines[field] = [text]

    def on_headers_complete(self) -> None:
        """Called by llhttp."""
        self.complete = True


def check_host(start_line: RequestStartLine, lines: Lines) -> None:
    """RFC 9112 3.2: one Host, which HTTP/1.0 may leave out. Raises HTTPInputError."""
    hosts = lines.get("Host")
    if hosts is None:
        if start_line.version != "HTTP/1.0":
            raise HTTPInputError("Missing Host header")
    elif len(hosts) > 1:
        raise HTTPInputError(f"Multiple host headers not allowed: {','.join(hosts)!r}")


def body_length(start_line: RequestStartLine, lines: Lines) -> int:
    """RFC 9112 6.3: the length of the body, or CHUNKED. Raises HTTPInputError for an ambiguous length."""
    codings, lengths = lines.get("Transfer-Encoding"), lines.get("Content-Length")
    if codings is not None:
        if lengths is not None:
            raise HTTPInputError("Message with both Transfer-Encoding and Content-Length")
        # RFC 9112 6.1: HTTP/1.0 has no transfer codings, so a proxy that forwarded one did not understand it.
        if len(codings) > 1 or codings[0].lower() != "chunked" or start_line.version == "HTTP/1.0":
            raise HTTPInputError(f"Unsupported Transfer-Encoding {','.join(codings)}")
        return CHUNKED
    assert lengths is not None
    if len(lengths) > 1 or "," in lengths[0]:
        raise HTTPInputError(f"Multiple unequal Content-Lengths: {','.join(lengths)!r}")
    if not re.fullmatch("[0-9]{1,19}", lengths[0]):
        raise HTTPInputError(f"Only integer Content-Length is allowed: {lengths[0]}")
    return int(lengths[0])


def _in_words(data: bytes, error: HttpParserError) -> str:
    """What is wrong with a head that llhttp refused, in Tornado's words where Tornado refuses it too."""
    line, _, rest = data.decode("latin-1").partition("\r\n")
    try:
        start_line = parse_request_start_line(line)
        lines: Lines = {}
        for name, value in HTTPHeaders.parse(rest).get_all():
            lines.setdefault(name, []).append(value)
        if "Content-Length" in lines or "Transfer-Encoding" in lines:
            body_length(start_line, lines)
    except HTTPInputError as found:
        return str(found)
    return str(error)
