"""Runs Tornado's own tests of its HTTP server, from the installed package, on the fast HTTP server.

    python -m tests.support.processes.tornado_suite [uvloop]

Tornado's strict rules apply: only expected output may be logged or written to standard error.
"""

from __future__ import annotations

import asyncio
import sys
import unittest
from asyncio import Future
from collections.abc import Iterator
from typing import Any

from tornado.test import httpserver_test, runtests

MODULES = ("httpserver_test", "web_test", "security_corpus_test", "httpclient_test", "routing_test", "auth_test")

# Tests that the fast server need not pass, and why. The tests in SENT_IN_CRLF run with other bytes.
LF = "sends LF for CRLF, which is refused: programs disagree about where such a line ends"
HTTP10_CHUNKED = "sends chunks in HTTP/1.0, which has none; RFC 9112 6.1 calls that faulty framing"
TIMES = "holds times against each other, which a busy machine does not keep; its case is covered by MOST_FIELDS"
EXCLUDED = {
    "httpserver_test.HTTPConnectionTest.test_newlines": LF,
    "httpserver_test.HTTPServerRawTest.test_chunked_request_body_duplicate_header": LF,
    "httpserver_test.HTTPServerRawTest.test_chunked_request_body_transfer_encoding_and_content_length": LF,
    "httpserver_test.HTTPServerRawTest.test_chunked_request_body_unsupported_transfer_encoding": LF,
    "httpserver_test.KeepAliveTest.test_keepalive_chunked": HTTP10_CHUNKED,
    "security_corpus_test.SecurityCorpusTest.test_scaling": TIMES,
}


class InCRLF(httpserver_test.HTTPServerRawTest):
    """The same tests, with lines that end in CRLF."""

    def setUp(self) -> None:
        super().setUp()  # type: ignore[no-untyped-call]  # Tornado's tests have no types
        write = self.stream.write

        def in_crlf(data: Any) -> Future[None]:
            return write(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))

        self.stream.write = in_crlf  # type: ignore[method-assign]  # changes the lines, and passes on


SENT_IN_CRLF = [InCRLF(name.rpartition(".")[2]) for name in EXCLUDED if "HTTPServerRawTest" in name]


def _tests(suite: unittest.TestSuite) -> Iterator[Any]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from _tests(one)
        else:
            yield one


def all() -> unittest.TestSuite:
    """The attributes of a main module that Tornado's runner needs."""
    loaded = unittest.defaultTestLoader.loadTestsFromNames([f"tornado.test.{name}" for name in MODULES])
    found = {test.id().removeprefix("tornado.test."): test for test in _tests(loaded)}
    assert EXCLUDED.keys() <= found.keys(), "Tornado has no such test any more"
    return unittest.TestSuite([*(test for name, test in found.items() if name not in EXCLUDED), *SENT_IN_CRLF])


if __name__ == "__main__":
    if sys.argv[1:] == ["uvloop"]:
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    sys.argv[1:] = ["--httpserver=runtime.http.server.HttpServer"]
    runtests.main()  # type: ignore[no-untyped-call]  # Tornado's tests have no types
