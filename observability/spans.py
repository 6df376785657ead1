"""Where requests and calls become spans of OpenTelemetry, if the operator wants traces.

Without traces, a request costs two comparisons, and the SDK is not imported: `observability/otel.py` has all of it. A
span has the pattern of a route, a method, a status, a request id, the name of a script or of a host. It never has a
path, a query, a user id, an address of a person or the text of an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from observability.tracing import CURRENT, over

if TYPE_CHECKING:  # commands call other servers too, and need no Tornado
    from tornado.httputil import HTTPServerRequest


class CallSpan(Protocol):
    """The span of a call that a request makes."""

    def end(self, *, answer: str = "", failed: bool = False) -> None:
        """Ends the span. `answer` is a word of ours."""


class Spans(Protocol):
    """What makes spans."""

    def begin(self, request: HTTPServerRequest, route: str) -> None:
        """Begins the span of a request, given the name of its route."""

    def finish(self, request: HTTPServerRequest, status: int) -> None:
        """Ends the span of a request."""

    def call(self, kind: str, name: str) -> CallSpan | None:
        """Begins the span of a call of the running request: of a `script` or of a `host`. None without such a request,
        and if its trace is not sampled."""


class _InUse:
    spans: Spans | None = None


in_use = _InUse()
"""What makes spans in this process; `spans` is None without traces."""

_NOTHING: AbstractContextManager[None] = nullcontext()


def begin_request(request: HTTPServerRequest, route: str) -> None:
    """Notes in the request's task what is logged and called from here on, and begins a span; `route` is a name."""
    CURRENT.set(request)
    if in_use.spans is not None:
        in_use.spans.begin(request, route)


def end_request(request: HTTPServerRequest, status: int) -> None:
    """Ends a request and its span."""
    if in_use.spans is not None:
        in_use.spans.finish(request, status)
    over(request)


def outgoing(url: str) -> AbstractContextManager[None]:
    """The span of a call to another server, for a block. It has the host alone, and fails with the block."""
    return _NOTHING if in_use.spans is None else _outgoing(in_use.spans, url)


@contextmanager
def _outgoing(spans: Spans, url: str) -> Iterator[None]:
    span = spans.call("host", urlsplit(url).hostname or "")
    try:
        yield
    except BaseException:
        if span is not None:
            span.end(failed=True)
        raise
    if span is not None:
        span.end()
