"""Heads that are read once: which, how many, and that nobody gets what another request changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tornado.httputil import HTTPInputError

from runtime.http import head as heads
from runtime.http.head import KEPT_FIELDS, LONGEST_KEPT, LONGEST_PATH, MOST_KEPT, read_head


def head(*lines: str, method: str = "POST", path: str = "/api/oauth/introspect", length: str = "5") -> bytes:
    """The head of a request with a form."""
    known = (f"{method} {path} HTTP/1.1", "Host: a.example", f"Content-Length: {length}", *lines)
    return "\r\n".join([*known, "", ""]).encode()


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Other tests read heads too."""
    heads.kept.clear()
    yield
    heads.kept.clear()


def test_a_head_is_read_once_and_gives_each_request_fields_of_its_own() -> None:
    data = head("User-Agent: a", "X-Real-IP: 1.2.3.4", "Accept: a", "Accept: b")
    first = read_head(data)
    assert list(heads.kept) == [data]
    first.headers["Host"] = "b.example"
    first.headers.add("Accept", "c")
    del first.headers["User-Agent"]
    for _ in range(2):
        again = read_head(data)
        assert again[0] == first[0]
        assert again[2:] == first[2:]
        assert dict(again.headers) == {
            "Host": "a.example",
            "Content-Length": "5",
            "User-Agent": "a",
            "X-Real-Ip": "1.2.3.4",
            "Accept": "a,b",
        }
        again.headers.add("Accept", "d")


def test_heads_that_differ_anywhere_are_read_apart() -> None:
    assert [read_head(head(length=length)).length for length in ("5", "6", "5")] == [5, 6, 5]
    assert [read_head(head(f"Connection: {word}")).keep_alive for word in ("close", "keep-alive")] == [False, True]
    assert read_head(head(path="/api/oauth/token")).start_line.path == "/api/oauth/token"
    assert len(heads.kept) == 5


@pytest.mark.parametrize(
    "data",
    [
        *(head(f"{name}: a") for name in ("Authorization", "Cookie", "DPoP", "Proxy-Authorization", "X-Api-Key")),
        head("Origin: https://a.example"),
        head("traceparent: 00-" + "a" * 32 + "-" + "b" * 16 + "-01"),
        head(path="/api/oauth/introspect?token=a"),
        head(path="/" + "a" * LONGEST_PATH),
        head("User-Agent: " + "a" * LONGEST_KEPT),
        head(length="0"),
        head(method="GET", length="0"),
        head("Expect: 100-continue"),
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_heads_with_secrets_or_without_a_form_are_not_kept(data: bytes) -> None:
    assert read_head(data) == read_head(data)
    assert heads.kept == {}


def test_a_refused_head_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(HTTPInputError):
            read_head(head("Host: b.example"))
    assert heads.kept == {}


def test_of_too_many_heads_the_oldest_goes() -> None:
    made = [head(length=str(number)) for number in range(1, MOST_KEPT + 3)]
    for data in made:
        read_head(data)
    assert list(heads.kept) == made[2:]


def test_fields_of_kept_heads_are_spelled_as_heads_spell_them() -> None:
    data = head(*(f"{name.lower()}: a" for name in KEPT_FIELDS - {"Host", "Content-Length", "Connection"}))
    read_head(data)
    assert list(heads.kept) == [data]
