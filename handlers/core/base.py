"""The base class of all handlers: request ids, one form for errors, limit headers, no ETag, no 304 (SPEC 9)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import orjson
from tornado.escape import json_encode
from tornado.httputil import HTTPServerRequest, format_timestamp
from tornado.web import HTTPError, RequestHandler

from handlers.core.access_log import method_of, shown
from handlers.core.auth.challenges import CHALLENGED, challenges
from handlers.core.client_address import window_address
from handlers.core.devices import device_words
from handlers.core.errors import CATALOGUE, NOT_LOGGED, PUBLIC_NAME, UNAVAILABLE, cause_of, is_defect, refusal_of
from handlers.core.params import JSON, Params, media_type, parse_body
from handlers.core.policy import Policy
from handlers.core.server_state import ServerState
from handlers.core.site import Site
from observability.spans import begin_request, end_request
from observability.tracing import request_id
from runtime.http.tornado_private import QuickHandler, answer_fields, put_fields
from store.app_log import Cause, Door
from store.apps.registration import Registration
from store.clock import wall
from store.crypto.dpop import ALGORITHMS
from store.phrases import Phrase
from store.refused import Refused, SignedOut, Unproved
from store.results import Visitor, Window
from store.wiring import Store

log = logging.getLogger("latchkey.http")

DEVICE_COOKIE = "device"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
EXPOSED = (
    "ETag, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id, Request-Id, "
    "Idempotent-Replayed, X-Should-Retry, WWW-Authenticate, DPoP-Nonce"
)
ALLOWED_HEADERS = (
    "Authorization, DPoP, Content-Type, If-Match, If-None-Match, Idempotency-Key, Traceparent, Tracestate, "
    "MCP-Protocol-Version"
)
ALLOWED_METHODS = "GET, HEAD, POST, PUT, DELETE, OPTIONS"

XSRF_WRONG = Phrase(
    "Nothing was done, because this form is too old or cookies are blocked (XSRF token). Allow cookies, reload the "
    "page, and send the form again."
)


class BaseHandler(QuickHandler):
    """One request. `policy` is the route's."""

    application: ServerState
    policy: Policy

    def initialize(self, policy: Policy) -> None:
        """Keeps the route's policy."""
        self.policy = policy
        self.window: Window | None = None
        self.application.in_flight += 1
        self.aside = False
        # Set if the client tried HTTP Basic, so that a 401 names the scheme (RFC 6749 5.2).
        self.basic_tried = False

    @property
    def site(self) -> Site:
        """The server's settings and services."""
        return self.application.site

    @property
    def store(self) -> Store:
        """The open store."""
        return self.application.site.store

    @property
    def request_id(self) -> str:
        """The id of this request in the log and in the response."""
        return request_id(self.request)

    lean = False
    """Whether requests reach this handler without Tornado's parsing: see `ApiRequest` in
    handlers/core/application.py."""
    only_json = False
    """Whether errors are JSON, whatever the client prefers."""
    takes_long = False  # a LongBodyHandler does
    vital = False
    """Whether the request is answered even under overload."""
    too_large = "payload_too_large"
    counted_app = ""
    """The client id of the app that made the call, for the app's figures."""
    calling: Registration | None = None
    """The app whose access token was sent, live or not."""
    counted_api = ""
    """The client id of the API that made the call. APIs have no figures of their own, but rows in metrics and log."""
    logged_app = ""
    """The client id of the app whose log has a refusal of this request; empty until it is known."""
    door: Door = "call"
    """Where the log says that the app was refused."""
    streamed = 0
    """Bytes of a streamed body that were sent."""

    @property
    def needed(self) -> str:
        """The scopes that this method needs; the token must carry one of them."""
        writes = self.request.method not in ("GET", "HEAD")
        return (writes and self.policy.write_scope) or self.policy.scope

    @property
    def max_body(self) -> int:
        """The largest body in bytes."""
        return self.site.max_body

    @property
    def visitor(self) -> Visitor:
        """The origin of the request, for the audit trail."""
        known = self.get_cookie(self.site.cookie(DEVICE_COOKIE)) or ""
        return Visitor(self.address, device_words(self.request.headers.get("User-Agent", "")), known)

    @property
    def address(self) -> str:
        """The client's address. Only trusted proxies can change it."""
        request, site = self.request, self.site
        if "X-Forwarded-For" in request.headers and not site.trusts(request.remote_ip):
            self.application.warn_of_proxy()
        return site.address(request)

    @property
    def counted_address(self) -> str:
        """The client's address in the form that rate limits count."""
        return window_address(self.address)

    def clear(self) -> None:
        """Resets the response. Tornado's method formats the date for each response and checks values that never change,
        which is a seventh of a request's cost."""
        lines = {"Date": [http_date(int(wall.time()))]}
        for name, value in self.constant_headers:
            lines[name] = [value]
        request = self.request
        site = self.application.site
        lines["X-Request-Id"] = [request_id(request, trusted=site.trusts(request.remote_ip))]
        hsts = site.hsts
        if hsts:
            lines["Strict-Transport-Security"] = [hsts]
        self.start_answer(lines)
        self.set_default_headers()

    constant_headers: tuple[tuple[str, str], ...] = (
        ("Server", "Latchkey"),
        ("Content-Type", "text/html; charset=UTF-8"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
        # For responses that are not pages: nothing in them runs, and nothing frames them.
        ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    )
    """Sent with every response, errors included, in addition to the date and the request id. Spelled `Header-Case`."""

    def task_begins(self) -> None:
        """What is logged from here on belongs to this request."""
        begin_request(self.request, self.policy.route)

    def prepare(self) -> None:
        """Checks the size of the body. Raises Refused with the code `too_large`."""
        if len(self.request.body) > self.max_body:
            raise Refused(self.too_large)

    def on_finish(self) -> None:
        """Ends the request for the drain, which waits for requests in progress."""
        self.application.in_flight -= 1
        if self.aside:
            self.application.bound -= 1
        if self.counted_app:
            self.application.site.store.app_stats.called(self.counted_app, self.get_status() == 429)
        end_request(self.request, self.get_status())
        # Tornado's templates leave a reference cycle that keeps the request until the next garbage collection.
        self.request.body, self.request.arguments, self.request.body_arguments = b"", {}, {}

    def get_cookie(self, name: str, default: Any = None) -> Any:
        """The cookie of this name, the last if there are several. Tornado makes an object of each cookie, which can
        take 30 ms a request. None of our values needs quotes, so none is unquoted."""
        found = getattr(self.request, "latchkey_cookies", None)
        if found is None:
            pairs = (crumb.partition("=") for crumb in self.request.headers.get("Cookie", "").split(";"))
            found = {name.strip(): value.strip() for name, _, value in pairs}
            self.request.latchkey_cookies = found  # type: ignore[attr-defined]  # set like latchkey_id
        return found.get(name, default)

    def read_cookie(self, name: str) -> str | None:
        """The value of our cookie with this short name."""
        value: str | None = self.get_cookie(self.site.cookie(name))
        return value

    def write_cookie(self, name: str, value: str | None, lasts: int = 0) -> None:
        """Sets our cookie for `lasts` ms, or clears it."""
        flags: dict[str, Any] = {"path": "/", "httponly": True, "samesite": "Lax", "secure": self.site.secure}
        if value is None:
            self.clear_cookie(self.site.cookie(name), **flags)
        else:
            self.set_cookie(self.site.cookie(name), value, max_age=lasts // 1000, **flags)

    def step_aside(self) -> None:
        """From here on this request takes long and does little: it leaves its room to others, until it is finished."""
        if not self.aside and not self.finished:
            self.aside = True
            self.application.bound += 1

    def check_etag_header(self) -> bool:
        """False: there is no conditional GET in v1, even if a handler sets an ETag (SPEC 9)."""
        return False

    def compute_etag(self) -> None:
        """None: Tornado's own ETag and 304 are off (SPEC 9)."""
        return None

    def check_xsrf_cookie(self) -> None:
        """Checks the XSRF token where cookies carry authority, whatever Sec-Fetch-Mode says."""
        if self.policy.xsrf:
            try:
                super().check_xsrf_cookie()
            except HTTPError:
                self.store.security.note("form_refused", detail=f"{self.policy.route} xsrf")
                raise Refused("access_denied", XSRF_WRONG) from None

    async def head(self, *args: str, **kwargs: str) -> None:
        """Like GET, without the body."""
        answered = cast(Any, self.get(*args, **kwargs))
        if answered is not None:
            await answered

    def body(self) -> Params:
        """The parameters of the body."""
        return parse_body(media_type(self.request), self.request.body)

    def write_window(self, window: Window) -> None:
        """Writes the figures of the window that counted this request (SPEC 8.2)."""
        self.window = window
        figures = {
            "X-Ratelimit-Limit": str(window.limit),
            "X-Ratelimit-Remaining": str(window.remaining),
            "X-Ratelimit-Reset": str(window.reset),
        }
        put_fields(answer_fields(self), figures)

    def write_json(self, value: dict[str, Any], status: int = 200) -> None:
        """Writes a JSON object."""
        if status != 200:
            self.set_status(status)
        body = orjson.dumps(value)
        self.finish_at_once(body, {"Content-Type": JSON, "Content-Length": str(len(body))})

    def write_whole(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Writes the body, JSON unless the headers say otherwise. Their names are spelt `Header-Case`, and nothing in
        them comes from outside: neither is checked."""
        self.finish_at_once(body, {"Content-Type": JSON, **headers, "Content-Length": str(len(body))})

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Sends the catalogue's error for any exception."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        refusal = refusal_of(status_code, error)
        super().send_error(CATALOGUE[refusal.code].status, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Renders a refusal. Headers are set here, since Tornado clears those that were set before."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        refusal = refusal_of(status_code, error)
        self.site.measures.refused(self.policy.route, refusal.code)
        if refusal.code == UNAVAILABLE:
            self.site.measures.unavailable(self.policy.route, cause_of(error))
        self.log_refusal(refusal)
        if refusal.window:
            self.write_window(refusal.window)
        if refusal.retry_after is not None:
            self.set_header("Retry-After", str(refusal.retry_after))
        if refusal.code == "method_not_allowed":
            self.set_header("Allow", ", ".join(self.methods()))  # RFC 9110 15.5.6
        self.write_refusal(refusal)

    def log_refusal(self, refusal: Refused) -> None:
        """Counts a refusal in the log of its app, if it tells the owner something."""
        client = self.logged_app or self.counted_app
        if client and refusal.code not in NOT_LOGGED:
            description = refusal.description or CATALOGUE[refusal.code].description
            code = PUBLIC_NAME.get(refusal.code, refusal.code)
            self.store.app_log.refused(client, Cause(self.door, code, description, refusal.value))

    def methods(self) -> list[str]:
        """The methods that this address answers."""
        own = [name for name in self.SUPPORTED_METHODS if not _is_inherited(type(self), name.lower())]
        return [name for name in own if name != "HEAD" or "GET" in own]

    @classmethod
    def error_body(cls, refusal: Refused, request_id: str) -> dict[str, Any]:
        """SPEC 2.5: the error body."""
        body: dict[str, Any] = {
            "error": PUBLIC_NAME.get(refusal.code, refusal.code),
            "error_description": refusal.description or CATALOGUE[refusal.code].description,
        }
        if refusal.code == "rate_limited":
            body["retryAfter"] = refusal.retry_after
        return body

    def error_of(self, refusal: Refused) -> dict[str, Any]:
        """The error body of this request."""
        return self.error_body(refusal, self.request_id)

    def write_refusal(self, refusal: Refused) -> None:
        """Writes the error as JSON, with the challenge that belongs to it."""
        if refusal.code == "invalid_client" and self.basic_tried:
            self.set_header("WWW-Authenticate", 'Basic realm="latchkey", charset="UTF-8"')
        if refusal.code in CHALLENGED:
            scheme = self.request.headers.get("Authorization", "").partition(" ")[0].lower()
            algorithms = self.calling.rules.among(ALGORITHMS) if self.calling else ALGORITHMS
            metadata = "" if self.policy.own_tokens else f"{self.site.base_url}{RESOURCE_METADATA}"
            self.set_header("WWW-Authenticate", challenges(refusal.code, scheme, self.needed, metadata, algorithms))
        self.set_header("Content-Type", "application/json")
        self.finish(json_encode(self.error_of(refusal)))

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """See `log_failure`."""
        log_failure(self.request, (typ, value, tb))


def log_failure(request: HTTPServerRequest, raised: Any) -> None:
    """Logs a traceback for defects, one line if store, hasher or a secret key is missing. Never logs the query."""
    error: BaseException | None = raised[1]
    if is_defect(error):
        log.error("%s %s failed [%s]", method_of(request), shown(request.path), request_id(request), exc_info=raised)
    elif not isinstance(error, (Refused, SignedOut, Unproved, HTTPError)):
        reason, level = str(error) or type(error).__name__, getattr(error, "level", logging.WARNING)
        log.log(level, "%s %s: %s [%s]", method_of(request), shown(request.path), reason, request_id(request))
    # A frame of the call often refers to the error that went through it. This cycle would keep the request and its body
    # until the next garbage collection, which is rare.
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


@lru_cache(maxsize=1024)
def http_date(seconds: int) -> str:
    """A Unix time in the format of the headers Date and Last-Modified. Most callers ask for the present."""
    return format_timestamp(seconds)


def _is_inherited(handler: type[RequestHandler], name: str) -> bool:
    return getattr(handler, name) is getattr(RequestHandler, name)
