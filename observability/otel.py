"""Traces by OpenTelemetry's SDK. Imported only if the operator names a collector: it is in the extra `tracing`."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

import requests
from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from tornado.httputil import HTTPServerRequest

from observability import tracing
from observability.tracing import Trace, read_trace, request_id

log = logging.getLogger("latchkey.traces")

WHOLE_SECONDS: Final = 10.0
"""For one request to the collector, its retries included."""
LAST_SECONDS: Final = 3.0
"""For sending the last spans when the process ends."""
QUEUED, BATCH, PAUSE_SECONDS = 2048, 512, 2.0
"""Spans that wait, at most (later ones are dropped); spans in a request; the time between two requests."""
METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
OTHER_METHOD: Final = "_OTHER"
"""As the conventions for HTTP name every other method: a client can send any word."""


class BoundedSession(requests.Session):
    """A session that reads only the head of an answer, and drops its text: the exporter would log that. `header` gives
    a header, or nothing; it is asked at each request."""

    def __init__(self, header: Callable[[], tuple[str, str] | None]) -> None:
        super().__init__()
        self._header = header
        self.trust_env = False  # neither proxies nor .netrc: the settings alone say where spans go

    def request(self, method: Any, url: Any, *words: Any, **options: Any) -> requests.Response:
        """As in requests, without redirects and without the body."""
        header = self._header()
        options["headers"] = {**(options.get("headers") or {}), **dict([header] if header else [])}
        response = super().request(method, url, *words, **{**options, "allow_redirects": False, "stream": True})
        response.close()
        found = requests.Response()
        # The exporter would take a redirect for success.
        found.status_code = 400 if 300 <= response.status_code < 400 else response.status_code
        found.headers, found.reason = response.headers, ""
        return found


class _Call:
    """The span of a call."""

    __slots__ = ("_span",)

    def __init__(self, span: api.Span) -> None:
        self._span = span

    def end(self, *, answer: str = "", failed: bool = False) -> None:
        if answer:
            self._span.set_attribute("latchkey.answer", answer)
        if failed:
            self._span.set_status(api.StatusCode.ERROR)
        self._span.end()


_WORK: ContextVar[api.Span | None] = ContextVar("latchkey_work", default=None)
"""The span of the work in the background that the running task does."""


class _Work:
    """The span of such work, for who does it."""

    __slots__ = ("_span",)

    def __init__(self, span: api.Span) -> None:
        self._span = span

    def fail(self) -> None:
        self._span.set_status(api.StatusCode.ERROR)


class RequestSpans:
    """Makes the spans of a process. `patterns`: the pattern of each route by its name. `trusts`: whether a peer may
    continue its trace here."""

    def __init__(
        self,
        url: str,
        header: Callable[[], tuple[str, str] | None],
        ratio: float,
        *,
        version: str,
        patterns: Mapping[str, str],
        trusts: Callable[[str], bool],
    ) -> None:
        exporter = OTLPSpanExporter(
            url,
            timeout=WHOLE_SECONDS,
            compression=Compression.NoCompression,
            session=BoundedSession(header),
        )
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(ratio)),
            resource=Resource.create({"service.name": "latchkey", "service.version": version}),
            shutdown_on_exit=False,
        )
        batches = BatchSpanProcessor(
            exporter,
            max_queue_size=QUEUED,
            schedule_delay_millis=PAUSE_SECONDS * 1000,
            max_export_batch_size=BATCH,
        )
        self._provider.add_span_processor(batches)
        self._tracer = self._provider.get_tracer("latchkey", version)
        self._patterns = patterns
        self._trusts = lru_cache(maxsize=1000)(trusts)

    def begin(self, request: HTTPServerRequest, route: str) -> None:
        """Begins the span of a request. The trace in its log lines, and of its calls, is this one."""
        if hasattr(request, "latchkey_span"):
            return  # its body was long, and came in a task of its own
        method = request.method if request.method in METHODS else OTHER_METHOD
        pattern = self._patterns.get(route, "")
        attributes = {"http.request.method": str(method), "latchkey.route": route}
        if pattern:
            attributes["http.route"] = pattern
        name = f"{method if method != OTHER_METHOD else 'HTTP'} {pattern or route}"
        parent, state = self._parent(request)
        span = self._tracer.start_span(name, parent, api.SpanKind.SERVER, attributes)
        context = span.get_span_context()
        flags = f"{int(context.trace_flags) & 0x03:02x}"
        found = Trace(api.format_trace_id(context.trace_id), api.format_span_id(context.span_id), flags, state)
        request.latchkey_span = span  # type: ignore[attr-defined]  # set like latchkey_id
        request.latchkey_trace = found  # type: ignore[attr-defined]  # as `trace_of` sets it

    def _parent(self, request: HTTPServerRequest) -> tuple[Any, str]:
        """The context of the caller's span, and its state; an empty context for a caller that may not continue its
        trace."""
        parents = request.headers.get_list("Traceparent")
        sent = None
        if parents and self._trusts(request.remote_ip or ""):
            sent = read_trace(parents, request.headers.get_list("Tracestate"))
        if sent is None:
            return api.set_span_in_context(api.INVALID_SPAN), ""
        of = api.SpanContext(
            int(sent.trace_id, 16),
            int(parents[0].split("-")[2], 16),
            is_remote=True,
            trace_flags=api.TraceFlags(int(sent.flags, 16)),
        )
        return api.set_span_in_context(api.NonRecordingSpan(of)), sent.state

    def finish(self, request: HTTPServerRequest, status: int) -> None:
        """Ends the span of a request."""
        span: api.Span | None = getattr(request, "latchkey_span", None)
        if span is None or not span.is_recording():
            return
        span.set_attribute("http.response.status_code", status)
        span.set_attribute("latchkey.request_id", request_id(request))
        if status >= 500:
            span.set_status(api.StatusCode.ERROR)
        span.end()

    def call(self, kind: str, name: str) -> _Call | None:
        """Begins the span of a call of the running work or request. None if its trace is not sampled."""
        of = _WORK.get()
        if of is None or not of.is_recording():
            of = getattr(tracing.current(), "latchkey_span", None)
        if of is None or not of.is_recording():
            return None
        if kind == "script":
            title, attributes = name, {"db.system.name": "redis", "latchkey.script": name}
        else:
            title, attributes = f"call {name}", {"server.address": name}
        return _Call(self._tracer.start_span(title, api.set_span_in_context(of), api.SpanKind.CLIENT, attributes))

    @contextmanager
    def work(self, name: str, about: str, cause: HTTPServerRequest | None) -> Iterator[_Work]:
        """The span of a piece of work in the background, for a block."""
        attributes = {"latchkey.work": name, **({"latchkey.about": about} if about else {})}
        of: api.Span | None = getattr(cause, "latchkey_span", None)
        links = [api.Link(of.get_span_context())] if of is not None else []
        nothing = api.set_span_in_context(api.INVALID_SPAN)
        span = self._tracer.start_span(name, nothing, api.SpanKind.INTERNAL, attributes, links)
        before = _WORK.set(span)
        try:
            yield _Work(span)
        except Exception:
            span.set_status(api.StatusCode.ERROR)
            raise
        finally:
            _WORK.reset(before)
            span.end()

    async def close(self) -> None:
        """Sends the last spans, for at most LAST_SECONDS: a collector that hangs holds up no process."""
        # Not an executor: the process would wait for its threads at exit.
        ending = threading.Thread(target=self._provider.shutdown, name="latchkey-traces", daemon=True)
        ending.start()
        ends = time.monotonic() + LAST_SECONDS
        while ending.is_alive() and time.monotonic() < ends:
            await asyncio.sleep(0.02)
        if ending.is_alive():
            log.warning("the last spans were not sent before the end")
