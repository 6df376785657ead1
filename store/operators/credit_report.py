"""A report on everybody's credits, made in the background: sums by day, reconciliation, and found entries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from redis.asyncio import Redis

from store import keys
from store.credits.records import entry_record
from store.crypto.seal import fingerprint
from store.errors import wrapped
from store.operators.jobs import BegunJob, OperatorJob, OperatorJobs
from store.operators.ledger_search import LedgerFilter, LedgerPart, LedgerSearch
from store.operators.roles import OperatorActor
from store.refused import Refused

KIND: Final = "credits"
JOB: Final = fingerprint("credits report")
"""There is one report: a new one takes the place of the last."""
AT_ONCE: Final = 20
"""People whose ledgers are read at once."""
SHARDS_AT_ONCE: Final = 32
MOST_FOUND: Final = 200
MOST_DIFFERENCES: Final = 50
TRIES: Final = 3
"""Times that a ledger is read which moved meanwhile."""


class CreditReports:
    """Makes and shows the report. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis, jobs: OperatorJobs, search: LedgerSearch) -> None:
        self._client = client
        self._jobs = jobs
        self._search = search

    async def begin(self, actor: OperatorActor, wanted: LedgerFilter) -> BegunJob | None:
        """A new report with this filter, to be given to `run`; None while another one is made. Raises
        Refused("invalid_request") for a wrong filter."""
        order = wanted.checked()._asdict()
        if not await self._jobs.prepare(KIND, actor, order, len(keys.SHARDS), JOB):
            return None
        begun = await self._jobs.begin(JOB, KIND, actor)
        return begun if isinstance(begun, BegunJob) else None

    async def last(self) -> OperatorJob | None:
        """The last report, made or in progress; None if there is none."""
        return await self._jobs.read(JOB, KIND)

    async def run(self, job: BegunJob) -> None:
        """Makes the report, shard by shard."""
        wanted, done, report = LedgerFilter(**job.order), job.done, _report_of(job.report)
        while done < len(keys.SHARDS):
            shards = keys.SHARDS[done : done + SHARDS_AT_ONCE]
            users = await self._users(shards)
            for start in range(0, len(users), AT_ONCE):
                await asyncio.gather(*(self._add(report, user, wanted) for user in users[start : start + AT_ONCE]))
            done += len(shards)
            await self._jobs.note(job.id, done, report, over=done == len(keys.SHARDS))

    async def _users(self, shards: tuple[str, ...]) -> list[str]:
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for shard in shards:
                    batch.smembers(keys.shard_users(shard))
                lists: list[Any] = await batch.execute()
        return [keys.user_of(shard, one) for shard, listed in zip(shards, lists, strict=True) for one in listed]

    async def _add(self, report: dict[str, Any], user: str, wanted: LedgerFilter) -> None:
        """Adds a person's ledger to the report."""
        parts: list[LedgerPart] = []
        for _ in range(TRIES):
            parts = await parts_of(lambda before: self._part(report, user, wanted, before))
            ledger = parts[-1].opening + sum(part.sum for part in parts)
            if ledger == parts[-1].paid or parts[0].paid != parts[-1].paid:
                break
        report["people"] += 1
        report["paid"] += parts[-1].paid
        report["ledger"] += ledger
        days = report["days"]
        for part in parts:
            for (day, kind), amount in part.days.items():
                days[f"{day} {kind}"] = days.get(f"{day} {kind}", 0) + amount
            for entry in part.found:
                if len(report["found"]) == MOST_FOUND:
                    report["more"] = True
                    break
                report["found"].append({"person": user, "id": entry.entry_id, **entry_record(entry)})
        if ledger != parts[-1].paid:
            report["different"] += 1
            if len(report["differences"]) < MOST_DIFFERENCES:
                report["differences"].append({"person": user, "paid": parts[-1].paid, "ledger": ledger})

    async def _part(self, report: dict[str, Any], user: str, wanted: LedgerFilter, before: str) -> LedgerPart:
        # The report looks for entries only if it was asked for some: all of them would be everybody's.
        room = MOST_FOUND + 1 if wanted.app or wanted.kind or wanted.transaction else 0
        return await self._search.part(user, wanted, before, room=room, whole=True)


async def parts_of(read: Callable[[str], Awaitable[LedgerPart]]) -> list[LedgerPart]:
    """All parts of a ledger, newest first."""
    parts = [await read("")]
    while parts[-1].onward:
        parts.append(await read(parts[-1].onward))
    return parts


def _report_of(kept: dict[str, Any]) -> dict[str, Any]:
    empty = {"people": 0, "paid": 0, "ledger": 0, "different": 0, "more": False}
    return {**empty, "differences": [], "found": [], "days": {}, **kept}


def check_known(job: OperatorJob | None) -> OperatorJob:
    """The report. Raises Refused("not_found") if there is none."""
    if job is None:
        raise Refused("not_found", "No report was made yet. POST this address to make one.")
    return job
