"""Amounts of money that people and programs send, in whole micro-dollars. Money is never a float."""

from __future__ import annotations

import re
from typing import Literal

from handlers.core.params import MISSING, Params
from store.credits.credits import MAX_AMOUNT, SCALE
from store.phrases import Phrase
from store.refused import Refused

SpendLimit = int | Literal["none", ""]
"""Micro-dollars a month; "none" removes the limit, "" keeps it unchanged."""

DEFAULT_SPEND_LIMIT = 5_000_000
"""The consent page's default for a person who has never let the app spend."""

# The browser checks the field with it, which saves a round trip. `dollars` below decides.
DOLLARS_PATTERN = r"\s*\$?\s*[0-9]{0,7}([.,][0-9]{0,6})?\s*"
_DOLLARS = re.compile(r"\$?\s*(?=[.,]?[0-9])([0-9]{0,9})(?:[.,]([0-9]{0,6}))?")
_THOUSANDS = re.compile(r"[1-9][0-9]*[.,][0-9]{3}(?![0-9])")
"""A sign that divides thousands for some readers and decimals for others."""
_WHOLE = re.compile(r"[0-9]{1,16}")


def dollars(text: str) -> int:
    """Converts a typed amount in dollars to micro-dollars: "5", "5.00", "5,00", "$0.5". Raises
    Refused("invalid_request") for anything else, a comma or point before exactly three digits ("1,250" and "1.250"
    are 1.25 for some readers and 1250 for others), a seventh decimal and more than a million dollars."""
    text = text.strip()
    found = None if _THOUSANDS.search(text) else _DOLLARS.fullmatch(text)
    micro = int(found[1] or 0) * 10**SCALE + int((found[2] or "").ljust(SCALE, "0")) if found else MAX_AMOUNT + 1
    if micro > MAX_AMOUNT:
        raise Refused(
            "invalid_request",
            Phrase(
                "Enter an amount in dollars, such as 5 or 5.00, without separators between thousands. It can have up "
                "to six decimals and be at most one million."
            ),
        )
    return micro


def typed_limit(params: Params, name: str) -> int | None:
    """The limit in a field of dollars, in micro-dollars; None if the field is empty. Raises Refused("invalid_request"),
    also if the field is missing: that is not a request for no limit."""
    if name not in params.names():
        raise Refused("invalid_request", MISSING.filled(name=name))
    text = (params.get(name) or "").strip()
    return dollars(text) if text else None


def spend_limit(params: Params) -> SpendLimit:
    """A program's parameter `spend_limit`: micro-dollars a month as a number or its digits, null for no limit. Raises
    Refused("invalid_request")."""
    if "spend_limit" not in params.names():
        return ""
    value = params.value("spend_limit")
    if value is None:
        return "none"
    if value == "":
        return ""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if type(value) is not int or not 0 <= value <= MAX_AMOUNT:
        raise Refused(
            "invalid_request",
            f"spend_limit is a whole number of micro-dollars, at most {MAX_AMOUNT}, or null.",
        )
    return value
