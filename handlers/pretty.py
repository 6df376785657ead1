"""JSON laid out for reading: every string and number stays as it was written, only white space changes."""

from __future__ import annotations

import re

MAX_CHARACTERS = 2**20
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_STEP = "  "


def indented(text: str) -> str | None:
    """The JSON text with a member or element a line; None where that takes more than 1,048,576 characters."""
    pieces: list[str] = []
    size = depth = 0
    before = None
    for token in _TOKENS.findall(text):
        depth -= token in ("]", "}")
        if before == ":":
            space = " "
        elif before is None or token in (",", ":") or (before + token) in ("[]", "{}"):
            space = ""
        else:
            space = "\n" + depth * _STEP
        depth += token in ("[", "{")
        pieces += (space, token)
        size += len(space) + len(token)
        if size > MAX_CHARACTERS:
            return None
        before = token
    return "".join(pieces)
