"""Folds text for search: what people type and what the index has become the same, in every language by the same rules.

Compatibility forms are made one (NFKC), case is folded, and accents go: marks that Latin, Greek and Cyrillic letters
carry, and the points of Hebrew and Arabic. Letters that Unicode does not take apart are replaced by those that people
type instead. Marks of other scripts are part of their words and stay. Folding follows no language: ö is o in German
too, and the dotless i of Turkish is i.
"""

from __future__ import annotations

import re
import unicodedata

MAX_QUERY = 254
"""Characters of a query that are read: as long as the longest address. Measured before any work."""
MAX_WORDS = 6
"""Words of a name that the index has. A name of one hundred letters and spaces would have fifty."""

_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f]"
)
_LETTERS = str.maketrans(
    {
        "ø": "o",
        "đ": "d",
        "ð": "d",
        "ł": "l",
        "ħ": "h",
        "ŧ": "t",
        "\u0131": "i",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "ŋ": "n",
    }
)
_WORD = re.compile(r"[^\W_]+")


def fold(text: str) -> str:
    """The form of a text that search compares."""
    if text.isascii():
        return text.lower()
    # A letter of another case may decompose further, so folding comes between the two.
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart).translate(_LETTERS))


def words_of(name: str) -> list[str]:
    """The folded words of a name: letters and digits in a row, with the marks of scripts that need them. A name without
    any, of signs alone, is one word."""
    folded = fold(name)
    if folded.isascii():
        return _WORD.findall(folded) or folded.split()
    apart = "".join(char if unicodedata.category(char)[0] in "LNM" else " " for char in folded)
    return apart.split() or folded.split()


def name_texts(name: str) -> list[str]:
    """The texts under which a name is found: the whole name, begun at each of its words. Each once."""
    words = words_of(name)[:MAX_WORDS]
    whole, at = " ".join(words), 0
    found = [whole] if words else []
    for word in words[:-1]:
        at += len(word) + 1
        found.append(f"{whole[at:]} {whole[: at - 1]}")
    return list(dict.fromkeys(found))
