"""Checks the names in the body of a script against the names that it can know.

Lua finds a misspelt name only when it runs the line, so the loader checks all names. A name declared anywhere in the
body counts as known in the whole body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

LUA_NAMES = frozenset(
    [
        *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil"),
        *("not", "or", "repeat", "return", "then", "true", "until", "while"),
        *("assert", "cjson", "error", "ipairs", "math", "next", "pairs", "pcall", "redis", "select", "string"),
        *("table", "tonumber", "tostring", "type", "unpack"),
    ]
)
"""Keywords, and the globals that every store has. `KEYS` and `ARGV` are not among them: the header takes them."""

# Comments, texts, and what follows a dot or a colon.
_SILENT = re.compile(r"--[^\n]*|'[^'\\\n]*(?:\\.[^'\\\n]*)*'|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|[.:]\w+")
_FIELD = re.compile(r"[{,]\s*\w+\s*=(?!=)")
_WORD = re.compile(r"\w+")
_DECLARING = (
    re.compile(r"local ([\w, ]+)"),
    re.compile(r"for ([\w, ]+)"),
    re.compile(r"function\s*\w*\(([\w, ]*)"),
)
_TOP = re.compile(r"^local (?:function )?(\w+(?:, \w+)*)", re.MULTILINE)


def unknown_names(body: str, known: Iterable[str]) -> set[str]:
    """The names in a piece of Lua that are neither known, nor declared in it, nor Lua's own."""
    code = _SILENT.sub("''", body)
    declared = _WORD.findall(" ".join(chain.from_iterable(one.findall(code) for one in _DECLARING)))
    odd = {*_WORD.findall(code)}.difference(declared, LUA_NAMES, known)
    odd = {name for name in odd if not name[0].isdigit()}
    # Few scripts write a table with named fields, so field names are removed only if needed.
    return odd and odd.intersection(_WORD.findall(_FIELD.sub("''", code)))


def names_used(source: str) -> set[str]:
    """Every name in a piece of Lua, also what it declares and Lua's own."""
    return {*_WORD.findall(_SILENT.sub("''", source))}


def names_offered(source: str) -> frozenset[str]:
    """The names that an include declares for the scripts that include it."""
    return frozenset(_WORD.findall(" ".join(_TOP.findall(source))))
