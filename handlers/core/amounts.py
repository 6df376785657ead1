"""Amounts of money as people and programs send them, in whole micro-dollars. No float touches money."""

from __future__ import annotations

import re
from typing import Literal

from handlers.core.params import Params
from store.credits.credits import MAX_AMOUNT, SCALE
from store.refused import Refused

SpendLimit = int | Literal["none", ""]
"""Micro-dollars a month; "none" takes a limit off, "" leaves it as it is."""

DEFAULT_SPEND_LIMIT = 5_000_000
"""What the consent page offers to a person who never let the app spend."""

# For the field's own check in the browser, which spares the person a round trip; `dollars` below decides.
DOLLARS_PATTERN = r"\s*\$?\s*[0-9]{0,7}(\.[0-9]{0,6})?\s*"
_DOLLARS = re.compile(r"\$?\s*(?=\.?[0-9])([0-9]{0,9})(?:\.([0-9]{0,6}))?")
_WHOLE = re.compile(r"[0-9]{1,16}")


def dollars(text: str) -> int:
    """Micro-dollars of an amount in dollars that a person typed: "5", "5.00", "$0.5". Raises
    Refused("invalid_request") for anything else, a comma, a seventh decimal and more than a million dollars."""
    found = _DOLLARS.fullmatch(text.strip())
    micro = int(found[1] or 0) * 10**SCALE + int((found[2] or "").ljust(SCALE, "0")) if found else MAX_AMOUNT + 1
    if micro > MAX_AMOUNT:
        raise Refused(
            "invalid_request",
            "Enter an amount in dollars, such as 5 or 5.00: no comma, at most six decimals, at most a million.",
        )
    return micro


def typed_limit(params: Params, name: str) -> int | None:
    """The limit in a field of dollars, in micro-dollars; None for a field that was left empty. Raises
    Refused("invalid_request"), also for a field that is missing: nobody asked for no limit then."""
    if name not in params.names():
        raise Refused("invalid_request", f"{name} is missing.")
    text = (params.get(name) or "").strip()
    return dollars(text) if text else None


def spend_limit(params: Params) -> SpendLimit:
    """The parameter `spend_limit` of a program: micro-dollars a month as a number or its digits, null for no limit.
    Raises Refused("invalid_request")."""
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
            "invalid_request", f"spend_limit is a whole number of micro-dollars, at most {MAX_AMOUNT}, or null."
        )
    return value
