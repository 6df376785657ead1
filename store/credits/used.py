"""Rows of what AI calls used, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from store.app_stats import AppFigures
from store.credits.prices import TokenCounts

NOTHING = TokenCounts()
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The calls of an app with a model on a day; `charged` in micro-dollars. App and model are empty where a day has
    too many of them."""

    day: date
    client: str
    model: str
    calls: int
    charged: int
    tokens: TokenCounts


@dataclass(frozen=True, slots=True)
class Total:
    """Sums of rows; `charged` in micro-dollars."""

    calls: int = 0
    charged: int = 0
    tokens: TokenCounts = NOTHING

    def __add__(self, row: UsageRow) -> Total:
        tokens = TokenCounts(*map(sum, zip(self.tokens, row.tokens, strict=True)))
        return Total(self.calls + row.calls, self.charged + row.charged, tokens)


def of_app(client: str, figures: AppFigures) -> list[UsageRow]:
    """What an app's calls used over all people, from its statistics."""
    return [
        UsageRow(row.day, client, row.model, row.calls, row.charged, TokenCounts.of_counted(row.counted))
        for row in figures.models
    ]


def totals(rows: Iterable[UsageRow], key: Callable[[UsageRow], K]) -> dict[K, Total]:
    """The sums of the rows with the same key, in the order of the rows."""
    sums: dict[K, Total] = {}
    for row in rows:
        sums[key(row)] = sums.get(key(row), Total()) + row
    return sums
