"""A collector of OpenTelemetry: an HTTP server in a thread that keeps the spans it receives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class TraceCollector(ThreadingHTTPServer):
    """`answer` writes the answer; `bodies` are whole requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        self.endless = self.hangs = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> list[Any]:
        found = []
        for body in self.bodies:
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            found += [span for of in request.resource_spans for scope in of.scope_spans for span in scope.spans]
        return found

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


class _Handler(BaseHTTPRequestHandler):
    server: TraceCollector

    def do_POST(self) -> None:
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.close_connection = True
        if self.server.hangs:
            threading.Event().wait(30)
        try:
            self.wfile.write(self.server.answer)
            while self.server.endless:
                self.wfile.write(b"x" * 65536)
        except OSError:
            pass

    def log_message(self, *words: Any) -> None:
        pass


@contextmanager
def collecting() -> Iterator[TraceCollector]:
    with TraceCollector() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
