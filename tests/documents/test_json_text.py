"""Valid JSON documents: everything that RFC 8259 allows within the limits; anything else is never a 500."""

from __future__ import annotations

import contextlib
import gc
import json
import math
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.json_text import MAX_NESTING, NotJSON, check_json
from tests.support.lists.offenders import each

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


WHOLE = 2**18
"""Bytes of the largest document."""


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Garbage collection skips what other tests left behind, as in a server (runtime/garbage.py)."""
    gc.disable()
    yield
    gc.enable()


NESTED = ((b'{"":[' * 95) + b"]}" * 95 + b",") * (WHOLE // 666 - 1)
HOSTILE = [
    pytest.param(b"[" + (b"[" * 190 + b"]" * 190 + b",") * (WHOLE // 381 - 1) + b"1]", id="deep arrays"),
    pytest.param(b"[" + NESTED + rb'"\ud83d\ude00"]', id="a pair of surrogates"),
    pytest.param(b"[" + NESTED + rb'"\ud800"]', id="half a pair"),
    pytest.param(b"[" + b'{"":1},' * (WHOLE // 7 - 2) + b"1e999]", id="many objects and a large number"),
    pytest.param(b"[" + b"1," * (WHOLE // 2 - 10) + b"1e999]", id="many numbers"),
    pytest.param(
        b"[1e400," + (b"[[]," * 180 + b"1" + b"]" * 180 + b",") * (WHOLE // 903 - 1) + b"1]", id="many arrays"
    ),
]


def test_a_number_beyond_a_double_is_accepted_among_30_000_values() -> None:
    check_json(b"[" + b"1," * 29_998 + b"1e999]")
    check_json(b"[" + b"1," * 100_000 + b"1e99]")
    with pytest.raises(NotJSON, match="over 30,000 values"):
        check_json(b"[" + b"1," * 30_000 + b"1e999]")


@pytest.mark.trap(37)
@each(
    "body",
    [
        pytest.param(b"null", id="null"),
        pytest.param(b" \t\r\n 1 \n", id="space around"),
        pytest.param(b'""', id="an empty string"),
        pytest.param(b'{"a":1,"a":2}', id="a name that comes twice"),
        pytest.param(b"9" * 5_000, id="a number of 5,000 digits"),
        pytest.param(b"-0.0e-999999", id="a number too small for a float"),
        pytest.param(b"1e999999", id="a number too large for a float"),
        pytest.param('"\u20ac \U0001f600 \u2028"'.encode(), id="text beyond ASCII"),
        pytest.param(rb'"\ud83d\ude00"', id="a surrogate pair"),
        pytest.param(rb'"\\ud800"', id="a backslash, then ud800"),
        pytest.param(rb'"\u0000"', id="a NUL, escaped"),
        pytest.param(b"[" * MAX_NESTING + b"]" * MAX_NESTING, id="arrays 200 deep"),
        pytest.param(b'{"a":' * MAX_NESTING + rb'"\ud83d\ude00"' + b"}" * MAX_NESTING, id="objects 200 deep"),
        pytest.param(b"[" + b"[]," * 5_000 + b"[]]", id="many brackets, none of them deep"),
        pytest.param(b'"' + b"[{" * 5_000 + b'"', id="brackets within a string"),
        pytest.param(b'["' + rb"\"[" * 5_000 + b'"]', id="brackets after escaped quotes"),
    ],
)
def test_valid_json_is_a_document(body: bytes) -> None:
    check_json(body)


@pytest.mark.trap(37)
@each(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"  ", id="space"),
        pytest.param(b"{", id="an open object"),
        pytest.param(b"[1,]", id="a comma too many"),
        pytest.param(b"{'a':1}", id="single quotes"),
        pytest.param(b"1 2", id="two values"),
        pytest.param(b"01", id="a leading zero"),
        pytest.param(b"+1", id="a plus"),
        pytest.param(b"NaN", id="NaN"),
        pytest.param(b"[Infinity]", id="Infinity"),
        pytest.param(b"-Infinity", id="-Infinity"),
        pytest.param(b'"a\nb"', id="a line break in a string"),
        pytest.param(b'"\x00"', id="a NUL"),
        pytest.param(b'\xef\xbb\xbf"a"', id="a byte order mark"),
        pytest.param('"a"'.encode("utf-16"), id="UTF-16"),
        pytest.param(b'"\xff"', id="no UTF-8"),
        pytest.param(b'"\xed\xa0\x80"', id="a surrogate in UTF-8"),
        pytest.param(b'"\xc0\x80"', id="overlong UTF-8"),
        pytest.param(rb'"\ud800"', id="a high surrogate alone"),
        pytest.param(rb'"\uDFFF x"', id="a low surrogate alone"),
        pytest.param(rb'{"\ud800":1}', id="a surrogate alone in a name"),
        pytest.param(rb'{"a":"\ud800","a":1}', id="a surrogate alone under a name that comes twice"),
        pytest.param(rb'"\ude00\ud83d"', id="a pair the wrong way round"),
        pytest.param(rb'"\x41"', id="an escape JSON has not"),
        pytest.param(b"[" * 201 + b"]" * 201, id="arrays 201 deep"),
        pytest.param(b'[{"a":' * 101 + b"1" + b"}]" * 101, id="arrays and objects 202 deep"),
        pytest.param(b"[" * 100_000, id="100,000 arrays, never closed"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="100,000 arrays"),
        pytest.param(b'{"a":' * 50_000 + b"1" + b"}" * 50_000, id="50,000 objects"),
        pytest.param(b"]" * 300 + b"[" * 300, id="closed before opened"),
    ],
)
def test_invalid_json_is_no_document(body: bytes) -> None:
    with pytest.raises(NotJSON):
        check_json(body)


@pytest.mark.trap(37)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 201 + b'"' + rb"\"" * 130_000, id="a string of escaped quotes that never ends"),
        pytest.param(b"[" * 201 + b'"' + b"\\\\" * 130_000, id="a string of backslashes that never ends"),
        pytest.param(b'["' * 130_000, id="brackets and quotes"),
        pytest.param(b"[" * 190 + b'"x",' * 65_000, id="many strings"),
    ],
)
def test_hostile_json_is_checked_quickly(body: bytes) -> None:
    """A search that restarts at each quote took minutes here."""
    started = time.process_time()
    with pytest.raises(NotJSON):
        check_json(body)
    assert time.process_time() - started < 1


@settings(max_examples=100, deadline=None)
@given(values, st.booleans(), st.sampled_from([None, 1]))
def test_whatever_a_json_library_writes_is_a_document(value: object, ascii_only: bool, indent: int | None) -> None:
    check_json(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode())


@settings(max_examples=200, deadline=None)
@given(st.text('[]{}",:\\u0dD8 1tfn', max_size=40) | st.binary(max_size=20))
def test_any_text_is_a_document_or_refused(text: str | bytes) -> None:
    body = text.encode() if isinstance(text, str) else text
    try:
        check_json(body)
    except NotJSON:
        return
    json.loads(body.decode(), parse_constant=lambda _: math.nan)


@settings(max_examples=300, deadline=None)
@given(st.text('[]{}",:\\u0dDcC8 1e9tfn', max_size=40) | values.map(json.dumps))
def test_the_fast_and_the_slow_check_agree(text: str) -> None:
    """Compares with Python's own parser and a walk over its result."""

    def sound() -> bool:
        try:
            value = json.loads(text, parse_constant=int, object_pairs_hook=list)
            json.dumps(value, ensure_ascii=False).encode()
        except ValueError:
            return False
        return True

    def kept() -> bool:
        try:
            check_json(text.encode())
        except NotJSON:
            return False
        return True

    assert kept() == sound()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["[", "]", '{"a":', "}", ",", "1", '"[\\\\"', '"\\""', '""', '"]"']), max_size=60),
    st.integers(1, 9),
)
def test_nesting_is_measured_exactly(tokens: list[str], most: int) -> None:
    text = "".join(tokens)
    try:
        json.loads(text)
    except ValueError:
        return
    depth = deepest = 0
    for token in tokens:
        depth += token in ("[", '{"a":')
        deepest = max(deepest, depth)
        depth -= token in ("]", "}")
    wrapped = "[" * (MAX_NESTING - most) + text + "]" * (MAX_NESTING - most)
    if deepest > most:
        with pytest.raises(NotJSON):
            check_json(wrapped.encode())
    else:
        check_json(wrapped.encode())


@pytest.mark.trap(39)
@pytest.mark.parametrize("body", HOSTILE)
def test_the_costliest_document_is_cheap(body: bytes, no_collections: None) -> None:
    """One escaped surrogate once made the server rewrite the whole document, which took 112 ms."""
    spent = []
    for _ in range(3):
        started = time.process_time()
        with contextlib.suppress(NotJSON):
            check_json(body)
        spent.append(time.process_time() - started)
    assert min(spent) < 0.04
