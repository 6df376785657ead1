"""Refuses passwords that somebody would try first (NIST SP 800-63B 5.1.1.2).

Common passwords, dictionary words and names are in a filter. The check looks for the whole password and for its forms:
without the digits and signs around it, with letters for the digits that look like them, without the signs inside, and
without repetition. It also refuses a password made only of the person's name, the e-mail address or the service's name.
"""

from __future__ import annotations

import re
import unicodedata

from store.crypto.common_passwords import common
from store.phrases import Phrase

SERVICE = "latchkey"
COMMON = Phrase("That password is too easy to guess. Choose a different one.")
OWN = Phrase("Choose a password that isn't based on your name, your e-mail address or the name of this service.")

_LEAST_WORD = 4
_LEAST_PART = 3
_MOST_PARTS = 40
_SIGNS = re.compile(r"[\W_]+")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_LOOKS_LIKE = str.maketrans("@013457$!", "aoieastsi")


def check_guessable(folded: str, email: str = "", name: str = "") -> None:
    """Raise ValueError, with a reason for people, for a guessable password. `folded` is normalised, casefolded and of
    allowed length; `email` and `name` are the person's."""
    if len(set(folded)) < 3 or any(form in common() for form in _forms(folded)):
        raise ValueError(COMMON)
    parts = _parts(email, name)
    for form in (folded, _bare(folded).translate(_LOOKS_LIKE)):
        if _is_made_of(_NO_LETTERS.sub("", form), parts):
            raise ValueError(OWN)


def _forms(folded: str) -> set[str]:
    """The password and its forms without decoration, if they keep at least half of it."""
    bare = _bare(folded)
    forms = {bare, bare.translate(_LOOKS_LIKE), _SIGNS.sub("", folded), _SIGNS.sub("", bare)}
    least = max(_LEAST_WORD, len(folded) / 2)
    repeated = {once for once in (_once(folded), _once(bare)) if once and len(once) >= _LEAST_WORD}
    return {folded, *repeated, *(form for form in forms if len(form) >= least)}


def _bare(text: str) -> str:
    """A text from its first letter to its last. A regular expression would take quadratic time."""
    letters = [place for place, char in enumerate(text) if char.isalpha()]
    return text[letters[0] : letters[-1] + 1] if letters else ""


def _once(text: str) -> str:
    """The part that a text repeats, or "" if it repeats nothing."""
    length = (text + text).find(text, 1)
    return text[:length] if 0 < length < len(text) else ""


def _parts(email: str, name: str) -> list[str]:
    """The letters of each word in the person's name and address and in the service's name, and of words together."""
    local, _, domain = fold(email).partition("@")
    words = [*_SIGNS.split(fold(name)), *_SIGNS.split(local), *domain.split(".")[:-1], local, SERVICE]
    letters = {_NO_LETTERS.sub("", word) for word in words}
    enough = (part for part in letters if len(part) >= (_LEAST_PART if part.isascii() else 2))
    return sorted(enough, key=len)[:_MOST_PARTS]


def _is_made_of(text: str, parts: list[str]) -> bool:
    """Whether a text consists only of these parts, one after another."""
    reached = {0} if text else set()
    for start in range(len(text)):
        if start in reached:
            reached |= {start + len(part) for part in parts if text.startswith(part, start)}
    return len(text) in reached


def fold(text: str) -> str:
    """Text for comparison: without case, and with equal characters in one form."""
    return unicodedata.normalize("NFKC", text).casefold()
