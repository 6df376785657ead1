"""Budgets on the consent page: what an app asks for in words and money, and what the person makes of it. RFC 9396."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import NamedTuple

from handlers.core.amounts import dollars
from handlers.core.format import money_field
from handlers.core.params import Params
from handlers.core.words.budgets import FIELD, names_of_models
from handlers.core.words.sentences import sentences
from outbound.ai.models import Models
from store.credits.credits import MAX_AMOUNT
from store.lifetimes import DAY, MINUTE, SECOND
from store.oauth.budgets import BUDGET_TYPES, CREDITS, MONTH, SPEND, Budget
from store.phrases import Phrase
from store.refused import Refused

ASKED = "asked_"
"""Before a type: what the app asked for, in micro-dollars. It only helps the person: the script knows it too."""
LASTS = "budgets_last"
LENGTHS = (
    (0, Phrase("Until I disconnect the app")),
    (60 * MINUTE // SECOND, Phrase("For an hour")),
    (DAY // SECOND, Phrase("For a day")),
    (7 * DAY // SECOND, Phrase("For a week")),
    (30 * DAY // SECOND, Phrase("For 30 days")),
)
"""How long the page lets budgets last, in seconds; 0: no end."""
LEAST_SECONDS, MOST_SECONDS = 60, 366 * DAY // SECOND
_AGAIN = Phrase("Nothing was changed, and the app is still waiting. Go back and enter the amount again.")


class ChosenBudgets(NamedTuple):
    """What the person made of the requested budgets: amounts by type, in micro-dollars, and ms until they end (0: no
    end)."""

    amounts: Mapping[str, int]
    lasts: int


def budget_fields(budgets: Iterable[Budget], models: Models, typed: Mapping[str, str]) -> list[SimpleNamespace]:
    """The fields of the page for requested budgets. `typed`: what the person typed before, by the name of the field."""
    return [
        SimpleNamespace(
            name=FIELD + budget.type,
            asked_name=ASKED + budget.type,
            asked=budget.limit,
            text=typed.get(FIELD + budget.type, money_field(budget.limit)),
            monthly=budget.period == MONTH,
            inference=budget.type != CREDITS,
            models=names_of_models(budget, models),
        )
        for budget in budgets
    ]


def chosen_budgets(params: Params, decision: str, scopes: list[str] | None) -> ChosenBudgets:
    """The person's choice: the fields of the page, or a program's `budgets` (micro-dollars by type) and `budgets_last`
    (seconds). It counts only if the person allows spending. Raises Refused("invalid_request")."""
    if decision != "allow" or (scopes is not None and SPEND not in scopes):
        return ChosenBudgets({}, 0)
    return ChosenBudgets(_typed(params) if params.get("boxes") else _sent(params), _lasts(params))


def _typed(params: Params) -> dict[str, int]:
    found = {}
    for kind in BUDGET_TYPES:
        if FIELD + kind in params.names():
            try:
                found[kind] = _amount(params, kind)
            except Refused as refusal:
                raise Refused("invalid_request", sentences(refusal.description, _AGAIN)) from None
    return found


def _amount(params: Params, kind: str) -> int:
    amount = dollars(params.get(FIELD + kind) or "")
    if amount < 1:
        raise Refused("invalid_request", Phrase("Enter an amount above zero, or untick the box to allow no spending."))
    asked = params.get(ASKED + kind) or ""
    if asked.isascii() and asked.isdigit() and len(asked) < 17 and amount > int(asked):
        raise Refused("invalid_request", Phrase("The app asks for less than that. You can only lower the amount."))
    return amount


def _sent(params: Params) -> dict[str, int]:
    sent = params.structured("budgets")
    if sent is None or sent == "":
        return {}
    if not isinstance(sent, dict) or not all(
        kind in BUDGET_TYPES and type(amount) is int and 1 <= amount <= MAX_AMOUNT for kind, amount in sent.items()
    ):
        raise Refused("invalid_request", f"budgets has micro-dollars from 1 to {MAX_AMOUNT}, by type.")
    return sent


def _lasts(params: Params) -> int:
    if params.value(LASTS) in (None, "", "0", 0):
        return 0
    seconds = params.whole(LASTS)
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise Refused("invalid_request", f"{LASTS} is {LEAST_SECONDS} to {MOST_SECONDS} seconds, or 0 for no end.")
    return seconds * SECOND
