"""App registrations: read from a short-lived cache, written by the operator and the developer portal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.apps.api_apps import ApiApps, apis_of
from store.apps.cache import CACHE_SECONDS, Logo, RegistrationCache, Spent, retried
from store.apps.client_ids import check_new_client_id, inner_id
from store.apps.client_secrets import new_secret, note_of, secret_digest
from store.apps.deletion import OnProgress, Retiring
from store.apps.logos import logo_id
from store.apps.owners.members import check_may
from store.apps.owners.roles import Act
from store.apps.registration import Registration
from store.apps.registration_changes import changed_by_owner, replacing, rotated, stamped, without_secret
from store.apps.tombstones import BY_OPERATOR, BY_OWNER, Remains, Tombstone
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable, wrapped
from store.lifetimes import APP_BEGUN
from store.moments import epoch_ms
from store.refused import Refused
from store.results import unheard
from store.webhooks.deliveries import Deliveries
from store.webhooks.relay_wakeup import RelayWakeup

AT_ONCE = 100

Known = Registration | Tombstone | None


class Apps:
    """The registrations. A change shows at once in its own process, and within 5 s in every other. `filled` gives apps
    that registered themselves their scopes; `documents`: whether Client ID metadata documents count."""

    def __init__(
        self, client: Redis, scripts: Scripts, clock: Callable[[], float] = monotonic, wakeup: RelayWakeup | None = None
    ) -> None:
        self._client = client
        self._scripts = scripts
        self.retiring = Retiring(client, scripts, Deliveries(scripts), wakeup or RelayWakeup())
        self.at_apis = ApiApps(client)
        self.settle = CACHE_SECONDS
        self.cache: RegistrationCache[Known] = RegistrationCache(self.stored, clock)
        self.filled: Callable[[Registration], Awaitable[Registration]] = unchanged
        self.documents = False

    async def find(self, client_id: str) -> Registration | None:
        """The registration, at most 5 s old, or None. Unknown ids are remembered too. Raises StoreUnavailable."""
        known = await self.cache.get(inner_id(client_id))
        return known if isinstance(known, Registration) else None

    async def remembered(self, client_id: str) -> Registration | Remains | None:
        """As `find`; for a deleted app the remains in its tombstone, for its name and its webhook."""
        known = await self.cache.get(client_id)
        return known.app if isinstance(known, Tombstone) else known

    async def spend_per_day(self, client_id: str) -> int:
        """The operator's limit for this app, in micro-dollars a day (UTC); 0 for none. Raises StoreUnavailable."""
        app = await self.find(client_id)
        return app.spend_per_day if app else 0

    async def active(self, client_id: str) -> Registration | None:
        """The registration if the app may act."""
        known = self.cache.fresh(client_id) or await self.cache.get(inner_id(client_id))
        if not isinstance(known, Registration) or not known.active:
            return None
        return known if self.documents or not known.document_url else None

    async def row(self, client_id: str) -> tuple[bytes, Registration | None]:
        """The stored bytes, and the registration in them, without scopes that readings add. Raises StoreUnavailable."""
        packed, registration, _ = await self._read(client_id)
        return packed, registration

    async def _read(self, client_id: str) -> tuple[bytes, Registration | None, Tombstone | None]:
        with wrapped():
            return _understood(await self._client.get(keys.app(client_id)))

    async def stored(self, client_id: str) -> Known:
        """The registration in the store, or the tombstone of a deleted app. Raises StoreUnavailable."""
        _, registration, stone = await self._read(client_id)
        return await self.filled(registration) if registration else stone

    async def fresh(self, client_id: str) -> tuple[Registration | None, str | None]:
        """The registration in the store; while the app is being deleted, its former owner instead. Raises
        StoreUnavailable."""
        _, registration, stone = await self._read(client_id)
        return registration, stone.owner if stone and not stone.until else None

    def forget(self, client_id: str | None = None) -> None:
        """Drops one cached registration, or all."""
        self.cache.forget(client_id)

    async def create(
        self, registration: Registration, secret: str | None = None, *, logo: bytes = b""
    ) -> tuple[Registration, str | None]:
        """Registers an app, with the encoded `logo` if there is one. Returns it with its secret, which is shown only
        now and never stored (None for an app without one). Raises Refused("invalid_request") if the client id is taken,
        ValueError for one that could be a person's, InvalidRedirectURI, InvalidSector."""
        check_new_client_id(registration.client_id)
        registration.check_redirect_uris()
        now = await self.now()
        with wrapped():
            # The list is first: an interruption leaves an entry without an app, which the next attempt ignores.
            await self._client.zadd(keys.APPS, {registration.client_id: now // 1000}, nx=True)
        await self.at_apis.enter(registration.client_id, apis_of(registration))
        if registration.has_secret:
            secret = secret or new_secret()
            notes = (note_of(secret, now),)
            registration = replace(registration, secrets=(secret_digest(secret),), secret_notes=notes)
        registration = replace(registration, created_at=now, logo=logo_id(logo))
        if not await self._save(registration.client_id, b"", registration.pack(), logo or None):
            _, _, stone = await self._read(registration.client_id)
            if stone:
                # A deleted app's data must never go to another app with the same client id.
                state = "is free when the documents of its people have ended" if stone.until else "is being deleted"
                raise Refused("invalid_request", f"An app with this client_id was deleted. It {state}.")
            raise Refused("invalid_request", "This client_id is registered already.")
        return registration, secret

    async def now(self) -> int:
        """The store's time, in epoch milliseconds."""
        with wrapped():
            return epoch_ms(*await self._client.time())

    async def update(self, client_id: str, by: str | None = None, /, **changes: Any) -> Registration:
        """Changes fields of a registration; with `by`, only if this person's role allows it. Raises Refused as
        `check_may`, ValueError for a forbidden value, and as `changed_by_owner`."""
        if by is None:
            return await self.change(client_id, lambda present: replace(present, **changes))
        return await self.change(client_id, lambda present: changed_by_owner(present, by, **changes), by)

    async def rotate_secret(
        self, client_id: str, *, drop_old: bool = False, by: str | None = None
    ) -> tuple[Registration, str]:
        """Gives the app a new secret; the previous one stays valid unless `drop_old`. The older of two live secrets
        ends. An owner (`by`) may be using it, so they end one first: otherwise raises Refused("invalid_request")."""
        secret, now = new_secret(), await self.now()
        changed = await self.change(client_id, lambda app: rotated(app, secret, drop_old, by is not None, now), by)
        return changed, secret

    async def drop_secret(self, client_id: str, mark: str, *, by: str | None = None) -> Registration:
        """Ends one of two live secrets, named by its mark. Raises Refused("not_found", or "invalid_request" for the
        last one)."""
        return await self.change(client_id, lambda app: without_secret(app, mark), by)

    async def change(
        self,
        client_id: str,
        change: Callable[[Registration], Registration],
        by: str | None = None,
        *,
        act: Act = "change",
        logo: bytes | None = None,
        spent: Spent | None = None,
    ) -> Registration:
        """Replaces a registration with the result of `change`; with `by`, only if this person's role allows `act`.
        `change` runs again if somebody else was quicker. `logo` is the encoded new logo, or empty to remove it; `spent`
        is an invitation that the same step uses up. Raises Refused as `check_may`, Refused("invalid_request") for an
        invitation that is over, and the errors of `change`."""

        async def attempt() -> Registration | None:
            packed, present, _ = await self._read(client_id)
            if present is None:
                raise Refused("not_found", "No such app.")
            if by is not None:
                check_may(present, by, act)
            changed = change(present)
            if logo is not None:
                changed = replace(changed, logo=logo_id(logo))
            changed = replacing(present, changed, by_owner=by is not None)
            changed.check_redirect_uris(present)
            if by is not None:
                changed = stamped(present, changed, await self.now())
            before, after = apis_of(present), apis_of(changed)
            await self.at_apis.enter(client_id, after - before)
            if not await self._save(client_id, packed, changed.pack(), logo, spent):
                return None
            await self.at_apis.leave(client_id, before - after)
            return changed

        return await retried(attempt)

    async def reseal(self, client_id: str, renew: Callable[[str, tuple[bytes, ...]], tuple[bytes, ...]]) -> None:
        """Seals the signing secrets again, for a deleted app too. Raises Refused("not_found"), errors of `renew`."""
        packed, present, stone = await self._read(client_id)
        if present:
            await self.change(
                client_id, lambda app: replace(app, webhook_secrets=renew(client_id, app.webhook_secrets))
            )
        elif stone is None or stone.app is None:
            raise Refused("not_found", "No such app.")
        else:
            left = replace(stone.app, webhook_secrets=renew(client_id, stone.app.webhook_secrets))
            if not await self._save(client_id, packed, replace(stone, app=left).pack()):
                raise StoreUnavailable("the tombstone changed meanwhile")

    async def _save(
        self,
        client_id: str,
        expected: bytes,
        packed: bytes,
        logo: bytes | None = None,
        spent: Spent | None = None,
    ) -> bool:
        new = None if logo is None else Logo(keys.app_stats(client_id)["logo"], logo)
        return await self.cache.save(self._scripts, keys.app(client_id), client_id, expected, packed, new, spent)

    async def logo(self, client_id: str, wanted: str) -> bytes:
        """The app's logo, as WebP; empty unless its id is `wanted`. Raises StoreUnavailable."""
        with wrapped():
            image = await self._client.get(keys.app_stats(client_id)["logo"])
        return image if isinstance(image, bytes) and logo_id(image) == wanted else b""

    async def delete(self, client_id: str) -> None:
        """Deletes an app with all its data at once. Raises Refused("not_found")."""
        await self.begin_deletion(client_id, purge=True)
        await self.finish_deletion(client_id, purge=True)

    async def begin_deletion(
        self, client_id: str, *, by: str | None = None, purge: bool = False, reason: str = BY_OPERATOR
    ) -> None:
        """The first step: replaces the registration with a tombstone; with `by`, only if this person's role allows it.
        `reason`: why, if no person deletes it. With `purge`, also accepts an app that has been deleted already. Raises
        Refused as `check_may`."""
        packed, present, stone = await self._read(client_id)
        if present and by is not None:
            check_may(present, by, "delete")
        owner = by if present else stone.owner if stone else None
        with wrapped():
            listed = bool(packed) or await self._client.zscore(keys.APPS, client_id) is not None
        over = stone is not None and stone.until and not purge
        if over or by not in (None, owner):
            raise Refused("not_found", "No such app.")
        if not listed and not (purge and await self.retiring.shards_of(client_id)):
            raise Refused("not_found", "No such app.")
        if stone is None:
            now = await self.now()
            reason = reason if by is None else BY_OWNER
            if present and present.origin:
                # From here on it is on the list of all, where an interrupted deletion is found.
                with wrapped():
                    await self._client.zadd(keys.APPS, {client_id: now // 1000}, nx=True)
            stone = Tombstone.of(present, now, reason) if present else Tombstone("", None, now, reason)
            if not await self._save(client_id, packed, stone.pack()):
                raise StoreUnavailable("the registration changed meanwhile")
            await self.at_apis.leave(client_id, apis_of(present))
            for listed_at in (keys.UNUSED_APPS, keys.USED_APPS) if present and present.origin else ():
                with wrapped():
                    await self._client.zrem(listed_at, client_id)
            for one in present.members if present else ():
                with wrapped():
                    await self._client.zrem(keys.person(one.user)["teams"], client_id)

    async def finish_deletion(self, client_id: str, progress: OnProgress = unheard, *, purge: bool = False) -> None:
        """The other steps, after `begin_deletion`; may be repeated. Documents are kept for 30 days more, or freed with
        `purge`. Calls `progress` with the number of shards done and their total."""
        # A process that has not received the change may use its copy a little longer; this deletes the results too.
        await asyncio.sleep(self.settle)
        await (self.retiring.purge if purge else self.retiring.retire)(client_id, progress)

    async def finish_deletions(self, age: int = 0) -> None:
        """Continues interrupted deletions that began `age` ms ago or earlier; drops names of apps that are gone."""
        listed, begun = await self._listed(), []
        now = await self.now()
        async for client_id, known in self._stored(listed):
            if isinstance(known, Tombstone) and not known.until and known.deleted_at + age <= now:
                begun.append(client_id)
            elif known is None and listed[client_id] * 1000 + APP_BEGUN < now:
                with wrapped():
                    await self._client.zrem(keys.APPS, client_id)
        for client_id in begun:
            await self.finish_deletion(client_id)

    async def _listed(self) -> dict[str, int]:
        """Every client id that is or was registered, oldest first, with its time (s)."""
        with wrapped():
            found: list[Any] = await self._client.zrange(keys.APPS, 0, -1, withscores=True)
        return {client_id.decode(): int(since) for client_id, since in found}

    async def check_free(self, client_id: str) -> None:
        """Raises Refused("invalid_request") if an earlier app with this client id left data of people: a new app with
        the same id would get it."""
        if await self.retiring.shards_of(client_id):
            description = f"An earlier app with this client_id left data. `app delete {client_id} --purge` frees it."
            raise Refused("invalid_request", description)

    async def _stored(self, client_ids: Collection[str]) -> AsyncIterator[tuple[str, Known]]:
        """Yields `stored` of each app, read in batches."""
        every = tuple(client_ids)
        for start in range(0, len(every), AT_ONCE):
            some = every[start : start + AT_ONCE]
            with wrapped():
                async with self._client.pipeline(transaction=False) as batch:
                    for client_id in some:
                        batch.get(keys.app(client_id))
                    found: Sequence[Any] = await batch.execute()
            for client_id, packed in zip(some, found, strict=True):
                _, registration, stone = _understood(packed)
                yield client_id, await self.filled(registration) if registration else stone

    async def _themselves(self) -> list[str]:
        """Client ids of apps that registered themselves, those that were used first."""
        with wrapped():
            found: list[Any] = [
                *await self._client.zrange(keys.USED_APPS, 0, -1),
                *await self._client.zrange(keys.UNUSED_APPS, 0, -1),
            ]
        return [client_id.decode() for client_id in found]

    async def list(self, *, themselves: bool = True) -> list[Registration]:
        """Every registration, oldest first; then, with `themselves`, those of apps that registered themselves."""
        listed = dict.fromkeys([*await self._listed(), *(await self._themselves() if themselves else ())])
        return [app async for _, app in self._stored(listed) if isinstance(app, Registration)]

    async def beyond(self, after: str) -> AsyncIterator[Registration]:
        """Yields every registration by client id, from the one after `after` on, read in batches."""
        every = sorted({*await self._listed(), *await self._themselves()})
        async for _, app in self._stored([client_id for client_id in every if client_id > after]):
            if isinstance(app, Registration):
                yield app

    async def all_remembered(self) -> Sequence[Registration | Remains]:
        """Every registration, and the remains in tombstones, as `list`."""
        listed = dict.fromkeys([*await self._listed(), *await self._themselves()])
        found = [known async for _, known in self._stored(listed)]
        apps = [known.app if isinstance(known, Tombstone) else known for known in found]
        return [app for app in apps if app]


async def unchanged(app: Registration) -> Registration:
    """The registration."""
    return app


def _understood(packed: Any) -> tuple[bytes, Registration | None, Tombstone | None]:
    if not isinstance(packed, bytes):
        return b"", None, None
    stone = Tombstone.unpack(packed)
    return packed, None if stone else Registration.unpack(packed), stone
