"""Checks for the signs and telephone numbers in an app's name.

Python does not know the property "emoji", so this module uses the Unicode blocks of emoji instead.
"""
# ruff: noqa: RUF001 - signs that look like others are the data

from __future__ import annotations

import re
import unicodedata

_CHECK_MARKS = frozenset("✓✔☑✅🗸🗹🮱√⍻⎷")
_DAGGERS = frozenset("†‡⸸")
_MATHS = frozenset("+<=>|~¬±×÷−→←↑↓↔⇒⇔♯")
_SYMBOLS = frozenset("©®™℠℗°№℃℉⌂⌘⌚⌛⌨⏏")
_BLOCKS = (
    (0x2194, 0x21AA),  # arrows that are emoji
    (0x23E9, 0x23FA),  # clocks and buttons
    (0x2460, 0x24FF),  # letters and digits in circles, which are read as these
    (0x25A0, 0x27BF),  # shapes, weather, games, dingbats
    (0x2B00, 0x2BFF),  # stars
    (0x3000, 0x33FF),  # East Asian signs
    (0x1F000, 0x1FAFF),  # emoji
)
_NUMBER = re.compile(r"\+?[0-9](?:[-–—.,/()\s]*[0-9])*")
_PHONE, _PHONE_ABROAD = 9, 7
"""The fewest digits of a telephone number, without and with a plus; two years together have eight."""


def strange_sign(name: str) -> str:
    """The first check mark, or the first mathematical or technical sign that is no emoji; "" without one."""
    return next((char for char in name if _is_strange(char)), "")


def has_phone_number(name: str) -> bool:
    """Whether a name has enough digits in a row for a telephone number, whatever separates them."""
    digits = "".join(str(unicodedata.digit(char, char)) for char in name)
    return any(
        sum(char.isdigit() for char in run) >= (_PHONE_ABROAD if run[0] == "+" else _PHONE)
        for run in _NUMBER.findall(digits)
    )


def _is_strange(char: str) -> bool:
    if char in _CHECK_MARKS or char in _DAGGERS:
        return True
    category = unicodedata.category(char)
    if category == "Sm":
        return char not in _MATHS
    return category == "So" and char not in _SYMBOLS and not any(low <= ord(char) <= high for low, high in _BLOCKS)
