"""The usage report in a reply that is not readable as a whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outbound.ai.salvage import PART, count_bytes, reported_usage
from outbound.ai.tokens import count
from tests.support.lists.offenders import each

odd = st.text(st.sampled_from('"\\{}[]:, usage\x00é')) | st.just("usage")
values = st.recursive(
    odd | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=200)
@given(st.dictionaries(odd, values, max_size=4), st.dictionaries(odd, st.integers(0, 9), max_size=3), st.booleans())
def test_the_usage_of_any_object_is_found(reply: dict[str, Any], usage: dict[str, int], spaced: bool) -> None:
    reply["usage"] = usage
    text = json.dumps(reply, ensure_ascii=spaced, indent=1 if spaced else None)
    assert reported_usage(text.encode()) == usage


@each(
    ("raw", "found"),
    [
        pytest.param(b'{"usage": {"output_tokens": 1}, "usage": {"output_tokens": 2}}', {"output_tokens": 2}, id="two"),
        pytest.param(b'{"usage": {"output_tokens": 6', {}, id="cut in the middle"),
        pytest.param(b'{"usage": {"output_tokens": 6}, "x": [', {"output_tokens": 6}, id="cut behind it"),
        pytest.param(b'{"a": "\\\\", "usage": {"output_tokens": 6}}', {"output_tokens": 6}, id="behind a backslash"),
        pytest.param(b'{"usage": {"output_tokens": %b}}' % (b"9" * 5000), {"output_tokens": None}, id="beyond digits"),
        pytest.param(b'{"usage": {"output_tokens": 1e999}}', {"output_tokens": None}, id="beyond a float"),
        pytest.param(b'{"usage":' + b'{"a":' * 100_000, {}, id="nested without end"),
        pytest.param(b'{"a": "%b", "usage": {"x": 6}}' % (b"\\n" * PART), {"x": 6}, id="a string longer than a step"),
        pytest.param(b"", {}, id="nothing"),
    ],
)
def test_usage_is_found_in_truncated_json(raw: bytes, found: dict[str, Any]) -> None:
    assert reported_usage(raw) == found


def test_bytes_are_counted_like_text_up_to_a_limit() -> None:
    text = "five words, and naïve ones " * 100
    assert count_bytes(text.encode(), 10**9) == count(text)
    assert 50 < count_bytes(text.encode() * 1000, 50) <= PART
