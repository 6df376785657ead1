"""Deletions of accounts that an operator planned: the person is disabled at once, and deleted when the time has come.

The list of open deletions (`keys.DELETIONS`) has the time. It is in another slot than the person's row, which decides:
an entry that the row does not confirm does nothing. Every server looks at the list; the script that finds a deletion
due begins it, so one server alone deletes.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta

from store import keys
from store.accounts.people import People
from store.accounts.signin.sessions import ends_of
from store.clock import wall
from store.engine.background import background
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.names import check_reason
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.relay_wakeup import RelayWakeup

log = logging.getLogger("latchkey.people")

MOST_DAYS = 90
ASK_SECONDS = 60.0
"""The pause before a process looks again for deletions that are due."""
INTERRUPTED = 600
"""Seconds after which a deletion in progress elsewhere counts as interrupted."""

NONE_PLANNED = Phrase("No deletion of this account is planned.")
WRONG_WAIT = Phrase("The wait before a deletion must be 1 to %(most)s days.", most=MOST_DAYS)


def check_wait(days: int, reason: str) -> None:
    """Raises ValueError unless a deletion may wait for so long, with this reason."""
    if not 1 <= days <= MOST_DAYS:
        raise ValueError(WRONG_WAIT)
    check_reason(reason)


class PlannedDeletions:
    """Plans and cancels deletions, and deletes when it is time. Every method raises StoreUnavailable."""

    def __init__(self, scripts: Scripts, people: People, wakeup: RelayWakeup) -> None:
        self._scripts = scripts
        self._people = people
        self._wakeup = wakeup
        self.asks = ASK_SECONDS

    async def plan(self, user: str, days: int, reason: str = "") -> datetime:
        """Disables a person, who may read `reason` at sign-in, and plans the deletion in `days`; returns its time.
        A new plan replaces an older one. Raises Refused("not_found"), ValueError."""
        check_wait(days, reason)
        at = (wall.utc() + timedelta(days=days)).replace(microsecond=0)
        # The list comes first: the row alone would wait for ever.
        await self._people.plan(user, round(at.timestamp()))
        reply = await self._scripts.run(
            "plan_deletion",
            {**keys.person(user), "outbox": keys.outbox(user)},
            reason=reason.strip(),
            at=round(at.timestamp() * 1000),
            **ends_of(user),
        )
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        if reply.number("told"):
            self._wakeup.add(user)
        return at

    async def cancel(self, user: str) -> None:
        """Cancels a planned deletion: the account is as it was before. Raises Refused("not_found"),
        Refused("invalid_request") if there is none."""
        reply = await self._scripts.run("cancel_deletion", keys.person(user))
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        if reply.word == "none":
            raise Refused("invalid_request", NONE_PLANNED)

    def deleting(self) -> AbstractAsyncContextManager[None]:
        """Deletes people whose time has come, in the background of the block."""
        return background(self._keep_deleting())

    async def _keep_deleting(self) -> None:
        while True:
            await asyncio.sleep(self.asks)
            try:
                await self._people.finish_deletions(INTERRUPTED)
            except StoreError as error:
                log.warning("planned deletions postponed: %s", error)
            except Exception:  # an error with one account must not stop the process
                log.exception("planned deletions postponed")
