"""Counting tokens of the built-in model, and of what was delivered where a server reported nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Up to six ASCII characters of a word, or one other character, with the space before it: near enough to what real
# tokenizers make of text, never more tokens than bytes, and each piece by itself is one token again.
_PIECE = re.compile(r"\s?(?:[A-Za-z0-9_]{1,6}|\S)|\s")

PART = 2**14
"""Characters that one step looks at: between two steps other threads have their turn."""

_SPOKEN = ("system", "messages", "tools", "tool_choice")


def pieces(text: str) -> list[str]:
    """The text in tokens; joined they are the text."""
    return _PIECE.findall(text)


def count(text: str) -> int:
    """How many tokens a text has. Beyond PART characters, parts are counted: at most one token more for each."""
    if len(text) <= PART:
        return len(pieces(text))
    return sum(len(pieces(text[start : start + PART])) for start in range(0, len(text), PART))


def count_request(request: Mapping[str, Any], enough: int = 2**62) -> int:
    """How many tokens stand in a request, names of members included; where it is more than `enough`, some number above
    it, since counting on would take its time."""
    total = 0
    for name in _SPOKEN:
        for text in texts_of(request.get(name)):
            # A token is eight bytes at most.
            total += count(text) if len(text) <= 8 * enough else len(text) // 8
            if total > enough:
                return total
    return total


def texts_of(value: Any) -> Iterator[str]:
    """Every string in a JSON value, names of members included, without recursion."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += item.keys()
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
