"""Budgets of apps, as pages show them."""

from __future__ import annotations

from outbound.ai.models import Models
from store.oauth.budgets import Budget

FIELD = "budget_"
"""Before a type: a form's field of dollars."""


def names_of_models(budget: Budget, models: Models) -> list[str]:
    """The names that people see of the models that a budget is for; none for all."""
    found = ((name, models.find(name)) for name in budget.models)
    return [model.display_name if model else name for name, model in found]


def bar_share(used: int, limit: int) -> int:
    """How much of a bar is full, in whole percent. It is full only if nothing is left, and empty only if nothing is
    used."""
    if used >= limit:
        return 100
    return min(99, max(1, used * 100 // limit)) if used else 0
