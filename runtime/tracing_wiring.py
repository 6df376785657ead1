"""Turns traces on for a process, if the settings name a collector."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

from handlers.ops.credits import OPS_ROUTES
from handlers.routes import ROUTES
from latchkey import __version__
from observability.spans import Spans, in_use, working
from settings.declared import Settings
from store.engine.background import watched
from store.engine.scripts import Reply, Run, Value
from store.wiring import Store

if TYPE_CHECKING:
    from observability.otel import RequestSpans

_OPEN_PART = re.compile(r"\(.*?\)")


@asynccontextmanager
async def tracing(current: Callable[[], Settings], store: Store) -> AsyncIterator[None]:
    """Makes spans of requests while the block runs, and sends the last ones after it. `current` gives the present
    settings: a reload changes the header."""
    if not current().trace_otlp:
        yield
        return
    in_use.spans = spans = open_spans(current)
    store.scripts.wrap(lambda run: traced(run, spans))
    watched.begin = working
    try:
        yield
    finally:
        in_use.spans = watched.begin = None
        await spans.close()


def open_spans(current: Callable[[], Settings]) -> RequestSpans:
    """Makes the spans of this process; it has threads of its own, so no fork may follow."""
    from observability.otel import RequestSpans  # the packages of an extra

    settings = current()

    def trusts(peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:  # a socket of the file system
            return False
        return any(address in network for network in settings.trace_parents)

    return RequestSpans(
        settings.trace_otlp,
        lambda: current().trace_otlp_header,
        settings.trace_ratio,
        version=__version__,
        patterns={route.name: pattern_of(route.pattern) for route in (*ROUTES, *OPS_ROUTES)},
        trusts=trusts,
    )


def pattern_of(pattern: str) -> str:
    """The pattern of a route for people: `/api/v1/data/{}`."""
    return _OPEN_PART.sub("{}", pattern).replace("\\", "")


def traced(run: Run, spans: Spans) -> Run:
    """`run` with a span for each script of a request whose trace is sampled."""

    async def traced_run(name: str, keys: Mapping[str, str], /, **args: Value) -> Reply:
        span = spans.call("script", name)
        if span is None:
            return await run(name, keys, **args)
        try:
            reply = await run(name, keys, **args)
        except BaseException:
            span.end(failed=True)
            raise
        span.end(answer=reply.word)
        return reply

    return traced_run
