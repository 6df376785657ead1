"""Is a text a JSON document that may be kept? What is kept is the text as it was sent, not what it means here."""

from __future__ import annotations

import json
import re
from itertools import accumulate, count
from operator import sub

MAX_NESTING = 200
PEELED = 8

# Possessive, and content with a string that never ends: each byte is looked at once, whatever the text.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.S)
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_STEPS = bytes.maketrans(b"[]", b"\x02\x00")
_SUSPICIOUS = re.compile(r"\\u[dD][89a-fA-F]")


class NotJSON(ValueError):
    """The text is no JSON document that may be kept; the message says why, for people."""


def check_json(body: bytes) -> None:
    """RFC 8259, in UTF-8, nested at most 200 deep, without NaN and lone surrogates. Raises NotJSON."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotJSON("The document is not UTF-8.") from None
    check_nesting(body)
    try:
        # Numbers are kept as they were sent, so nothing is gained by reading them, however long.
        # Pairs instead of a dict: of a name that comes twice, both values are looked at.
        value = json.loads(text, parse_int=_skip, parse_float=_skip, parse_constant=_refuse, object_pairs_hook=_pairs)
        if _SUSPICIOUS.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise NotJSON("The document has a surrogate that stands alone.") from None
    except (ValueError, RecursionError):
        raise NotJSON("The document is not sound JSON.") from None


def check_nesting(body: bytes) -> None:
    """Looks at the brackets outside strings, before the parser descends into them. Raises NotJSON."""
    if body.count(b"[") + body.count(b"{") <= MAX_NESTING:
        return
    brackets = _STRINGS.sub(b"", body).translate(_ONE_KIND, _OTHERS)
    # Peeled off from the inside, what most documents have is gone after a few rounds.
    for _ in range(PEELED):
        brackets = brackets.replace(b"[]", b"")
    # Of the rest an opening bracket counts 2, a closing one 0, and the position is taken off: that is the depth.
    steps = brackets.translate(_STEPS)
    if max(map(sub, accumulate(steps), count(1)), default=0) > MAX_NESTING - PEELED:
        raise NotJSON(f"The document is nested more than {MAX_NESTING} deep.")


def _pairs(pairs: list[tuple[str, object]]) -> list[tuple[str, object]]:
    return pairs


def _skip(number: str) -> int:
    return 0


def _refuse(constant: str) -> None:
    raise ValueError(constant)
