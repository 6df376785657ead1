"""Checks that a text is a valid JSON document. The store keeps the text as sent, not its parsed value."""

from __future__ import annotations

import json
import re

import orjson

MAX_NESTING = 200
PEELED = 8
MOST_SLOWLY = 30_000
"""The most values of a document with a number beyond a double: Python's parser takes two microseconds for each."""
FEW = 32
"""Peeling continues only while a round removes at least one innermost pair per this many bytes of brackets."""

_STRINGS = re.compile(rb'"[^"]*+"?')
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))
_NO_MARKS = bytes(set(range(256)) - set(b'[]{},"'))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_RUNS = re.compile(rb"\[+|\]+")
# Possessive quantifiers: the pattern reads each byte once. A high surrogate after \u needs a low one after it.
_WHOLE = re.compile(rb"(?:[^\\]++|\\[^u]|\\u(?:(?![dD][89a-fA-F])....|[dD][89abAB]..\\u[dD][c-fC-F]..))*+", re.S)


class NotJSON(ValueError):
    """The text is not a valid JSON document; the message says why, for people."""


def check_json(body: bytes) -> None:
    """Checks for RFC 8259 in UTF-8, nested at most 200 deep, without NaN and lone surrogates. Raises NotJSON."""
    check_nesting(body)
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        _check_slowly(body)


def _check_slowly(body: bytes) -> None:
    """Checks a document that orjson refused. orjson also refuses numbers too large for a float; such a document is
    valid, unless parsing it takes too long."""
    if values_in(body) > MOST_SLOWLY:
        raise NotJSON(
            f"The document is not sound JSON, or has a number beyond a double and over {MOST_SLOWLY:,} values."
        )
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotJSON("The document is not UTF-8.") from None
    try:
        # Numbers are kept as sent, so parsing them, however long, is of no use.
        json.loads(text, parse_int=_skip, parse_float=_skip, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise NotJSON("The document is not sound JSON.") from None
    if not _WHOLE.fullmatch(body):
        raise NotJSON("The document has a surrogate that stands alone.")


def values_in(body: bytes) -> int:
    """About how many values a JSON text has: counts its commas and opening brackets outside strings."""
    marks = _outside(body, _NO_MARKS)
    return len(marks) - marks.count(b"]")


def check_nesting(body: bytes) -> None:
    """Checks the nesting of brackets outside strings, before a parser descends into them. Raises NotJSON."""
    if body.count(b"[") + body.count(b"{") <= MAX_NESTING:
        return
    brackets = _outside(body, _NO_BRACKETS)
    # Peels off pairs of brackets from the inside: most documents have none left after a few rounds.
    peeled = before = 0
    while peeled < PEELED and (before := len(brackets)):
        brackets = brackets.replace(b"[]", b"")
        peeled += 1
        if before - len(brackets) < before // FEW:
            break
    depth = deepest = 0
    for run in _RUNS.findall(brackets):
        if run.startswith(b"["):
            depth += len(run)
            deepest = max(deepest, depth)
        else:
            depth -= len(run)
    if deepest + peeled > MAX_NESTING:
        raise NotJSON(f"The document is nested more than {MAX_NESTING} deep.")


def _outside(body: bytes, dropped: bytes) -> bytes:
    """A JSON text without its strings and the dropped bytes, and with all brackets of one kind."""
    if b"\\" in body:
        # Removes the escapes that decide where a string ends: first pairs of backslashes, then escaped quotes.
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # Two adjacent quotes do not change which bytes are in a string; without them, few quotes are left to search for.
    left = body.translate(_ONE_KIND, dropped).replace(b'""', b"")
    return _STRINGS.sub(b"", left) if b'"' in left else left


def _skip(number: str) -> int:
    return 0


def _refuse(constant: str) -> None:
    raise ValueError(constant)
