"""Reads the usage from a reply that can't be parsed, and counts a reply without usage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from outbound.ai.tokens import count

PART = 2**16
"""Bytes for one step. Other threads can run between steps."""
MAX_USAGE = 2**14
MAX_DIGITS = 18
# Outside and inside of strings. The quantifiers are possessive, so that each byte is read once.
_OUTSIDE = re.compile(rb'[^"]{1,%d}+' % PART)
_INSIDE = re.compile(rb'(?:[^"\\]{1,4096}+|\\.){1,16}+', re.S)
_NAME = re.compile(rb'"usage"[ \t\r\n]{0,64}:[ \t\r\n]{0,64}(?=\{)')


def reported_usage(raw: bytes | bytearray) -> dict[str, Any]:
    """The last complete `usage` at the top level of an object, or an empty dict. Ignores nesting and numbers elsewhere.
    The model's text can't forge it, because it is nested or in a string. Linear in the size."""
    last = None
    for place in _top_names(raw):
        if match := _NAME.match(raw, place):
            last = match.end()
    return {} if last is None else _object(raw[last : last + MAX_USAGE].decode(errors="replace"))


def count_bytes(raw: bytes | bytearray, enough: int) -> int:
    """The number of tokens in the raw bytes, names and brackets included. Stops at some number above `enough`."""
    total = 0
    for start in range(0, len(raw), PART):
        total += count(raw[start : start + PART].decode(errors="replace"))
        if total > enough:
            break
    return total


def _top_names(raw: bytes | bytearray) -> Iterator[int]:
    """The start of each string at the top level of an object."""
    at = depth = 0
    while at < len(raw):
        if outside := _OUTSIDE.match(raw, at):
            part, at = outside[0], outside.end()
            depth += part.count(b"{") + part.count(b"[") - part.count(b"}") - part.count(b"]")
            continue
        if depth == 1:
            yield at
        at += 1
        while inside := _INSIDE.match(raw, at):
            at = inside.end()
        at += 1


def _object(text: str) -> dict[str, Any]:
    try:
        value, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_DIGITS else None


def _nothing(number: str) -> None:
    return None


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_nothing, parse_constant=_nothing)
