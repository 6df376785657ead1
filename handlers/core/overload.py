"""What is sent away when there is more than the process can do: at once, with next to no work, and before anything is
changed. So what is taken on is answered in time, however much is asked for."""

from __future__ import annotations

import html
import random
import re
from time import time
from typing import Any

import orjson
from tornado.httputil import HTTPConnection, HTTPHeaders, ResponseStartLine

from handlers.core.base import BaseHandler, http_date
from handlers.core.concurrency import OVERLOADED, later
from handlers.core.errors import CATALOGUE
from handlers.core.params import JSON
from handlers.core.server_state import RouteTarget, ServerState
from observability.tracing import new_id, sent_id
from runtime.http.fields import headers_of

SHORT_BODY = 16_384
"""Bytes of a body that is passed over, so that its connection can be kept."""

# It loads nothing: that would be sent away, too.
_PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Not available right now</title>
</head>
<body>
<main>
<h1>Not available right now</h1>
<p>{html.escape(OVERLOADED.description)}</p>
</main>
</body>
</html>
""".encode()
_PAGE_HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),
)


def no_room(application: ServerState, target: RouteTarget | None) -> bool:
    """Whether a request goes away, where as many are at work as may be. Health is always told; and what finishes
    something has a reserve, since all that led up to it would be lost."""
    if target is None:
        return True
    handler, facts = target
    if handler.vital:
        return False
    return not facts["policy"].finishes or application.in_flight >= application.bound + application.reserve


def has_long_body(headers: HTTPHeaders) -> bool:
    """Whether a body is on the way that nobody wants to wait for."""
    length = headers.get("Content-Length", "0")
    return "Transfer-Encoding" in headers or not length.isdecimal() or int(length) > SHORT_BODY


def send_away(
    application: ServerState, target: RouteTarget | None, method: str, asked: HTTPHeaders, connection: HTTPConnection
) -> None:
    """Answers 503 with Retry-After, in the form that the address has for errors."""
    application.sent_away.count(application, target)
    handler: type[BaseHandler] = target[0] if target else BaseHandler
    request_id = _id_of(application, asked, connection)
    as_page = not handler.lean and "text/html" in asked.get("Accept", "")
    given, body = _form(handler, as_page, request_id)
    given["Date"] = http_date(int(time()))
    given["X-Request-Id"] = request_id
    given["Retry-After"] = str(later())
    if application.site.hsts:
        given["Strict-Transport-Security"] = application.site.hsts
    headers = headers_of({name: [value] for name, value in given.items()})
    start_line = ResponseStartLine("", CATALOGUE[OVERLOADED.code].status, "Service Unavailable")
    connection.write_headers(start_line, headers, b"" if method == "HEAD" else body)
    connection.finish()


def _id_of(application: ServerState, asked: HTTPHeaders, connection: HTTPConnection) -> str:
    """As a request that is taken on has it."""
    sent = asked.get_list("X-Request-Id")
    context: Any = connection.context  # type: ignore[attr-defined]  # of all connections of servers
    return (sent and application.site.trusts(context.remote_ip) and sent_id(sent)) or new_id()


# A GET whose line and headers are in order as far as lines go, on a connection that is kept, without a body.
_PLAIN = re.compile(rb"GET (/[!\"$-~]*) HTTP/1\.1\r\n(?:[!-9;-~]+:[\t !-~]*\r\n)+\r\n")
_NOT_PLAIN = re.compile(rb"\n(?:content-length|transfer-encoding|connection|expect|upgrade):", re.IGNORECASE)


def quick_answer(application: ServerState, head: bytes) -> bytes | None:
    """What `send_away` answers, without a request being made of the head: half of what one that is sent away costs is
    its reading. None for whatever is not plain: that goes the usual way, where it may be refused as malformed."""
    plain = _PLAIN.fullmatch(head)
    if plain is None or _NOT_PLAIN.search(head):
        return None
    target, _ = application.target(plain[1].partition(b"?")[0].decode())
    if not no_room(application, target):
        return None
    handler: type[BaseHandler] = target[0] if target else BaseHandler
    as_page = not handler.lean and b"text/html" in head
    made = _QUICK.get((handler, as_page))
    if made is None:
        if handler.lean and handler.error_body(OVERLOADED, "") != BaseHandler.error_body(OVERLOADED, ""):
            return None  # its body is another for each request
        made = _QUICK[handler, as_page] = _rendered(handler, as_page)
    application.sent_away.count(application, target)
    before, after = made
    request_id = random.getrandbits(64)
    told = f"Date: {http_date(int(time()))}\r\nX-Request-Id: {request_id:016x}\r\nRetry-After: {later()}\r\n"
    if application.site.hsts:
        told += f"Strict-Transport-Security: {application.site.hsts}\r\n"
    return before + told.encode() + after


_QUICK: dict[tuple[type[BaseHandler], bool], tuple[bytes, bytes]] = {}


def _rendered(handler: type[BaseHandler], as_page: bool) -> tuple[bytes, bytes]:
    """The answer, without the lines that differ each time: what stands before them, and behind."""
    given, body = _form(handler, as_page, "")
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {CATALOGUE[OVERLOADED.code].status} Service Unavailable\r\n{lines}".encode(), b"\r\n" + body


def _form(handler: type[BaseHandler], as_page: bool, request_id: str) -> tuple[dict[str, str], bytes]:
    """The headers that do not differ each time, and the body."""
    given = dict(handler.constant_headers)
    if as_page:
        given |= _PAGE_HEADERS
        body = _PAGE
    else:
        given["Content-Type"] = JSON
        body = orjson.dumps(handler.error_body(OVERLOADED, request_id))
    return {**given, "Content-Length": str(len(body))}, body
