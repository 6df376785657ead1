"""Budgets: what an app may spend of a person's credits, by authorization details. RFC 9396."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from store.moments import at
from store.names import DETAILS_TYPES

SPEND = "credits:spend"
"""The scope that a budget bounds."""
BUDGET_TYPES = CREDITS, INFERENCE = DETAILS_TYPES
TOTAL, MONTH = "total", "month"
PERIODS = (TOTAL, MONTH)
_ALL = "*"


class Budget(NamedTuple):
    """A budget of a grant, or one that an app asks for. `limit` is in micro-dollars, in all or in a calendar month
    (UTC); `models` has the names of models that it is for, none for all; `ends` is when it ends (epoch ms), 0 for no
    end; `used`: what calls were charged of it, in micro-dollars."""

    type: str
    limit: int
    period: str = TOTAL
    models: tuple[str, ...] = ()
    ends: int = 0
    used: int = 0

    @property
    def ends_at(self) -> datetime | None:
        """When it ends; None for no end."""
        return at(self.ends) if self.ends else None

    def detail(self) -> dict[str, Any]:
        """The authorization detail of its type. `expires_at` is in seconds since 1970."""
        found: dict[str, Any] = {"type": self.type}
        if self.type == CREDITS:
            found |= {"limit": self.limit, "period": self.period}
        else:
            found |= {"budget": self.limit}
        if self.models:
            found["models"] = list(self.models)
        if self.ends:
            found["expires_at"] = self.ends // 1000
        return found


def details_of(budgets: Iterable[Budget]) -> list[dict[str, Any]]:
    """The authorization details of budgets."""
    return [budget.detail() for budget in budgets]


def used_of(budgets: Sequence[Budget]) -> int:
    """What `budget_used` says: the use of the budget for inference, or else of the one of credits."""
    return budgets[-1].used


def written(budgets: Iterable[Budget], *, granted: bool = False) -> str:
    """Budgets as scripts take them: lines 'type limit period models', of `granted` ones 'type limit period ends
    models'."""
    return "\n".join(
        " ".join((one.type, str(one.limit), one.period, *((str(one.ends),) if granted else ()), _models(one.models)))
        for one in budgets
    )


def read_budgets(text: str) -> tuple[Budget, ...]:
    """The inverse of `written`, for budgets that were asked for."""
    rows = (line.split(" ", 3) for line in text.splitlines())
    return tuple(Budget(kind, int(limit), period, _named(models)) for kind, limit, period, models in rows)


def told_budgets(row: Sequence[bytes]) -> tuple[Budget, ...]:
    """The budgets in a script's answer: type, field of the grant and use, for each."""
    found = []
    for kind, text, used in zip(row[::3], row[1::3], row[2::3], strict=True):
        limit, period, _, ends, models = text.decode().split(" ", 4)
        found.append(Budget(kind.decode(), int(limit), period, _named(models), int(ends), int(used)))
    return tuple(found)


def amounts(chosen: Iterable[tuple[str, int]]) -> str:
    """Amounts of budgets by type, as scripts take them."""
    return "\n".join(f"{kind} {limit}" for kind, limit in chosen)


def _models(models: tuple[str, ...]) -> str:
    return " ".join(models) or _ALL


def _named(models: str) -> tuple[str, ...]:
    return () if models == _ALL else tuple(models.split(" "))
