"""Daily figures of each app: counted in the process and flushed now and then, so approximate by design."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from store import keys
from store.clock import wall
from store.engine.background import background
from store.engine.scripts import Scripts
from store.errors import StoreError

log = logging.getLogger("latchkey.numbers")

FLUSH_SECONDS = 10.0
DAYS_KEPT = 35
DAYS_SHOWN = 30
USED = "used-"
"""Begins a field with the last day on which a client secret was used; its mark follows."""
MOST_APPS = 10_000
"""Apps counted between two flushes; further apps are not counted."""
MODEL = "model "
"""Begins what a day has of a model; the model's id follows."""
MOST_MODELS = 1000
"""Models of an app counted between two flushes; further ones are not counted."""
NAMES = ("calls", "limited", "spent", "connected", "disconnected")
_COLUMNS = 8
"""Numbers of a row of a model: calls, charges, and those of `TokenCounts.counted`."""
_CALLS, _LIMITED, _SPENT, _CONNECTED, _DISCONNECTED = range(len(NAMES))


@dataclass(frozen=True, slots=True)
class Day:
    """Figures of an app for one day (UTC): calls, rate-limited calls, charges in micro-dollars, and how many people
    connected and disconnected the app."""

    day: date
    calls: int = 0
    limited: int = 0
    spent: int = 0
    connected: int = 0
    disconnected: int = 0


@dataclass(frozen=True, slots=True)
class ModelDay:
    """What an app's calls of a model used on a day (UTC), over all people: calls, charges in micro-dollars, and
    the numbers of `TokenCounts.counted`."""

    day: date
    model: str
    calls: int
    charged: int
    counted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AppFigures:
    """Roughly how many people have connected an app, and its figures for the last 30 days, oldest first. `models`: what
    its AI calls used in these days, over all people, by day and model."""

    people: int
    days: tuple[Day, ...]
    secrets_used: Mapping[str, date] = field(default_factory=dict)
    """The last day (UTC) on which each client secret was used, by its mark, if that was in the last 35 days."""
    models: tuple[ModelDay, ...] = ()


class AppStats:
    """Counts in memory; `flush` makes one store call for each active app. A killed process loses the figures that it
    has not flushed. So does a process whose store is unavailable: nothing is ever sent twice."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._counted: dict[str, list[int]] = {}
        self._used: dict[str, set[str]] = {}
        self._models: dict[str, dict[str, list[int]]] = {}
        self._told: set[str] = set()
        self._told_on = 0

    def called(self, client: str, limited: bool) -> None:
        """Counts an answered call of an app; `limited`: the answer was 429."""
        counted = self._counted.get(client) or self._begin(client)
        counted[_CALLS] += 1
        if limited:
            counted[_LIMITED] += 1

    def spent(self, client: str, amount: int, model: str, counted: Sequence[int]) -> None:
        """Counts an app's call of a model: the charge in micro-dollars, and the numbers of
        `TokenCounts.counted`."""
        (self._counted.get(client) or self._begin(client))[_SPENT] += amount
        if client not in self._counted:
            return
        models = self._models.setdefault(client, {})
        sums = models.get(model)
        if sums is None:
            sums = [0] * _COLUMNS
            if len(models) < MOST_MODELS:
                models[model] = sums
        for place, number in enumerate((1, amount, *counted)):
            sums[place] += number

    def connected(self, client: str) -> None:
        """Counts a person who has connected an app."""
        (self._counted.get(client) or self._begin(client))[_CONNECTED] += 1

    def disconnected(self, client: str) -> None:
        """Counts a person who has disconnected an app."""
        (self._counted.get(client) or self._begin(client))[_DISCONNECTED] += 1

    def used_secret(self, client: str, mark: str) -> None:
        """Notes the use of a client secret, named by its mark; once a day in each process."""
        today = int(wall.time()) // 86_400
        if today != self._told_on:
            self._told, self._told_on = set(), today
        if mark not in self._told and len(self._told) < 2 * MOST_APPS:
            self._told.add(mark)
            self._used.setdefault(client, set()).add(mark)

    def _begin(self, client: str) -> list[int]:
        counted = [0] * len(NAMES)
        if len(self._counted) < MOST_APPS:
            self._counted[client] = counted
        return counted

    async def flush(self) -> None:
        """Adds the counted figures to the stored ones. Raises StoreUnavailable; figures that were not sent are lost."""
        counted, self._counted = self._counted, {}
        used, self._used = self._used, {}
        models, self._models = self._models, {}
        for client in counted.keys() | used.keys():
            sums = counted.get(client) or [0] * len(NAMES)
            numbers = dict(zip(NAMES, sums, strict=True))
            marks = " ".join(sorted(used.get(client, ())))
            rows = "\n".join(f"{' '.join(map(str, row))} {model}" for model, row in models.get(client, {}).items())
            await self._scripts.run(
                "add_numbers", keys.app_stats(client), **numbers, keep=DAYS_KEPT, used=marks, models=rows
            )

    async def of(self, client: str) -> AppFigures:
        """The figures of an app that have been flushed."""
        reply = await self._scripts.run("read_numbers", keys.app_stats(client))
        fields = reply.rows("rows")
        days: dict[int, dict[str, int]] = {}
        used: dict[str, date] = {}
        models: list[ModelDay] = []
        today = reply.number("today")
        for name, value in zip(fields[::2], fields[1::2], strict=True):
            number, _, what = name.decode().partition(":")
            if what.startswith(MODEL):
                calls, charged, *of_kinds = map(int, value.split())
                row = ModelDay(_date(int(number)), what[len(MODEL) :], calls, charged, tuple(of_kinds))
                if int(number) > today - DAYS_SHOWN:
                    models.append(row)
            elif what:
                days.setdefault(int(number), {})[what] = int(value)
            elif number.startswith(USED):
                used[number.removeprefix(USED)] = _date(int(value))
        shown = (Day(_date(number), **days.get(number, {})) for number in range(today - DAYS_SHOWN + 1, today + 1))
        return AppFigures(
            max(0, reply.number("people")),
            tuple(shown),
            used,
            tuple(sorted(models, key=lambda row: (row.day, row.model))),
        )

    async def _flush_quietly(self) -> None:
        try:
            await self.flush()
        except StoreError as error:
            log.warning("app figures lost: %s", error)

    async def _keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self._flush_quietly()

    @contextlib.asynccontextmanager
    async def flushing(self) -> AsyncIterator[None]:
        """Flushes in the background while the block runs, and once more after it."""
        try:
            async with background(self._keep_flushing()):
                yield
        finally:
            await self._flush_quietly()


def _date(number: int) -> date:
    return datetime(1970, 1, 1, tzinfo=UTC).date() + timedelta(days=number)
