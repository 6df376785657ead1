"""How many people sign in, by day: sign-ins, refusals, sign-ups, and active people.

The figures are counted with the batches of the security log, so no sign-in waits for them. They are approximate: a
batch with a lost answer may be missing, and active people are estimated within about one in a hundred.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import orjson

from store import keys
from store.accounts.audit.logged_event import AuditEvent
from store.engine.scripts import Scripts
from store.lifetimes import DAY

KEPT_DAYS: Final = 400
"""Days that figures are kept."""
_EPOCH: Final = date(1970, 1, 1)
SIGN_INS: Final = ("signed_in", "signed_in_by_passkey", "signed_in_by_provider", "signed_in_by_recovery")
REFUSALS: Final = ("sign_in_refused", "second_step_refused", "passkey_refused", "provider_refused")
_COUNTED: Final = {
    **dict.fromkeys(SIGN_INS, "sign_ins"),
    **dict.fromkeys(REFUSALS, "refusals"),
    "signed_up": "sign_ups",
}


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The figures of a day (UTC)."""

    on: date
    sign_ins: int = 0
    refusals: int = 0
    sign_ups: int = 0
    active: int = 0


class ActivityFigures:
    """Counts and reads the figures."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def count(self, shard: int, events: Iterable[AuditEvent]) -> None:
        """Adds events of a shard of the log to the present day. Whoever did something with an account is active. Raises
        StoreError, StoreUnavailable."""
        counts: Counter[str] = Counter()
        people = set()
        for event in events:
            if kind := _COUNTED.get(event.event):
                counts[kind] += event.count
            if event.person and event.actor == "person" and event.result == "ok" and event.stream != "strangers":
                people.add(event.person)
        if not counts and not people:
            return
        await self._scripts.run(
            "count_activity",
            keys.trail(shard),
            keep=KEPT_DAYS * DAY,
            counts=orjson.dumps(counts).decode(),
            people=orjson.dumps(sorted(people)).decode(),
        )

    async def days(self, days: int) -> list[DayFigures]:
        """The figures of the last `days` days, the oldest first. Raises StoreUnavailable."""
        calls = [self._scripts.run("read_figures", keys.trail(shard), days=days) for shard in range(keys.TRAIL_SHARDS)]
        found: defaultdict[int, Counter[int]] = defaultdict(Counter)
        last = 0
        for reply in await asyncio.gather(*calls):
            last = max(last, reply.number("today"))
            for place, row in enumerate(reply.rows("rows")):
                # A person is in one shard, so the numbers of active people add up.
                found[reply.number("today") - days + 1 + place].update(dict(enumerate(map(int, row))))
        return [
            DayFigures(_EPOCH + timedelta(days=day), *(found[day][place] for place in range(4)))
            for day in range(last - days + 1, last + 1)
        ]
