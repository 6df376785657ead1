"""Ambiguous bytes are refused before the application sees them; the same cases on both HTTP servers.

Where Tornado's own server is more lenient than the fast one, or closes without a word, the case says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tornado.web import Application, RequestHandler

from runtime.http.body import BYTES_EACH, MOST_CHUNKS
from runtime.http.fields import LONGEST_NAME
from runtime.http.plain_server import MOST_CHUNKS as MOST_PLAIN
from tests.support.http.http_servers import request, running, statuses
from tests.support.lists.offenders import each


class Echo(RequestHandler):
    """Answers with the length of the body, and notes what it was asked."""

    SUPPORTED_METHODS = (*RequestHandler.SUPPORTED_METHODS, "CONNECT")

    def prepare(self) -> None:
        self.application.settings["seen"].append(f"{self.request.method} {self.request.path}")

    def get(self) -> None:
        self.finish(str(len(self.request.body)))

    post = put = get


@dataclass(frozen=True)
class Outcome:
    """The statuses that come back before the server closes, and what the application has seen."""

    statuses: tuple[int, ...]
    seen: tuple[str, ...] = ()


REFUSED = Outcome((400,))
GOT = Outcome((200,), ("GET /",))
POSTED = Outcome((200,), ("POST /",))
CUT = Outcome(())
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CLOSE = "Connection: close"


def case(name: str, sent: bytes, fast: Outcome = REFUSED, tornado: Outcome | None = None) -> object:
    return pytest.param(sent, {"fast": fast, "tornado": tornado or fast}, id=name)


def post(*fields: str, body: bytes = b"") -> bytes:
    """A POST whose framing is in `fields` alone."""
    return request("POST", "/", CLOSE, *fields) + body


def chunked(body: bytes, *fields: str) -> bytes:
    return post("Transfer-Encoding: chunked", *fields, body=body)


def line(text: bytes) -> bytes:
    """A request with this request line."""
    return text + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n"


FINE = [
    case("a request", request("GET", "/", CLOSE), GOT),
    case("a body", post("Content-Length: 5", body=b"hello"), POSTED),
    case("chunks", chunked(b"5\r\nhello\r\n0\r\n\r\n"), POSTED),
    case("chunk sizes with zeros in front", chunked(b"0005\r\nhello\r\n000\r\n\r\n"), POSTED),
    case("chunk sizes in both cases", chunked(b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"), POSTED),
    case("Chunked, in another case", post("Transfer-Encoding: Chunked", body=b"0\r\n\r\n"), POSTED),
    case("one blank line in front", b"\r\n" + request("GET", "/", CLOSE), GOT),
    case("spaces and tabs around a value", request("GET", "/", "Connection: \t close \t"), GOT),
    case("an empty value", request("GET", "/", CLOSE, "X-Empty:"), GOT),
    case("bytes beyond ASCII in a value", request("GET", "/", CLOSE, "X-Name: caf\xe9"), GOT),
    case("HTTP/1.0 without Host", request(version="1.0"), GOT),
    case("an unknown method", request("FROB", "/", CLOSE), Outcome((405,))),
    case("a method in lower case", request("get", "/", CLOSE), Outcome((405,))),
    case(
        "an upgrade that is not made",
        request("GET", "/", "Connection: Upgrade", "Upgrade: h2c") + request("GET", "/", CLOSE),
        Outcome((200, 200), ("GET /", "GET /")),
    ),
    case(
        "Connection as a list",
        request("GET", "/", "Connection: x, close") + request("GET", "/next", CLOSE),
        GOT,
        Outcome((200, 200), ("GET /", "GET /next")),
    ),
    case(
        "two requests in one piece",
        request("POST", "/", body=b"hello") + request("GET", "/", CLOSE),
        Outcome((200, 200), ("POST /", "GET /")),
    ),
]

LENGTHS = [
    case("both lengths", post("Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SMUGGLED)),
    case("both lengths, the other way round", post("Transfer-Encoding: chunked", "Content-Length: 5", body=SMUGGLED)),
    case("two lengths that differ", post("Content-Length: 5", "Content-Length: 6", body=b"hello!")),
    case("two equal lengths", post("Content-Length: 5", "Content-Length: 5", body=b"hello"), REFUSED, POSTED),
    case("a list of equal lengths", post("Content-Length: 5, 5", body=b"hello"), REFUSED, POSTED),
    case("a list of lengths that differ", post("Content-Length: 5, 6", body=b"hello!")),
    *(
        case(f"the length {value!r}", post(f"Content-Length:{value}", body=b"hello"))
        for value in (" +5", " -5", " 0x5", " 5 5", " 5;5", " 5.0", " 5e0", " 1_0", "", " ", " \xb2", " 5\xa0", " five")
    ),
    case("a length beyond all bounds", post("Content-Length: " + "9" * 40)),
    case("a length beyond 64 bits", post("Content-Length: 18446744073709551621", body=b"hello")),
    case("a length beyond the limit", post("Content-Length: 5001", body=b"x" * 5001)),
    case("NUL before a length", post("Content-Length: \x005", body=b"hello")),
]

CODINGS = [
    *(
        case(f"the coding {value!r}", post(f"Transfer-Encoding:{value}", body=b"0\r\n\r\n" + SMUGGLED))
        for value in (
            " gzip, chunked", " chunked, gzip", " chunked, chunked", " gzip", " identity", " xchunked", " chunked;q=1",
            " chunked,", " ,chunked", ' "chunked"', " \x0bchunked", " chunked\x0b", " \xa0chunked", "", " cow",
        )
    ),
    case("two codings", post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
    case("two codings, one unknown", post("Transfer-Encoding: chunked", "Transfer-encoding: cow", body=b"0\r\n\r\n")),
    case("a coding name with a space", post("Transfer-Encoding : chunked", body=b"0\r\n\r\n" + SMUGGLED)),
    case(
        "a coding in HTTP/1.0",
        request("POST", "/", "Transfer-Encoding: chunked", version="1.0") + b"0\r\n\r\n",
        REFUSED,
        POSTED,
    ),
]  # fmt: skip

CHUNKS = [
    *(
        case(f"the chunk {body!r}", chunked(body + b"\r\n0\r\n\r\n" + SMUGGLED))
        for body in (
            b"0x5\r\nhello", b"+5\r\nhello", b"-5\r\nhello", b" 5\r\nhello", b"5 \r\nhello", b"1_0\r\n0123456789abcdef",
            b"\r\nhello", b"g\r\nhello", b"5;a=b\r\nhello", b"5;\r\nhello", b'5;a="\r\n"\r\nhello', b"5\t\r\nhello",
            b"5\r\nhello!", b"5\r\nhelloX", b"5\r\nhell", b"5\x00\r\nhello",
        )
    ),
    case("a chunk size that ends in LF", chunked(b"5\nhello\r\n0\r\n\r\n" + b" " * 64), REFUSED),
    case("a chunk that ends in LF", chunked(b"5\r\nhello\n0\r\n\r\n")),
    case("a chunk size beyond all bounds", chunked(b"f" * 17 + b"\r\n")),
    case("a chunk size of zeros", chunked(b"0" * 80 + b"5\r\nhello\r\n0\r\n\r\n"), REFUSED, CUT),
    case("chunks beyond the limit", chunked(b"9c4\r\n" + b"x" * 2500 + b"\r\n9c5\r\n" + b"x" * 2501 + b"\r\n")),
    case("a trailer", chunked(b"5\r\nhello\r\n0\r\nX-Trailer: a\r\n\r\n", "Trailer: X-Trailer")),
    case("a trailer that frames", chunked(b"0\r\nContent-Length: 5\r\n\r\nhello")),
]  # fmt: skip

LINES = [
    case("LF for CRLF", request("GET", "/", CLOSE).replace(b"\r\n", b"\n"), REFUSED, GOT),
    case("LF after the request line", request("GET", "/", CLOSE).replace(b"1.1\r\n", b"1.1\n"), REFUSED, GOT),
    case("LF after a field", request("GET", "/", CLOSE).replace(b"localhost\r\n", b"localhost\n"), REFUSED, GOT),
    case("LF for the last line", request("GET", "/", CLOSE)[:-2] + b"\n", REFUSED, GOT),
    case("CR alone after a field", request("GET", "/", "X-A: a\rContent-Length: 5", CLOSE)),
    case("CR CR LF", request("GET", "/", "X-A: a\r", CLOSE)),
    case("a folded field", request("GET", "/", "X-A: a\r\n b", CLOSE)),
    case("a folded field, by a tab", request("GET", "/", "X-A: a\r\n\tb", CLOSE)),
    case("a space before the first field", b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n"),
    case("a space before the colon", request("GET", "/", "X-A : a", CLOSE)),
    case("a tab before the colon", request("GET", "/", "X-A\t: a", CLOSE)),
    case("a space in a name", request("GET", "/", "X A: a", CLOSE)),
    case("a name beyond ASCII", request("GET", "/", "X-\xc9: a", CLOSE)),
    case("a name in brackets", request("GET", "/", "X(A): a", CLOSE)),
    case("no name", request("GET", "/", ": a", CLOSE)),
    case("no colon", request("GET", "/", "X-A", CLOSE)),
    *(
        case(
            f"{ord(mark):#04x} in a {where}", request("GET", "/", f"X-A{mark}: a" if name else f"X-A: a{mark}b", CLOSE)
        )
        for where, name in (("name", True), ("value", False))
        for mark in "\x00\x01\x08\x0b\x0c\x1b\x7f"
    ),
    case("two blank lines in front", b"\r\n\r\n" + request("GET", "/", CLOSE)),
    case("three blank lines in front", b"\r\n\r\n\r\n" + request("GET", "/", CLOSE)),
]

REQUEST_LINES = [
    case("a space too many", line(b"GET  / HTTP/1.1")),
    case("a tab between", line(b"GET\t/ HTTP/1.1")),
    case("a space behind", line(b"GET / HTTP/1.1 ")),
    case("a space in front", line(b" GET / HTTP/1.1")),
    case("a space in the target", line(b"GET /a b HTTP/1.1")),
    case("no version", line(b"GET /")),
    case("no target", line(b"GET HTTP/1.1")),
    case("a method that is none", line(b"GET,POST / HTTP/1.1")),
    case("a method with a NUL", line(b"GE\x00T / HTTP/1.1")),
    case("HTTP/0.9", line(b"GET / HTTP/0.9")),
    case("HTTP/1.2", line(b"GET / HTTP/1.2"), REFUSED, GOT),
    case("HTTP/1.10", line(b"GET / HTTP/1.10")),
    case("HTTP/2.0", line(b"GET / HTTP/2.0")),
    case("HTTP/1.1 in lower case", line(b"GET / http/1.1")),
    case("another protocol", line(b"GET / RTSP/1.1")),
    case("ICE", line(b"SOURCE / ICE/1.1")),
    case("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    case("a TLS greeting", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    case("a target without a slash", line(b"GET index.html HTTP/1.1"), REFUSED, Outcome((404,))),
    case("a target with a host", line(b"GET http://localhost/ HTTP/1.1"), REFUSED, Outcome((404,))),
    case("a target with another host", line(b"GET http://elsewhere/ HTTP/1.1"), REFUSED, Outcome((404,))),
    case("a target to tunnel to", line(b"CONNECT elsewhere:443 HTTP/1.1"), REFUSED, Outcome((405,))),
    case("a target of * to get", line(b"GET * HTTP/1.1"), REFUSED, Outcome((404,))),
    case("a target of * and more", line(b"OPTIONS */ HTTP/1.1"), REFUSED, Outcome((404,))),
    case("OPTIONS *", line(b"OPTIONS * HTTP/1.1"), Outcome((404,))),
    case("a fragment", line(b"GET /#top HTTP/1.1"), REFUSED, Outcome((200,), ("GET /#top",))),
    case("a target beyond ASCII", line(b"GET /caf\xc3\xa9 HTTP/1.1"), REFUSED, Outcome((200,), ("GET /caf\xc3\xa9",))),
    case("a target with a control character", line(b"GET /\x01 HTTP/1.1")),
    case("a target with DEL", line(b"GET /\x7f HTTP/1.1")),
]

HOSTS = [
    case("no Host", b"GET / HTTP/1.1\r\n\r\n"),
    case("two Hosts", request("GET", "/", "Host: elsewhere", CLOSE)),
    case("the same Host twice", request("GET", "/", "Host: localhost", CLOSE)),
    case("two Hosts in one", b"GET / HTTP/1.1\r\nHost: localhost, elsewhere\r\n\r\n"),
    case("two Hosts in HTTP/1.0", b"GET / HTTP/1.0\r\nHost: localhost\r\nHost: elsewhere\r\n\r\n"),
    case("a Host with a space", b"GET / HTTP/1.1\r\nHost: local host\r\n\r\n"),
    case("a Host with a path", b"GET / HTTP/1.1\r\nHost: localhost/a\r\n\r\n"),
    case("a Host with a user", b"GET / HTTP/1.1\r\nHost: ada@localhost\r\n\r\n"),
]

LONG_NAME = "X-" + "x" * (LONGEST_NAME - 2)


def short_chunks(number: int) -> bytes:
    """A body in chunks of one byte."""
    return b"1\r\nx\r\n" * number + b"0\r\n\r\n"


KEPT = request("POST", "/", "Transfer-Encoding: chunked")
SIZES = [
    case("a head that is too large", request("GET", "/", "X-A: " + "a" * 4000, CLOSE), Outcome((431,)), CUT),
    case("a head without an end", b"GET / HTTP/1.1\r\nX-A: " + b"a" * 4000, Outcome((431,)), CUT),
    case("a request line that is too long", line(b"GET /" + b"a" * 4000 + b" HTTP/1.1"), Outcome((414,)), CUT),
    case("a request line without an end", b"GET /" + b"a" * 4000, Outcome((414,)), CUT),
    case("too many fields", request("GET", "/", CLOSE, *["A:"] * 300), Outcome((431,)), REFUSED),
    case("a name that is too long", request("GET", "/", CLOSE, LONG_NAME + "x: a"), Outcome((431,)), REFUSED),
    case("a name as long as may be", request("GET", "/", CLOSE, LONG_NAME + ": a"), GOT),
    case(
        "a name that is too long behind a broken line",
        request("GET", "/", CLOSE, "X-A : a", LONG_NAME + "x: a"),
        Outcome((431,)),
        REFUSED,
    ),
    case("too many chunks", chunked(short_chunks(MOST_CHUNKS + MOST_CHUNKS // BYTES_EACH + 1))),
    case("many chunks", chunked(short_chunks(MOST_CHUNKS)), POSTED, REFUSED),
    case(
        "many chunks in each of two bodies",
        request("POST", "/", "Transfer-Encoding: chunked")
        + short_chunks(MOST_PLAIN)
        + chunked(short_chunks(MOST_PLAIN)),
        Outcome((200, 200), ("POST /", "POST /")),
    ),
    case("too many fields that end in LF alone", request("GET", "/", CLOSE, "A:\n" * 300), Outcome((431,)), REFUSED),
]

ALL = [*FINE, *LENGTHS, *CODINGS, *CHUNKS, *LINES, *REQUEST_LINES, *HOSTS, *SIZES]


@pytest.mark.gen_test
@each("http", ["fast", "tornado"])
@each(("sent", "expected"), ALL)
async def test_framing(sent: bytes, expected: dict[str, Outcome], http: str) -> None:
    seen: list[str] = []
    app = Application([("/.*", Echo)], seen=seen, log_function=lambda handler: None)
    async with running(app, http, max_body_size=5000, max_header_size=2000) as server:
        received = await server.ask(sent)
    assert Outcome(statuses(received), tuple(seen)) == expected[http], received
