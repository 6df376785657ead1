"""JSON from strangers: checks documents, which the store keeps as sent, and decodes other texts strictly."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

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


class Ambiguous(NotJSON):
    """The JSON has a repeated key, a NUL or a lone surrogate, which programs read in different ways."""


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
    check_surrogates(body)


def check_surrogates(body: bytes) -> None:
    """Checks that no escape in a sound JSON text is half of a character. Raises NotJSON."""
    if b"\\u" in body and not _WHOLE.fullmatch(body):
        raise NotJSON("The document has a surrogate that stands alone.")


def decode_strictly(body: bytes, deepest: int = MAX_NESTING) -> Any:
    """The value of a JSON text in UTF-8, nested at most `deepest`, without NaN. Raises NotJSON; Ambiguous for a
    repeated key, a NUL or a lone surrogate."""
    # The parser's own limit on depth differs between releases of Python.
    check_nesting(body, deepest)
    try:
        return _STRICT.decode(body.decode("utf-8"))
    except NotJSON:
        raise
    except (ValueError, RecursionError):
        raise NotJSON("The document is not sound JSON.") from None


def decode_quickly(body: bytes, deepest: int = MAX_NESTING) -> Any:
    """As `decode_strictly`, several times faster for texts of strings without quotes and backslashes in them."""
    if body.count(b"[") + body.count(b"{") <= deepest and b"\\\\" not in body and b'\\"' not in body:
        with suppress(orjson.JSONDecodeError, _Unclear):
            value = orjson.loads(body)
            # orjson keeps the last of repeated keys, so fewer strings than the text has.
            if body.count(b'"') == 2 * _strings_in(value) and b"\\u0000" not in body:
                return value
    return decode_strictly(body, deepest)


class _Unclear(Exception):
    """A number, which orjson may read in another way than `decode_strictly`."""


def _strings_in(value: Any) -> int:
    """How many strings a value has, with the keys. Raises _Unclear."""
    if isinstance(value, str):
        return 1
    if isinstance(value, dict):
        return len(value) + sum(map(_strings_in, value.values()))
    if isinstance(value, list):
        return sum(map(_strings_in, value))
    if value is None or isinstance(value, bool):
        return 0
    raise _Unclear


def check_text(text: str) -> str:
    """The text, if it has no NUL and no lone surrogate. Raises Ambiguous."""
    if "\0" in text:
        raise Ambiguous("A parameter must not contain NUL.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Ambiguous("The parameters are not UTF-8.") from None
    return text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise Ambiguous("A JSON key is repeated.")
        values[check_text(name)] = value
        _check_texts(value)
    return values


def _check_texts(value: Any) -> None:
    """Checks a text, or the texts of a list. Objects in it are checked already. Raises Ambiguous."""
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, list):
        for one in value:
            _check_texts(one)


def values_in(body: bytes) -> int:
    """About how many values a JSON text has: counts its commas and opening brackets outside strings."""
    marks = _outside(body, _NO_MARKS)
    return len(marks) - marks.count(b"]")


def check_nesting(body: bytes, deepest_allowed: int = MAX_NESTING) -> None:
    """Checks the nesting of brackets outside strings, before a parser descends into them. Raises NotJSON."""
    if body.count(b"[") + body.count(b"{") <= deepest_allowed:
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
    if deepest + peeled > deepest_allowed:
        raise NotJSON(f"The document is nested more than {deepest_allowed} deep.")


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


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
