"""The walk: every key of the store is looked at while servers run, and what is wrong may be put right.

What lies in one slot is read at one moment by one script, so a change under way is never seen by half. What lies in
several is changed step by step: where it does not fit, it is looked at again when the walk has ended and whatever was
under way has had its time. A mended key is looked at once more; only what is gone then counts as mended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from redis.asyncio import Redis

from store import keys
from store.accounts.addresses import Addresses
from store.accounts.signin.totp import TotpSecrets
from store.crypto.cipher import Cipher
from store.crypto.keyring import Keys
from store.engine.scripts import Scripts
from store.fsck import apps, rows
from store.fsck.context import FsckContext
from store.fsck.invariants import ERROR, INVARIANTS, Finding
from store.fsck.reading import Reader, in_steps

AT_ONCE = 32
"""Keys that are looked at together: what the store does for them takes no longer than a listing."""
SETTLE = 6.0
"""Seconds after which no change can be under way that was when the walk came by: longer than a call may take."""
ROUNDS = 6
"""What is put right can show what was hidden behind it; so often a key is looked at again."""
NAMED = 20


@dataclass(slots=True)
class Tally:
    """What was found of one invariant, and what of it was mended; the first findings, with whether each was."""

    found: int = 0
    mended: int = 0
    first: list[tuple[Finding, bool]] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """How far the walk is: of about `size` keys those that were `seen`; people, apps and documents; what kept changing
    and could not be looked at as a whole; and what was found, by invariant."""

    size: int = 0
    seen: int = 0
    people: int = 0
    apps: int = 0
    documents: int = 0
    busy: int = 0
    most: int = NAMED
    names: set[tuple[str, str, str]] = field(default_factory=set)
    tallies: dict[str, Tally] = field(default_factory=lambda: {one.name: Tally() for one in INVARIANTS})

    def add(self, finding: Finding, mended: bool) -> None:
        """Enters a finding."""
        tally = self.tallies[finding.invariant.name]
        tally.found += 1
        tally.mended += mended
        if len(tally.first) < self.most:
            tally.first.append((finding, mended))

    def left(self, severity: str) -> int:
        """How many findings of this severity were not mended."""
        told = (self.tallies[one.name] for one in INVARIANTS if one.severity == severity)
        return sum(tally.found - tally.mended for tally in told)

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong, or nothing is any more. Notes are no faults."""
        return self.left(ERROR) == 0


class Fsck:
    """A check of the whole store."""

    def __init__(
        self, client: Redis, scripts: Scripts, cipher: Cipher, secrets: TotpSecrets, ring: Keys, addresses: Addresses
    ) -> None:
        self._reader = Reader(client, scripts)
        self._facts = (cipher, secrets, ring, addresses)
        self.settle = SETTLE

    def _context(self, deep: bool = False, last: bool = False) -> FsckContext:
        return FsckContext(self._reader, *self._facts, deep, last)

    async def run(self, *, deep: bool = False, repair: bool = False, most: int = NAMED) -> AsyncGenerator[Report, None]:
        """Looks at every key, and says after each step how far it is. `deep`: what is encrypted is opened; `repair`:
        what can be derived is put right; `most`: findings of each invariant that are kept to be shown. Raises
        StoreError, StoreUnavailable; it may be begun again."""
        context = self._context(deep=deep)
        report = Report(size=await self._reader.size(), most=most)
        async for some in self._reader.every_key():
            for part in in_steps(some, AT_ONCE):
                await self._look_at(context, part, report, repair)
                report.seen += len(part)
                report.people, report.apps = context.people, context.apps
                report.documents, report.busy = context.documents, context.busy
                yield report
        if context.unsure:
            await asyncio.sleep(self.settle)
        context.last = True
        for part in in_steps([key.encode() for key in context.unsure], AT_ONCE):
            await self._look_at(context, part, report, repair, again=True)
            yield report
        for client in sorted(await self._clients()):
            drifted = await apps.drifted(context, client)
            for one in drifted:
                if repair and one.mend:
                    await one.mend()
                report.add(one, repair)
        report.busy = context.busy
        yield report

    async def check(self, key: str) -> list[Finding]:
        """What is wrong with one key, and with what it stands for, as it is now. Raises StoreUnavailable."""
        return await rows.check(self._context(last=True), key.encode())

    async def _clients(self) -> set[str]:
        listed = await self._reader.command("ZRANGE", keys.APPS, 0, -1)
        return {one.decode("utf-8", "replace") for one in listed or []}

    async def _look_at(
        self, context: FsckContext, part: Sequence[bytes], report: Report, repair: bool, again: bool = False
    ) -> None:
        for key, findings in zip(part, await asyncio.gather(*(rows.check(context, key) for key in part)), strict=True):
            # Of a key that is looked at again, the rest was told when the walk came by.
            await self._tell(
                context, key, [one for one in findings if one.invariant.apart or not again], report, repair
            )

    async def _tell(
        self, context: FsckContext, key: bytes, findings: list[Finding], report: Report, repair: bool
    ) -> None:
        """Enters what was found, and puts right what can be, until nothing more is shown behind it."""
        # A key may come twice in a walk.
        told = {one.name: one for one in findings if one.name not in report.names}
        report.names |= told.keys()
        places = {name[:2] for name in told}
        left = set(told)
        for _ in range(ROUNDS):
            mendable = [one for one in findings if repair and one.mend]
            if not mendable:
                break
            for one in mendable:
                assert one.mend is not None
                await one.mend()
            now = await rows.check(self._context(deep=context.deep, last=True), key)
            findings = [one for one in now if context.last or not one.invariant.apart]
            left = {one.name for one in findings}
            # The same in other words, since something beside it was put right, is told of once.
            told |= {one.name: one for one in findings if one.name[:2] not in places}
            places |= {one.name[:2] for one in findings}
        for name, one in told.items():
            report.add(one, repair and one.mend is not None and name not in left)
