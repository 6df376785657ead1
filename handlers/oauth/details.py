"""The parameter `authorization_details`: the budgets that an app asks for. RFC 9396 2, 5."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from handlers.core.params import Params, decode_json
from store.credits.credits import MAX_AMOUNT
from store.oauth.budgets import BUDGET_TYPES, CREDITS, INFERENCE, PERIODS, TOTAL, Budget, written
from store.refused import Refused

MAX_DETAILS = 4096
MOST_NESTED = 8
"""Arrays and objects in the parameter: the list, a detail of each type, and its models take five."""
MOST_MODELS = 50
# A model's name is on the consent page, and in a row between spaces.
_MODEL = re.compile(r"[!-~]{1,128}")
_LATEST = 10**11
"""Seconds since 1970, some 3,000 years from now."""
_AMOUNT = {CREDITS: "limit", INFERENCE: "budget"}
"""The member with the amount, by type."""
_MEMBERS = {CREDITS: {"type", "limit", "period", "models"}, INFERENCE: {"type", "budget", "models"}}
Offered = Callable[[str], object]
"""Finds a model by its name; false if there is none."""


def nothing_offered(name: str) -> bool:
    """For a server without models."""
    return False


def check_details(params: Params, offered: Offered, *, granted: bool = False) -> str:
    """The budgets in the parameter, as scripts take them; empty without it. In `granted` ones, which a token request
    names, `expires_at` may be a member, as in token responses. Raises Refused("invalid_authorization_details"), for
    anything unknown too (RFC 9396 5)."""
    value = params.value("authorization_details")
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or len(value) > MAX_DETAILS or len(value.encode("utf-8", "replace")) > MAX_DETAILS:
        raise _wrong(f"It is JSON text of at most {MAX_DETAILS} bytes.")
    # Bounds the depth before anything is parsed.
    if value.count("[") + value.count("{") > MOST_NESTED:
        raise _wrong("It has too many parts.")
    try:
        details = decode_json(value.encode("utf-8", "surrogatepass"))
    except Refused:
        raise _wrong("It is not valid JSON.") from None
    if not isinstance(details, list) or not 1 <= len(details) <= len(BUDGET_TYPES):
        raise _wrong(f"It is an array of 1 to {len(BUDGET_TYPES)} objects.")
    budgets = [_budget(detail, offered, granted) for detail in details]
    if len({budget.type for budget in budgets}) < len(budgets):
        raise _wrong("A type is there once at most.")
    return written(sorted(budgets, key=lambda budget: BUDGET_TYPES.index(budget.type)), granted=granted)


def _budget(detail: object, offered: Offered, granted: bool) -> Budget:
    kind = detail.get("type") if isinstance(detail, dict) else None
    if not isinstance(detail, dict) or kind not in BUDGET_TYPES:
        raise _wrong(f"A detail's type is {' or '.join(BUDGET_TYPES)}.")
    if not detail.keys() <= _MEMBERS[kind] | ({"expires_at"} if granted else set()):
        raise _wrong(f"The members of {kind} are {', '.join(sorted(_MEMBERS[kind]))}.")
    limit, period = detail.get(_AMOUNT[kind]), detail.get("period", TOTAL)
    # A granted budget may have been lowered to nothing.
    if type(limit) is not int or not (0 if granted else 1) <= limit <= MAX_AMOUNT:
        raise _wrong(f"{_AMOUNT[kind]} is a whole number of micro-dollars from 1 to {MAX_AMOUNT}.")
    if period not in PERIODS:
        raise _wrong(f"period is {' or '.join(PERIODS)}.")
    ends = detail.get("expires_at", 0)
    if type(ends) is not int or not 0 <= ends <= _LATEST:
        raise _wrong("expires_at is a number of seconds.")
    # Models may have changed since the grant.
    return Budget(kind, limit, period, _models(detail, (lambda name: True) if granted else offered), ends * 1000)


def _models(detail: dict[str, Any], offered: Offered) -> tuple[str, ...]:
    if "models" not in detail:
        return ()
    models = detail["models"]
    if not isinstance(models, list) or not 1 <= len(models) <= MOST_MODELS:
        raise _wrong(f"models is an array of 1 to {MOST_MODELS} names.")
    if not all(isinstance(name, str) and _MODEL.fullmatch(name) and name != "*" for name in models):
        raise _wrong("A model is named as in the list of models.")
    if len(set(models)) < len(models) or not all(map(offered, models)):
        raise _wrong("models has names of different models that this server offers.")
    return tuple(sorted(models))


def _wrong(why: str) -> Refused:
    return Refused("invalid_authorization_details", f"authorization_details is not valid. {why}")
