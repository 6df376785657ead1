"""The walk: checks every key of the store while servers run, and repairs if asked to.

One script reads all data of one slot at one moment, so it never sees half of a change. Data in several slots changes
step by step: if it does not match, the walk checks it again at the end, when changes in progress have had time to
finish. The walk checks a repaired key once more, and a finding counts as repaired only if it is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from redis.asyncio import Redis

from store import keys
from store.accounts.addresses import Addresses
from store.accounts.identities import Identities
from store.accounts.signin.totp import TotpSecrets
from store.crypto.cipher import Cipher
from store.crypto.keyring import Keys
from store.directory.relay import DirectoryRelay
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.fsck import apps, directory, rows
from store.fsck.context import FsckContext
from store.fsck.invariants import ERROR, INVARIANTS, Finding
from store.fsck.reading import Reader, in_steps, is_wrong_type

AT_ONCE = 32
"""Keys checked together: their reads take the store no longer than a listing."""
UNSURE = 100_000
"""The walk pauses to check unsure keys again once it has this many, so its memory does not grow with the store."""
SETTLE = 6.0
"""Seconds after which every change seen in progress has ended: longer than a call may take."""
ROUNDS = 6
"""The most checks of one key: a repair can reveal another problem."""
NAMED = 20
REMEMBERED = 100_000
"""Remembered findings: SCAN may yield a key twice, and its finding counts once."""


@dataclass(slots=True)
class Tally:
    """The findings of one invariant: how many, how many repaired, and the first ones, each with its outcome."""

    found: int = 0
    mended: int = 0
    first: list[tuple[Finding, bool]] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """The progress of a walk: keys `seen` of about `size`; people, apps and documents; the things that kept changing
    and could not be checked as a whole; and the findings, by invariant."""

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
        """Adds a finding."""
        tally = self.tallies[finding.invariant.name]
        tally.found += 1
        tally.mended += mended
        if len(tally.first) < self.most:
            tally.first.append((finding, mended))

    def left(self, severity: str) -> int:
        """How many findings of this severity were not repaired."""
        tallies = (self.tallies[one.name] for one in INVARIANTS if one.severity == severity)
        return sum(tally.found - tally.mended for tally in tallies)

    @property
    def clean(self) -> bool:
        """Whether no error is left. Notes are not errors."""
        return self.left(ERROR) == 0


class Fsck:
    """A check of the whole store."""

    def __init__(
        self,
        client: Redis,
        scripts: Scripts,
        cipher: Cipher,
        secrets: TotpSecrets,
        ring: Keys,
        addresses: Addresses,
        identities: Identities,
        directory: DirectoryRelay,
    ) -> None:
        self._reader = Reader(client, scripts)
        self._facts = (cipher, secrets, ring, addresses, identities, directory)
        self.settle = SETTLE

    def _context(self, deep: bool = False, last: bool = False) -> FsckContext:
        return FsckContext(self._reader, *self._facts, deep, last)

    async def run(self, *, deep: bool = False, repair: bool = False, most: int = NAMED) -> AsyncGenerator[Report, None]:
        """Checks every key, and yields a report after each step. `deep`: also opens encrypted data; `repair`: repairs
        what can be derived; `most`: how many findings of each invariant to keep for display. Raises StoreError,
        StoreUnavailable; it may be started again."""
        context = self._context(deep=deep)
        report = Report(size=await self._reader.size(), most=most)
        async for some in self._reader.every_key():
            for part in in_steps(some, AT_ONCE):
                await self._look_at(context, part, report, repair)
                report.seen += len(part)
                report.people, report.apps = context.people, context.apps
                report.documents, report.busy = context.documents, context.busy
                if context.expecting >= directory.PEOPLE_AT_ONCE:
                    await directory.look_up(context)
                yield report
            if len(context.unsure) >= UNSURE:
                async for _ in self._look_again(context, report, repair):
                    yield report
        await directory.look_up(context)
        async for _ in self._look_again(context, report, repair):
            yield report
        for client in sorted(await self._clients()):
            drifted = await apps.drifted(context, client)
            for one in drifted:
                if repair and one.mend:
                    await one.mend()
                report.add(one, repair)
        report.busy = context.busy
        yield report

    async def _look_again(self, context: FsckContext, report: Report, repair: bool) -> AsyncGenerator[None, None]:
        """Checks unsure keys again, after any change that was in progress has ended."""
        if not context.unsure:
            return
        unsure, context.unsure = context.unsure, {}
        await asyncio.sleep(self.settle)
        context.last = True
        for part in in_steps([key.encode() for key in unsure], AT_ONCE):
            await self._look_at(context, part, report, repair, again=True)
            yield
        context.last = False

    async def check(self, key: str) -> list[Finding]:
        """Checks one key and what it represents, in its present state. Raises StoreUnavailable."""
        return await rows.check(self._context(last=True), key.encode())

    async def _clients(self) -> set[str]:
        listed = await self._reader.command("ZRANGE", keys.APPS, 0, -1)
        return {one.decode("utf-8", "replace") for one in listed or []}

    async def _look_at(
        self, context: FsckContext, part: Sequence[bytes], report: Report, repair: bool, again: bool = False
    ) -> None:
        for key, findings in zip(part, await asyncio.gather(*(rows.check(context, key) for key in part)), strict=True):
            # For a key checked again, the first check has reported the other findings.
            await self._tell(
                context, key, [one for one in findings if one.invariant.apart or not again], report, repair
            )

    async def _tell(
        self, context: FsckContext, key: bytes, findings: list[Finding], report: Report, repair: bool
    ) -> None:
        """Adds findings, and repairs them if possible, until no further ones appear."""
        # A walk may visit a key twice.
        reported = {one.name: one for one in findings if one.name not in report.names}
        if len(report.names) < REMEMBERED:
            report.names |= reported.keys()
        places = {name[:2] for name in reported}
        left = set(reported)
        for _ in range(ROUNDS):
            mendable = [one for one in findings if repair and one.mend]
            if not mendable:
                break
            for one in mendable:
                assert one.mend is not None
                try:
                    await one.mend()
                except StoreError as error:
                    if not is_wrong_type(error):
                        raise
            now = await rows.check(self._context(deep=context.deep, last=True), key)
            findings = [one for one in now if context.last or not one.invariant.apart]
            left = {one.name for one in findings}
            # A finding whose text changed because of another repair is reported once.
            reported |= {one.name: one for one in findings if one.name[:2] not in places}
            places |= {one.name[:2] for one in findings}
        for name, one in reported.items():
            report.add(one, repair and one.mend is not None and name not in left)
