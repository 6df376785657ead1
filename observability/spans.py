"""Where requests, calls and work in the background become spans of OpenTelemetry, if the operator wants traces.

Without traces, a request costs two comparisons and a piece of work in the background one, and the SDK is not imported:
`observability/otel.py` has all of it. A span has the pattern of a route, a method, a status, a request id, the name of
a script or of a host. It never has a path, a query, a user id, an address of a person or the text of an error.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from observability.tracing import CONTINUED, CURRENT, over

if TYPE_CHECKING:  # commands call other servers too, and need no Tornado
    from tornado.httputil import HTTPServerRequest


class CallSpan(Protocol):
    """The span of a call that a request makes."""

    def end(self, *, answer: str = "", failed: bool = False) -> None:
        """Ends the span. `answer` is a word of ours."""


class WorkSpan(Protocol):
    """The span of a piece of work in the background."""

    def fail(self) -> None:
        """Marks the work as failed, if it raises nothing."""


class Spans(Protocol):
    """What makes spans."""

    def begin(self, request: HTTPServerRequest, route: str) -> None:
        """Begins the span of a request, given the name of its route."""

    def finish(self, request: HTTPServerRequest, status: int) -> None:
        """Ends the span of a request."""

    def call(self, kind: str, name: str) -> CallSpan | None:
        """Begins the span of a call of the running request: of a `script` or of a `host`. None without such a request,
        and if its trace is not sampled."""

    def work(self, name: str, about: str, cause: HTTPServerRequest | None) -> AbstractContextManager[WorkSpan]:
        """The span of a piece of work in the background, for a block."""


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


def working(name: str, about: str = "", *, cause: HTTPServerRequest | None = None) -> AbstractContextManager[Any]:
    """The span of a piece of work in the background, for a block: a trace of its own, linked to the request that caused
    it. Scripts and calls in the block are below it, and it fails with the block. Yields a WorkSpan, or None without
    traces. `name` and `about` are words of ours, which never name a person."""
    return _NOTHING if in_use.spans is None else in_use.spans.work(name, about, cause)


async def continued(request: HTTPServerRequest, name: str, work: Coroutine[Any, Any, None]) -> None:
    """Does the work of a request, also after its answer, in a task of its own. `name`: of its span."""
    CONTINUED.set(request)
    with working(name, cause=request):
        await work


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
