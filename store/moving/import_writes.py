"""Writes the people of a batch of an import: each step for all of them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from store import keys
from store.accounts.identities import MOST_IDENTITIES
from store.accounts.movers import MoverRow
from store.engine.many import answers_of
from store.errors import wrapped
from store.fsck.reading import in_steps
from store.lifetimes import EMAIL_RESERVATION
from store.moving.import_lines import Mover
from store.wiring import Store

TAKEN = "There's already an account with this e-mail address."
ID_TAKEN = "The external_id belongs to another account."
LINK_TAKEN = "A link belongs to another account."
TOO_MANY_LINKS = f"The account would have more than {MOST_IDENTITIES} links."


AT_ONCE = 64
"""Scripts that are on their way together."""


class Prospect(NamedTuple):
    """A person of a line, and the user id for it."""

    line: int
    mover: Mover
    user: str

    @property
    def names(self) -> tuple[object, ...]:
        """The address, the identities and the external id, which nobody else may have."""
        external = ((self.mover.external_id,),) if self.mover.external_id else ()
        return (*self.names_of_update, *external)

    @property
    def names_of_update(self) -> tuple[object, ...]:
        """The names that an update gives an existing account: the address and the identities."""
        return (self.mover.email, *self.mover.identities)


@dataclass(slots=True)
class BatchOutcome:
    """What became of a batch. `written`: the people who were created, by this or by an interrupted run."""

    created: int = 0
    updated: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    written: list[Prospect] = field(default_factory=list)


class Writes:
    """Writes batches; with `dry` only finds out what would happen."""

    def __init__(self, store: Store, *, update: bool, dry: bool) -> None:
        self._store = store
        self._update = update
        self._dry = dry
        self._seen: dict[int, str] = {}

    async def write(self, batch: Sequence[Prospect]) -> BatchOutcome:
        """Writes people whose addresses and identities all differ. Raises StoreUnavailable; the same batch may then be
        written again."""
        counted = BatchOutcome()
        if not batch:
            return counted
        known = await (self._known(batch) if self._dry else self._reserved(batch))
        fresh = [one for one, user in zip(batch, known, strict=True) if user in ("", one.user)]
        there = [(one, user) for one, user in zip(batch, known, strict=True) if user not in ("", one.user)]
        if self._dry:
            return await self._foresee(fresh, there, counted)
        fresh = await self._with_external_ids(await self._with_identities(fresh, counted), counted)
        await self._create(fresh)
        await self._confirm(fresh, counted)
        await self._note_prices(fresh)
        for one, user in there:
            await self._change(one, user, counted)
        return counted

    async def _reserved(self, batch: Sequence[Prospect]) -> list[str]:
        """Reserves the addresses. Returns the user id of each: the line's own, or that of an account that is there."""
        took = await self._batch(
            [("SET", keys.email(one.mover.email), one.user, "NX", "PX", EMAIL_RESERVATION) for one in batch]
        )
        left = [one for one, mine in zip(batch, took, strict=True) if not mine]
        if not left:
            return [one.user for one in batch]
        users = dict(zip([one.line for one in left], await self._known(left), strict=True))
        for one in left:
            # Nobody's row has the address: its entry is the rest of an interrupted act, or a sign-up in progress.
            if users[one.line] == "" and await self._store.addresses.reserve(one.mover.email, one.user):
                users[one.line] = one.user
        return [users.get(one.line, one.user) or "?" for one in batch]

    async def _known(self, batch: Sequence[Prospect]) -> list[str]:
        """The user id of the account with each address, as its row says, or the line's own, or ""."""
        entries = await self._batch([("GET", keys.email(one.mover.email)) for one in batch])
        users = [entry.decode() if isinstance(entry, bytes) else "" for entry in entries]
        asked = [place for place, user in enumerate(users) if user and user != batch[place].user]
        rows = await self._batch([("HGET", keys.person(users[place])["user"], "email") for place in asked])
        for place, email in zip(asked, rows, strict=True):
            if email != batch[place].mover.email.encode():
                users[place] = ""
        return users

    async def _with_identities(self, fresh: list[Prospect], counted: BatchOutcome) -> list[Prospect]:
        """Reserves the identities; people who cannot have all of theirs are refused."""
        pairs = [(one, identity) for one in fresh for identity in one.mover.identities]
        took = await self._batch(
            [("SET", keys.identity(identity.name), one.user, "NX", "PX", EMAIL_RESERVATION) for one, identity in pairs]
        )
        lost = {
            one.line
            for (one, identity), mine in zip(pairs, took, strict=True)
            if not mine and not await self._store.identities.reserve(identity, one.user)
        }
        return await self._without(fresh, lost, LINK_TAKEN, counted)

    async def _with_external_ids(self, fresh: list[Prospect], counted: BatchOutcome) -> list[Prospect]:
        """Reserves the ids of outside directories; people who cannot have theirs are refused."""
        external, lost = self._store.people.external_ids, set[int]()
        for some in in_steps([one for one in fresh if one.mover.external_id], AT_ONCE):
            took = await asyncio.gather(*(external.reserve(one.mover.external_id, one.user) for one in some))
            lost |= {one.line for one, mine in zip(some, took, strict=True) if not mine}
        return await self._without(fresh, lost, ID_TAKEN, counted)

    async def _without(self, fresh: list[Prospect], lost: set[int], why: str, counted: BatchOutcome) -> list[Prospect]:
        """The people whose lines are not in `lost`. Refuses the others, and frees their addresses and identities."""
        for one in fresh:
            if one.line in lost:
                counted.refused.append((one.line, why))
                for identity in one.mover.identities:
                    await self._store.identities.release(identity.name, one.user)
                await self._store.addresses.release(one.mover.email, one.user)
        return [one for one in fresh if one.line not in lost]

    async def _create(self, fresh: Sequence[Prospect]) -> None:
        """Writes the rows, those of a shard in one script."""
        shards: defaultdict[str, list[Prospect]] = defaultdict(list)
        for one in fresh:
            shards[one.user[:3]].append(one)
        for some in in_steps([*shards.values()], AT_ONCE):
            await asyncio.gather(*map(self._create_in, some))

    async def _create_in(self, ones: Sequence[Prospect]) -> None:
        await self._store.movers.create([self._row(one) for one in ones])

    def _row(self, one: Prospect) -> MoverRow:
        mover = one.mover
        return MoverRow(
            one.user,
            mover.email,
            mover.name,
            mover.password.pack() if mover.password else self._store.hasher.unusable(),
            mover.verified,
            self._store.totp_secrets.seal(one.user, mover.totp_secret) if mover.totp_secret else b"",
            mover.created_at,
            "active" if mover.active else "disabled",
            mover.identities,
            mover.groups,
            mover.external_id,
        )

    async def _confirm(self, fresh: Sequence[Prospect], counted: BatchOutcome) -> None:
        """Makes the reservations permanent. Whose reservation was lost, because a minute has passed and somebody else
        came, is deleted again."""
        store = self._store
        kept = await store.addresses.keep_all((one.mover.email, one.user) for one in fresh)
        lost = {one.line: TAKEN for one, mine in zip(fresh, kept, strict=True) if not mine}
        linked = [(identity, one) for one in fresh if one.line not in lost for identity in one.mover.identities]
        kept = await store.identities.keep_all((identity, one.user) for identity, one in linked)
        lost |= {one.line: LINK_TAKEN for (_, one), mine in zip(linked, kept, strict=True) if not mine}
        external = [one for one in fresh if one.mover.external_id and one.line not in lost]
        kept = await store.people.external_ids.keep_all((one.mover.external_id, one.user) for one in external)
        lost |= {one.line: ID_TAKEN for one, mine in zip(external, kept, strict=True) if not mine}
        for one in fresh:
            if why := lost.get(one.line, ""):
                await store.people.delete(one.user)
                counted.refused.append((one.line, why))
            else:
                counted.written.append(one)
        counted.created += len(counted.written)

    async def _note_prices(self, fresh: Sequence[Prospect]) -> None:
        """Notes what the passwords cost to check, for sign-ins with addresses that nobody has."""
        prices = Counter(one.mover.password.price for one in fresh if one.mover.password)
        if prices:
            await self._store.hash_prices.add(prices)

    async def _change(self, one: Prospect, user: str, counted: BatchOutcome) -> None:
        """Changes an account that is there, if the import does so."""
        if not self._update or user == "?":
            counted.refused.append((one.line, TAKEN))
            return
        why = await self._update_account(one.mover, user)
        if why:
            counted.refused.append((one.line, why))
        else:
            counted.updated += 1

    async def _update_account(self, mover: Mover, user: str) -> str:
        identities = self._store.identities
        before = {one: await identities.find(one) for one in mover.identities}
        if not all([await identities.reserve(one, user) for one in mover.identities]):
            why = LINK_TAKEN
        else:
            word = await self._store.movers.update(user, mover.email, mover.name, mover.identities)
            why = {"ok": "", "full": TOO_MANY_LINKS}.get(word, TAKEN)
        for one in mover.identities:
            if not why:
                await identities.keep(one, user)
            elif before[one] is None:
                await identities.release(one.name, user)
        return why

    async def _foresee(
        self, fresh: Sequence[Prospect], there: Sequence[tuple[Prospect, str]], counted: BatchOutcome
    ) -> BatchOutcome:
        """What would happen, also to lines that name the same people as earlier lines."""
        for one, user in sorted([*((one, one.user) for one in fresh), *there]):
            mover, before = one.mover, self._seen.get(hash(one.mover.email))
            new = before is None and user == one.user
            owners = [
                self._seen.get(hash(each)) or await self._store.identities.find(each) for each in mover.identities
            ]
            account = before or user
            held = await self._external_owner(mover) if new else None
            if not new and not self._update:
                counted.refused.append((one.line, TAKEN))
            elif held not in (None, account):
                counted.refused.append((one.line, ID_TAKEN))
            elif any(owner not in (None, account) for owner in owners):
                counted.refused.append((one.line, LINK_TAKEN))
            else:
                counted.created += new
                counted.updated += not new
                # With --update, an account keeps the external id that it has.
                self._seen.update({hash(name): account for name in (one.names if new else one.names_of_update)})
        return counted

    async def _external_owner(self, mover: Mover) -> str | None:
        """The user id that an earlier line or an account has for this external id; None if it is free."""
        if not mover.external_id:
            return None
        earlier = self._seen.get(hash((mover.external_id,)))
        return earlier or await self._store.people.external_ids.find(mover.external_id)

    async def _batch(self, commands: Sequence[tuple[str | int, ...]]) -> list[Any]:
        """Sends commands together; in a cluster each goes to the node that owns its slot."""
        with wrapped():
            return await answers_of(self._store.client, commands) if commands else []
