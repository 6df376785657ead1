"""What AI calls used: calls, charges and tokens of each kind, by day (UTC), app and model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from store import keys
from store.accounts.signin.sessions import Session
from store.credits.prices import TokenCounts
from store.credits.used import K, Total, UsageRow, totals
from store.engine.scripts import Reply, Scripts
from store.lifetimes import CREDITS_USAGE, DAY, USAGE
from store.oauth.guard import admitted
from store.refused import Refused, refuse_signed_out
from store.results import Caller, Profile, Window, profile_of

DAYS = 30
"""The days of a report that names none."""
MOST_ROWS = 1000
"""The most rows of a person; then the oldest days go."""


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The rows of the days from `first` to `last`, by day, app and model."""

    first: date
    last: date
    rows: tuple[UsageRow, ...]

    def by(self, key: Callable[[UsageRow], K]) -> dict[K, Total]:
        """The sums of the rows with the same key, in the order of the rows."""
        return totals(self.rows, key)


class UsageReports:
    """Reports for apps and for people. `idle` is the idle lifetime of a session in ms."""

    def __init__(self, scripts: Scripts, idle: int) -> None:
        self._scripts = scripts
        self._idle = idle

    async def report(
        self, caller: Caller, needed: str, first: date | None = None, last: date | None = None
    ) -> tuple[UsageReport, Window]:
        """What the app's calls used, by default today and the 29 days before. Raises Refused("invalid_token",
        "insufficient_scope", "rate_limited", or "invalid_request" if the first day comes after the last)."""
        if first and last and first > last:
            raise Refused("invalid_request", "from is after to.")
        reply = await self._scripts.run(
            "report_usage",
            {
                **keys.token(caller.user, caller.client, caller.family, caller.generation),
                **keys.credits(caller.user),
                "window": keys.limit(caller.user, CREDITS_USAGE.name, caller.client),
            },
            needed=caller.demands(needed),
            limit=CREDITS_USAGE.limit,
            period=CREDITS_USAGE.period,
            client=caller.client,
            proof=caller.proof,
            first=_number(first),
            last=_number(last),
            days=DAYS,
        )
        window = admitted(reply, CREDITS_USAGE, needed)
        return _usage(reply), window

    async def of(self, session: Session, days: int) -> tuple[Profile, UsageReport]:
        """The signed-in person, and what the calls of all apps used today and on the days before, `days` in all.
        Raises SignedOut."""
        reply = await self._scripts.run("show_usage", session.keys(), idle=self._idle, days=days)
        refuse_signed_out(reply)
        return profile_of(session.user, reply), _usage(reply)

    async def all_of(self, user: str) -> UsageReport:
        """All rows of a person that are kept, for the export. Raises Refused("not_found")."""
        reply = await self._scripts.run("inspect_usage", keys.person(user), days=2 * USAGE // DAY)
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        return _usage(reply)


def _number(day: date | None) -> int:
    """The day as a number since 1970; 0 for none. The first day itself is 1: nothing was used on either."""
    return max(1, (day - date(1970, 1, 1)).days) if day else 0


def _day(number: int) -> date:
    return date(1970, 1, 1) + timedelta(days=number)


def _usage(reply: Reply) -> UsageReport:
    fields = reply.rows("rows")
    rows = [_row(name.decode(), value.decode()) for name, value in zip(fields[::2], fields[1::2], strict=True)]
    rows.sort(key=lambda row: (row.day, row.client, row.model))
    return UsageReport(_day(reply.number("first")), _day(reply.number("last")), tuple(rows))


def _row(name: str, value: str) -> UsageRow:
    day, client, model = name.split(" ", 2)
    calls, charged, *tokens = map(int, value.split())
    return UsageRow(_day(int(day)), client, model, calls, charged, TokenCounts.of_counted(tokens))
