"""Apps that registered themselves: their places, their scopes, and when they end.

Nobody answers for such an app, so it lasts by its use. Until somebody allows it, its row has an expiry. After that it
is kept until nobody has used it for UNUSED_APP, and then deleted like an app of a person. Both kinds are in lists,
whose sum is bounded: one that nobody has allowed makes room for a new one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.apps.api_scopes import ApiScopeName
from store.apps.apis import Apis
from store.apps.apps import Apps
from store.apps.cache import retried
from store.apps.registration import InvalidRegistration, Registration
from store.apps.self_registered.metadata import chosen_by_operator
from store.apps.tombstones import BY_IDLE, Tombstone
from store.clock import wall
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.lifetimes import DAY, UNUSED_APP
from store.moments import epoch_ms
from store.phrases import Phrase
from store.refused import Refused, reason_of

REFRESH_DAYS = 365
"""The longest life of its refresh tokens."""
MOST_APPS = 10_000
OWN_SCOPES = ("openid", "profile", "email")
FULL = "This server has as many apps that registered themselves as it may have."
FULL_SECONDS = 600
MOST_ENDED = 20
"""Unused apps that one sweep deletes."""
GONE = Phrase("This app is no longer registered. Go back to the app and start again.")


class SelfRegistered:
    """`most` is the bound of such apps; `scopes` are those of Latchkey that they may ask for. A reload of the settings
    sets both."""

    def __init__(self, client: Redis, scripts: Scripts, apps: Apps, apis: Apis) -> None:
        self._client = client
        self._scripts = scripts
        self._apps = apps
        self._apis = apis
        self._noted: dict[str, int] = {}
        self.most = MOST_APPS
        self.scopes: tuple[str, ...] = OWN_SCOPES

    async def filled(self, app: Registration) -> Registration:
        """The registration with the scopes that it has now: those for all such apps, and those of each active API
        without a care flag. Any other registration unchanged. Raises StoreUnavailable."""
        if not app.origin:
            return app
        theirs = tuple(
            ApiScopeName(api.client_id, scope.name).qualified
            for api in await self._apis.every()
            if api.active
            for scope in api.scopes
            if not scope.care
        )
        return replace(app, scopes=self.scopes, api_scopes=theirs)

    async def claim(self, client_id: str, lasts: int, token: str = "") -> None:
        """Takes a place for an app that ends in `lasts` ms if nobody allows it. `token`: the digest of the registration
        token that this uses up, or empty. Raises Refused("invalid_token" or "temporarily_unavailable"),
        StoreUnavailable."""
        reply = await self._scripts.run(
            "claim_client",
            {"unused": keys.UNUSED_APPS, "used": keys.USED_APPS, "tokens": keys.INITIAL_TOKENS},
            client=client_id,
            lasts=lasts,
            most=self.most,
            token=token,
        )
        if reply.word == "refused":
            raise Refused("invalid_token", "The registration token is unknown, used up or over.")
        if reply.word == "full":
            raise Refused("temporarily_unavailable", FULL, retry_after=FULL_SECONDS)
        if evicted := reply.text("evicted"):
            await self._drop(evicted)

    async def save(self, app: Registration, expected: bytes, lasts: int) -> bool:
        """Writes a registration without its scopes, if the stored row is still `expected`. It ends in `lasts` ms if
        nobody has allowed the app. Returns whether it was written. Raises StoreUnavailable."""
        reply = await self._scripts.run(
            "save_client",
            {"app": keys.app(app.client_id)},
            expected=expected,
            registration=replace(app, scopes=(), api_scopes=()).pack(),
            lasts=lasts,
            channel=keys.APPS_CHANNEL,
            client=app.client_id,
        )
        self._apps.forget(app.client_id)
        return reply.word == "ok"

    async def put(self, read: Registration, now: int, lasts: int) -> bool | None:
        """Writes what a document says, read at `now` (epoch ms). What the operator did to the app stays. An app that
        ended because nobody used it comes back: its URL says that it is the same. Returns whether the document says
        something new, None for a new app. Raises Refused("not_found") for a deleted app,
        Refused("invalid_client_metadata") for a document against the profile that the operator chose,
        StoreUnavailable."""

        async def attempt() -> tuple[bool | None] | None:
            packed, present = await self._apps.row(read.client_id)
            if packed and present is None and not _comes_back(packed):
                raise Refused("not_found", GONE)
            try:
                app = replace(read, created_at=now)
                if present:
                    app = replace(app, created_at=present.created_at, **chosen_by_operator(present))
            except InvalidRegistration as error:
                raise Refused("invalid_client_metadata", f"{reason_of(error).removesuffix('.')}.") from None
            if not await self.save(app, packed, lasts):
                return None
            same = present and replace(present, fresh_until=0) == replace(app, fresh_until=0)
            return (None if present is None else not same,)

        return (await retried(attempt))[0]

    async def keep(self, app: Registration) -> None:
        """Keeps an app that somebody is about to allow, or that an operator has changed: a document's app would come
        back without what the operator decided. Raises Refused("invalid_request") if it has ended,
        StoreUnavailable."""
        if not app.origin:
            return

        async def attempt() -> bool | None:
            packed, present = await self._apps.row(app.client_id)
            if present is None:
                raise Refused("invalid_request", GONE)
            reply = await self._scripts.run("keep_client", {"app": keys.app(app.client_id)}, expected=packed)
            return True if reply.word == "ok" else None

        await retried(attempt)
        await self._note(app.client_id)

    async def used(self, app: Registration) -> None:
        """Notes that the app got a token for a person, once a day in each process. Raises StoreUnavailable."""
        today = int(wall.time() * 1000) // DAY
        if not app.origin or self._noted.get(app.client_id) == today:
            return
        await self._note(app.client_id)
        if len(self._noted) >= self.most:
            self._noted.clear()
        self._noted[app.client_id] = today

    async def _note(self, client_id: str) -> None:
        lists = {"unused": keys.UNUSED_APPS, "used": keys.USED_APPS}
        await self._scripts.run("note_client_use", lists, client=client_id)

    async def drop(self, app: Registration) -> bool:
        """Drops the app if nobody has allowed it; otherwise returns False. Raises StoreUnavailable."""
        if not await self._drop(app.client_id):
            return False
        with wrapped():
            await self._client.zrem(keys.UNUSED_APPS, app.client_id)
        return True

    async def _drop(self, client_id: str) -> bool:
        facts = {"channel": keys.APPS_CHANNEL, "client": client_id}
        reply = await self._scripts.run("drop_client", {"app": keys.app(client_id)}, **facts)
        self._apps.forget(client_id)
        return reply.word == "ok"

    async def end_idle(self) -> None:
        """Deletes some apps that nobody has used for UNUSED_APP. An app of a document stays if an operator has barred
        it or set rules for it: otherwise the document would bring it back without them. Raises StoreUnavailable."""
        with wrapped():
            since = epoch_ms(*await self._client.time()) - UNUSED_APP
            found: Any = await self._client.zrangebyscore(keys.USED_APPS, "-inf", since, start=0, num=MOST_ENDED)
        for client_id in (one.decode() for one in found):
            app = await self._apps.find(client_id)
            if app is not None and app.document_url and _is_bound(app):
                await self._note(client_id)
                continue
            with suppress(Refused):  # it is gone already
                await self._apps.begin_deletion(client_id, reason=BY_IDLE)
                await self._apps.finish_deletion(client_id)
            with wrapped():
                await self._client.zrem(keys.USED_APPS, client_id)


def _is_bound(app: Registration) -> bool:
    """Whether an operator has barred the app, or set rules for it."""
    limits = app.calls_per_minute, app.introspections_per_minute, app.spend_per_day
    return not app.active or app.second_step or bool(app.allowed_groups) or any(limits)


def _comes_back(packed: bytes) -> bool:
    """Whether this is the tombstone of an app that ended because nobody used it."""
    stone = Tombstone.unpack(packed)
    return stone is not None and stone.by == BY_IDLE and stone.until > 0
