"""Refuses requests under overload: at once, at almost no cost, and before anything changes. So the requests that are
accepted are answered in time, however many arrive."""

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
"""Bytes of a body that are discarded to keep the connection."""

# The page loads nothing, because further requests would be refused too.
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
    """Whether a request must be refused when the limit is reached. Health checks are always answered. The last step of
    a flow has a reserve, because a refusal would waste all steps before it."""
    if target is None:
        return True
    handler, facts = target
    if handler.vital:
        return False
    return not facts["policy"].finishes or application.in_flight >= application.bound + application.reserve


def has_long_body(headers: HTTPHeaders) -> bool:
    """Whether a body is arriving that is too long to wait for."""
    length = headers.get("Content-Length", "0")
    return "Transfer-Encoding" in headers or not length.isdecimal() or int(length) > SHORT_BODY


def send_away(
    application: ServerState, target: RouteTarget | None, method: str, asked: HTTPHeaders, connection: HTTPConnection
) -> None:
    """Answers 503 with Retry-After, in the error format of the address."""
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
    """The request id, chosen the same way as for accepted requests."""
    sent = asked.get_list("X-Request-Id")
    context: Any = connection.context  # type: ignore[attr-defined]  # of all connections of servers
    return (sent and application.site.trusts(context.remote_ip) and sent_id(sent)) or new_id()


# A GET without a body on a connection that stays open, whose lines are well-formed.
_PLAIN = re.compile(rb"GET (/[!\"$-~]*) HTTP/1\.1\r\n(?:[!-9;-~]+:[\t !-~]*\r\n)+\r\n")
_NOT_PLAIN = re.compile(rb"\n(?:content-length|transfer-encoding|connection|expect|upgrade):", re.IGNORECASE)


def quick_answer(application: ServerState, head: bytes) -> bytes | None:
    """The answer of `send_away`, but without parsing the head, which is half of the cost of a refusal. None for any
    head that is not plain: it takes the usual path, where it may be refused as malformed."""
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
            return None  # its body differs for each request
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
    """The answer without the lines that differ each time: the part before them, and the part after them."""
    given, body = _form(handler, as_page, "")
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {CATALOGUE[OVERLOADED.code].status} Service Unavailable\r\n{lines}".encode(), b"\r\n" + body


def _form(handler: type[BaseHandler], as_page: bool, request_id: str) -> tuple[dict[str, str], bytes]:
    """The headers that are always the same, and the body."""
    given = dict(handler.constant_headers)
    if as_page:
        given |= _PAGE_HEADERS
        body = _PAGE
    else:
        given["Content-Type"] = JSON
        body = orjson.dumps(handler.error_body(OVERLOADED, request_id))
    return {**given, "Content-Length": str(len(body))}, body
