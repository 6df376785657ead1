"""Indents JSON for reading: only white space changes, every string and number stays as written."""

from __future__ import annotations

import re

from tornado.escape import xhtml_escape

MAX_CHARACTERS = 2**18
MOST_TOKENS = 20_000
"""The limit of tokens. Each takes a microsecond of the event loop."""
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]+')
_STEP = "  "


def indented(text: str) -> str | None:
    """The JSON text with one member or element a line. None if the text has more than 131,072 characters or 20,000
    tokens, or the result more than 262,144 characters."""
    if len(text) > MAX_CHARACTERS // 2:
        return None
    pieces: list[str] = []
    size = depth = 0
    before = None
    for number, token in enumerate(map(re.Match.group, _TOKENS.finditer(text))):
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
        if size > MAX_CHARACTERS or number >= MOST_TOKENS:
            return None
        before = token
    return "".join(pieces)


def in_parts(text: str, most: int) -> list[str]:
    """The text in parts of at most `most` bytes on a page, each ending with a line if a line fits. At least one
    part."""
    parts: list[str] = []
    begin = 0
    while begin < len(text) or not parts:
        piece = text[begin : begin + most]
        while (size := len(xhtml_escape(piece).encode())) > most:
            piece = piece[: len(piece) * most // size]
        line = piece.rfind("\n") + 1
        if begin + len(piece) < len(text) and line > len(piece) // 2:
            piece = piece[:line]
        parts.append(piece)
        begin += len(piece)
    return parts
