"""For any bytes, the fast HTTP server reads the same request as Tornado's parser."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tornado.httputil import HTTPHeaders, HTTPInputError, parse_request_start_line

from runtime.http import fields
from runtime.http.body import BYTES_EACH, MOST_CHUNKS, Chunked
from runtime.http.head import CHUNKED, check_beginning, read_head

LINES = [
    b"GET / HTTP/1.1", b"POST /a?b=c HTTP/1.1", b"OPTIONS * HTTP/1.1", b"FROB / HTTP/1.0", b"Host: localhost",
    b"host: a", b"Content-Length: 5", b"content-length: 6", b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked", b"Connection: close", b"Connection: keep-alive, x", b"Expect: 100-continue",
    b"X-A: \xe9", b"X-A:", b"X-A: b",
]  # fmt: skip
ODD = [
    b"\r",
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b"\0",
    b":",
    b",",
    b"\x0b",
    b"\x7f",
    b"\xa0",
    b"5",
    b"+",
    b";",
    b"#",
    b"HTTP/1.1",
]

heads = st.lists(st.sampled_from(LINES), min_size=1, max_size=6).map(lambda lines: b"\r\n".join([*lines, b"", b""]))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A head with something put in, or cut out, here and there."""
    head = draw(heads)
    for _ in range(draw(st.integers(0, 3))):
        at, length = draw(st.integers(0, len(head))), draw(st.sampled_from([0, 0, 1, 2]))
        head = head[:at] + draw(st.sampled_from([b"", *ODD])) + head[at + length :]
    return head.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


@given(damaged() | st.binary(max_size=60).map(lambda data: data + b"\r\n\r\n"))
@example(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
@example(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")
def test_accepted_requests_match_tornados_parser(data: bytes) -> None:
    try:
        head = read_head(data)
    except HTTPInputError:
        return
    line, _, rest = data.decode("latin-1").removeprefix("\r\n").partition("\r\n")
    headers = HTTPHeaders.parse(rest)
    assert head.start_line == parse_request_start_line(line)
    assert list(head.headers.get_all()) == list(headers.get_all())
    assert dict(head.headers) == dict(headers)
    # Read once more in the plainest way: one length, or chunks, or neither.
    lengths, codings = headers.get_list("Content-Length"), headers.get_list("Transfer-Encoding")
    assert [*lengths, *codings] == ([] if head.length == 0 and not lengths else [*lengths, *codings][:1])
    assert head.length == (CHUNKED if codings else int(lengths[0]) if lengths else 0)
    assert codings in ([], ["chunked"])
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)", data)


@given(damaged(), st.data())
def test_a_partial_request_is_refused_only_if_the_whole_would_be(data: bytes, draw: st.DataObject) -> None:
    end = draw.draw(st.integers(1, len(data)))
    since = draw.draw(st.integers(0, end))
    try:
        check_beginning(data[:end], since, 1000)
    except HTTPInputError:
        with pytest.raises(HTTPInputError):
            read_head(data)


@given(st.lists(st.binary(min_size=1, max_size=20)), st.lists(st.integers(1, 9), min_size=1), st.integers(1, 30))
def test_chunks_split_anywhere_make_one_body(chunks: list[bytes], sizes: list[int], most: int) -> None:
    sent = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\nthe next"
    body, buffer, pieces, turn = Chunked(), b"", [], 0
    while not body.done:
        piece, buffer = body.read(buffer, most, 10**6)
        if piece:
            pieces.append(piece)
        elif not body.done:
            assert sent, "more is asked for than there is"
            size = sizes[turn % len(sizes)]
            buffer, sent, turn = buffer + sent[:size], sent[size:], turn + 1
    assert b"".join(pieces) == b"".join(chunks)
    assert buffer + sent == b"the next"
    assert all(len(piece) <= most for piece in pieces)


def test_unknown_header_names_do_not_fill_memory() -> None:
    for number in range(2 * fields._MOST_SEEN):
        assert fields.spelled(b"x-%d" % number) == f"X-{number}"
    assert len(fields._SEEN) <= fields._MOST_SEEN
    fields._SEEN.clear()
    assert fields.spelled(b"x" * fields.LONGEST_NAME) == "X" + "x" * (fields.LONGEST_NAME - 1)
    assert not fields._SEEN


@pytest.mark.parametrize("size", [1, BYTES_EACH // 2])
def test_short_chunks_are_bounded_in_number(size: int) -> None:
    body, piece = Chunked(), b"%x\r\n%b\r\n" % (size, b"x" * size)
    with pytest.raises(HTTPInputError, match="too many chunks"):
        body.read(piece * (2 * MOST_CHUNKS + 1), 2**22, 2**22)


@pytest.mark.parametrize(("size", "number"), [(1, MOST_CHUNKS), (BYTES_EACH, 2**20 // BYTES_EACH)])
def test_many_long_chunks_are_accepted(size: int, number: int) -> None:
    body, piece = Chunked(), b"%x\r\n%b\r\n" % (size, b"x" * size)
    read, rest = body.read(piece * (number - 1) + b"0\r\n\r\n", 2**22, 2**22)
    assert (len(read), rest, body.done) == (size * (number - 1), b"", True)


def test_a_chunked_body_is_bounded_by_the_sum_over_all_reads() -> None:
    body = Chunked()
    for _ in range(2):
        assert body.read(b"5\r\nhello\r\n", 100, 10) == (b"hello", b"")
    with pytest.raises(HTTPInputError, match="too large"):
        body.read(b"1\r\n!\r\n", 100, 10)
