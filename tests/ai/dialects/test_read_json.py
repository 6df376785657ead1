"""JSON of models' servers is read quickly, with the same result as by Python's own parser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outbound.ai.events import read_json

texts = st.text(st.characters(exclude_categories=())) | st.sampled_from(["\ud800", "\udc00a", "é", "\0"])
numbers = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
)


@given(values, st.booleans())
@example(2**64, False)
@example(-(2**63) - 1, False)
@example(10**18, False)
@example({"a": -0.0, "b": 1e300}, False)
def test_a_value_is_that_of_the_slow_parser(value: Any, escaped: bool) -> None:
    raw = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    try:
        expected = json.loads(raw.decode())
    except UnicodeDecodeError:
        with pytest.raises(ValueError, match="decode"):
            read_json(raw)
        return
    found = read_json(raw)
    assert repr(found) == repr(expected), "also the type of each number"


@pytest.mark.parametrize(
    "raw", [b"NaN", b"[-Infinity]", b"1e999", b"[1E400]", b"", b"{", b'"\xff"', b'"\t"', b"[" * 201]
)
def test_what_cannot_be_written_again_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(raw)


def test_the_last_of_equal_names_counts() -> None:
    assert read_json(b'{"a":1,"a":2}') == {"a": 2}
