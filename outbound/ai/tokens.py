"""Counts tokens for the built-in model, and for output that a server didn't report."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

from outbound.ai.long_request import LONG

# A token is up to six ASCII characters of a word, or one other character, with the space before it. This is close to
# real tokenizers, never gives more tokens than bytes, and each piece alone is one token again.
_PIECE = re.compile(r"\s?(?:[A-Za-z0-9_]{1,6}|\S)|\s")

PART = 2**14
"""Characters for one step. Other threads can run between steps."""

_UNREAD = frozenset(
    (
        *(
            "model",
            "metadata",
            "user",
            "safety_identifier",
            "stream",
            "stream_options",
            "store",
            "include",
            "service_tier",
        ),
        *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "cache_control", "context_management"),
        *(
            "stop",
            "stop_sequences",
            "thinking",
            "reasoning",
            "reasoning_effort",
            "logit_bias",
            "modalities",
            "truncation",
        ),
    )
)
"""Fields whose text no model reads. A model may read any other, and be paid for it."""
_DATA = "data:"
_CONTENT = ("messages", "input")
_ADDRESSES = ("url", "image_url", "file_data")
DATA_TOKENS = 1_500
"""What an image in a data URL counts for, at most: models don't read its text."""


def pieces(text: str) -> list[str]:
    """The tokens of the text. Joined, they are the text."""
    return _PIECE.findall(text)


def count(text: str) -> int:
    """The number of tokens in a text. Longer texts are counted in parts, with at most one extra token for each part."""
    if len(text) <= PART:
        return len(pieces(text))
    return sum(len(pieces(text[start : start + PART])) for start in range(0, len(text), PART))


def count_request(request: Mapping[str, Any], enough: int = 2**62) -> int:
    """The number of tokens in a request, names of members included. Stops at some number above `enough`, to save
    time."""
    total = 0
    for name, value in request.items():
        if name in _UNREAD:
            continue
        for text, at in _texts_at(value, name):
            # A token has at most eight bytes. A text of a person may begin like a data URL: its place tells them apart.
            if name in _CONTENT and at in _ADDRESSES and text.startswith(_DATA):
                total += min(len(text) // 8, DATA_TOKENS)
            else:
                total += count(text) if len(text) <= 8 * enough else len(text) // 8
            if total > enough:
                return total
    return total


async def count_aside(request: Mapping[str, Any], enough: int = 2**62) -> int:
    """The same without blocking: in a thread, where a megabyte takes some 50 ms; a long request in its helper."""
    long = request.get(LONG)
    return await (asyncio.to_thread(count_request, request, enough) if long is None else long.tokens(enough))


def texts_of(value: Any) -> Iterator[str]:
    """Every string in a JSON value, names of members included, without recursion."""
    return (text for text, _ in _texts_at(value))


def equal_texts(value: Any, wanted: str) -> int:
    """How many strings in a JSON value are equal to `wanted`, names of members included. Quicker than `texts_of`."""
    found, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found += item == wanted
        elif isinstance(item, dict):
            waiting += item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return found


def _texts_at(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """The same, each string with the name of the member that has it."""
    waiting = [(value, place)]
    while waiting:
        item, at = waiting.pop()
        if isinstance(item, str):
            yield item, at
        elif isinstance(item, dict):
            waiting += [(name, "") for name in item]
            waiting += [(inner, name) for name, inner in item.items()]
        elif isinstance(item, list):
            waiting += [(inner, at) for inner in item]
