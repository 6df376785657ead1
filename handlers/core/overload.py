"""Refuses requests under overload: at once, at almost no cost, and before anything changes. So the requests that are
accepted are answered in time, however many arrive."""

from __future__ import annotations

import html
import random
from typing import Any

import orjson
from tornado.httputil import HTTPConnection, HTTPHeaders

from handlers.core.base import BaseHandler, http_date
from handlers.core.concurrency import OVERLOADED, later
from handlers.core.errors import CATALOGUE
from handlers.core.params import JSON
from handlers.core.server_state import RouteTarget, ServerState
from observability.tracing import new_id, sent_id
from runtime.http.wire import RawAnswer, answer_whole, names_html, plain_path
from store.clock import wall

STATUS, REASON = CATALOGUE[OVERLOADED.code].status, "Service Unavailable"
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
    """Whether a request must be refused when the limit is reached. Health checks are always answered. The last step of
    a flow has a reserve, because a refusal would waste all steps before it."""
    if target is None:
        return True
    handler, facts = target
    if handler.vital:
        return False
    return not facts["policy"].finishes or application.in_flight >= application.bound + application.reserve


def send_away(
    application: ServerState, target: RouteTarget | None, method: str, headers: HTTPHeaders, connection: HTTPConnection
) -> None:
    """Answers 503 with Retry-After, in the error format of the address."""
    application.sent_away.count(application, target)
    handler: type[BaseHandler] = target[0] if target else BaseHandler
    request_id = _id_of(application, headers, connection)
    as_page = not handler.only_json and "text/html" in headers.get("Accept", "")
    given, body = _form(handler, as_page, request_id)
    given |= _changing_fields(application, request_id)
    answer_whole(connection, method, STATUS, REASON, given, body)


def _id_of(application: ServerState, headers: HTTPHeaders, connection: HTTPConnection) -> str:
    """The request id, chosen the same way as for accepted requests."""
    sent = headers.get_list("X-Request-Id")
    context: Any = connection.context  # type: ignore[attr-defined]  # of all connections of servers
    return (sent and application.site.trusts(context.remote_ip) and sent_id(sent)) or new_id()


def quick_answer(application: ServerState, head: bytes) -> bytes | None:
    """What `send_away` answers, without a request being made of the head: half of what one that is sent away costs is
    its reading. None for whatever is not plain: that goes the usual way, where it may be refused as malformed."""
    path = plain_path(head)
    if path is None:
        return None
    target, _ = application.target(path)
    if not no_room(application, target):
        return None
    handler: type[BaseHandler] = target[0] if target else BaseHandler
    as_page = not handler.only_json and names_html(head)
    made = _QUICK.get((handler, as_page))
    if made is None:
        if handler.only_json and handler.error_body(OVERLOADED, "") != BaseHandler.error_body(OVERLOADED, ""):
            return None  # its body is another for each request
        made = _QUICK[handler, as_page] = RawAnswer.of(STATUS, REASON, *_form(handler, as_page, ""))
    application.sent_away.count(application, target)
    return made.with_fields(_changing_fields(application, f"{random.getrandbits(64):016x}"))


_QUICK: dict[tuple[type[BaseHandler], bool], RawAnswer] = {}


def _changing_fields(application: ServerState, request_id: str) -> dict[str, str]:
    """The headers that differ each time."""
    given = {"Date": http_date(int(wall.time())), "X-Request-Id": request_id, "Retry-After": str(later())}
    if application.site.hsts:
        given["Strict-Transport-Security"] = application.site.hsts
    return given


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
