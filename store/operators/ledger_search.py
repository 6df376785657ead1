"""Finds entries in a person's ledger, and adds it up, in steps of bounded work."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from store import keys
from store.credits.credits import LedgerEntry, entry_of
from store.engine.scripts import Scripts
from store.operators.cursors import Cursors
from store.phrases import Phrase
from store.refused import Refused

KINDS: Final = ("grant", "purchase", "charge", "reversal")
STEP: Final = 500
"""Entries that one script reads: less than a millisecond."""
MOST_STEPS: Final = 4
"""Steps of one page of a search, whatever it finds."""
FOREVER: Final = 2**53
_ID: Final = re.compile(r"[1-9][0-9]{0,17}-[0-9]{1,18}")
MOST_TEXT: Final = 255


class LedgerFilter(NamedTuple):
    """Which entries are wanted: of an app, of a kind, with this id, payment or hold, in a time (epoch ms). Empty texts
    stand for any."""

    app: str = ""
    kind: str = ""
    transaction: str = ""
    since: int = 0
    until: int = FOREVER

    def checked(self) -> LedgerFilter:
        """The filter itself. Raises Refused("invalid_request") for a wrong one."""
        if self.kind and self.kind not in KINDS:
            raise Refused("invalid_request", f"kind is {', '.join(KINDS)}.")
        if max(len(self.app), len(self.transaction)) > MOST_TEXT:
            raise Refused("invalid_request", f"An id is at most {MOST_TEXT} characters.")
        if self.since >= self.until:
            raise Refused("invalid_request", Phrase("The start must be before the end."))
        return self


class LedgerPart(NamedTuple):
    """A part of a ledger: its balance now, the sum of the part's entries, sums by day (days since 1970) and name, what
    was found, and the id from which the next part goes on, "" after the last one."""

    paid: int
    opening: int
    length: int
    sum: int
    days: dict[tuple[int, str], int]
    found: tuple[LedgerEntry, ...]
    onward: str


class FoundEntries(NamedTuple):
    """Entries, newest first, and the cursor of the next page, "" after the last one."""

    entries: tuple[LedgerEntry, ...]
    cursor: str


class LedgerSearch:
    """Searches ledgers. Every method raises StoreUnavailable."""

    def __init__(self, scripts: Scripts, cursors: Cursors) -> None:
        self._scripts = scripts
        self._cursors = cursors

    async def page(self, user: str, wanted: LedgerFilter, limit: int, cursor: str) -> FoundEntries:
        """A page of a person's entries; it may have fewer than `limit`, even none. Raises
        Refused("invalid_request")."""
        wanted = wanted.checked()
        query = f"ledger {user} {wanted!r}"
        before = self._cursors.open(query, cursor)
        found: list[LedgerEntry] = []
        for _ in range(MOST_STEPS):
            part = await self.part(user, wanted, before, room=limit - len(found), whole=False)
            found += part.found
            before = part.onward
            if not before or len(found) == limit:
                break
        return FoundEntries(tuple(found), self._cursors.seal(query, before) if before else "")

    async def part(
        self, user: str, wanted: LedgerFilter, before: str, *, room: int, whole: bool, most: int = STEP
    ) -> LedgerPart:
        """A part of a ledger from an entry on, downwards; `whole`: entries older than the filter are read too."""
        credits = keys.credits(user)
        exact = wanted.transaction if _ID.fullmatch(wanted.transaction) else ""
        # The id of an entry says where it is.
        start = before or (_above(exact) if exact else "" if wanted.until == FOREVER else f"{wanted.until}-0")
        reply = await self._scripts.run(
            "tally_ledger",
            {"balance": credits["balance"], "ledger": credits["ledger"]},
            before="" if whole and not before else start,
            floor="-" if whole else exact or str(wanted.since),
            most=most,
            since=wanted.since,
            ends=wanted.until,
            app=wanted.app,
            kind=wanted.kind,
            transaction=wanted.transaction,
            room=room,
        )
        days = {}
        for name, amount in reply.rows("days"):
            day, _, kind = name.decode().partition(" ")
            days[int(day), kind] = int(amount)
        return LedgerPart(
            int(reply.text("paid")),
            int(reply.text("opening")),
            reply.number("length"),
            int(reply.text("sum")),
            days,
            tuple(entry_of(row) for row in reply.rows("found")),
            reply.text("onward"),
        )


def _above(entry: str) -> str:
    """A place in the ledger just above an entry."""
    moment, _, number = entry.partition("-")
    return f"{moment}-{int(number) + 1}"
