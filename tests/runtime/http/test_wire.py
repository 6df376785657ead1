"""Reading heads and writing answers without a request object."""

from __future__ import annotations

import pytest
from tornado.httputil import HTTPHeaders

from runtime.http.wire import SHORT_BODY, RawAnswer, field_lines, has_long_body, names_html, plain_path

FIELDS = b"Host: a\r\nAccept: text/html\r\n"


@pytest.mark.parametrize(
    ("head", "path"),
    [
        (b"GET / HTTP/1.1\r\n" + FIELDS + b"\r\n", "/"),
        (b"GET /a/b%20c?d=e?f HTTP/1.1\r\n" + FIELDS + b"\r\n", "/a/b%20c"),
        pytest.param(b"POST / HTTP/1.1\r\n" + FIELDS + b"\r\n", None, id="another method"),
        pytest.param(b"GET / HTTP/1.0\r\n" + FIELDS + b"\r\n", None, id="another version"),
        pytest.param(b"GET http://a/ HTTP/1.1\r\n" + FIELDS + b"\r\n", None, id="no path"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", None, id="no field"),
        pytest.param(b"GET / HTTP/1.1\r\n" + FIELDS + b"no field\r\n\r\n", None, id="a line that is no field"),
        pytest.param(b"GET / HTTP/1.1\r\n" + FIELDS + b"A: \0\r\n\r\n", None, id="a control character"),
        pytest.param(b"GET / HTTP/1.1\n" + FIELDS + b"\r\n", None, id="LF alone"),
        pytest.param(b"GET / HTTP/1.1\r\n" + FIELDS + b"\r\nmore", None, id="more than a head"),
        *(
            pytest.param(b"GET / HTTP/1.1\r\n" + FIELDS + name + b": x\r\n\r\n", None, id=name.decode())
            for name in (b"Content-Length", b"transfer-encoding", b"CONNECTION", b"Expect", b"Upgrade")
        ),
    ],
)
def test_the_fast_path_reads_only_plain_gets(head: bytes, path: str | None) -> None:
    assert plain_path(head) == path


def test_a_head_that_accepts_html_is_recognised() -> None:
    assert names_html(FIELDS)
    assert not names_html(b"Accept: application/json\r\n")


@pytest.mark.parametrize(
    ("fields", "long"),
    [
        ({}, False),
        ({"Content-Length": str(SHORT_BODY)}, False),
        ({"Content-Length": str(SHORT_BODY + 1)}, True),
        ({"Content-Length": "many"}, True),
        ({"Transfer-Encoding": "chunked"}, True),
    ],
)
def test_a_possibly_long_body_is_recognised(fields: dict[str, str], long: bool) -> None:
    assert has_long_body(HTTPHeaders(fields)) is long


def test_a_prepared_answer_has_only_its_variables_left_out() -> None:
    answer = RawAnswer.of(503, "Service Unavailable", {"Server": "a", "Content-Length": "4"}, b"body")
    assert answer.with_fields({"Date": "now"}) == (
        b"HTTP/1.1 503 Service Unavailable\r\nServer: a\r\nContent-Length: 4\r\nDate: now\r\n\r\nbody"
    )
    assert field_lines({}) == b""
