"""API registrations: read from a short-lived cache, written by the operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.apps.api_record import ApiRegistration, api_id, deleted_before, first_id
from store.apps.api_scopes import ApiScopeName, parse_qualified
from store.apps.cache import RegistrationCache, retried
from store.apps.client_ids import is_api_id
from store.apps.client_secrets import new_secret
from store.apps.profiles import DEMANDS, listed
from store.apps.registration import InvalidRegistration, Registration
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable, wrapped
from store.lifetimes import APP_BEGUN
from store.moments import epoch_ms
from store.names import parse_scope
from store.phrases import Phrase
from store.refused import Refused

AT_ONCE = 100


class Apis:
    """The registrations. A change shows at once in its own process, and within 5 s in every other."""

    def __init__(self, client: Redis, scripts: Scripts, clock: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._scripts = scripts
        self.cache: RegistrationCache[ApiRegistration | None] = RegistrationCache(self.fresh, clock)
        self.mcp = False
        """Whether this server's MCP server is on, for which apps may get tokens."""
        self.stepped: tuple[str, ...] = ()
        """The scopes of this server that demand a second step."""
        self._every: RegistrationCache[list[ApiRegistration]] = RegistrationCache(lambda _: self.list(), clock)

    async def find(self, client_id: str) -> ApiRegistration | None:
        """The registration, at most 5 s old, or None. Raises StoreUnavailable."""
        return await self.cache.get(client_id)

    async def active(self, client_id: str) -> ApiRegistration | None:
        """The registration if the API is active."""
        api = await self.find(client_id)
        return api if api and api.active else None

    async def fresh(self, client_id: str) -> ApiRegistration | None:
        """The registration in the store. Raises StoreUnavailable."""
        return (await self._read(client_id))[1]

    async def at(self, identifier: str) -> ApiRegistration | None:
        """The registration in the store with this identifier. Raises StoreUnavailable."""
        return (await self._row(api_id(identifier)))[1]

    async def _row(self, client_id: str) -> tuple[bytes, ApiRegistration | None]:
        """What is in the place that this API shares with all that had its identifier."""
        with wrapped():
            packed: Any = await self._client.get(keys.api(first_id(client_id)))
        return packed or b"", _understood(packed)

    async def _read(self, client_id: str) -> tuple[bytes, ApiRegistration | None]:
        packed, api = await self._row(client_id)
        return packed, api if api and api.client_id == client_id else None

    def forget(self, client_id: str | None = None) -> None:
        """Drops one cached registration, or all."""
        self.cache.forget(client_id)
        if client_id is None or is_api_id(client_id):
            self._every.forget()

    async def every(self) -> Sequence[ApiRegistration]:
        """As `list`, at most 5 s old."""
        return await self._every.get("every") or ()

    async def create(self, api: ApiRegistration, secret: str | None = None) -> tuple[ApiRegistration, str]:
        """Registers an API. Returns it with its secret, which is shown only now and never stored; without a given one
        it is made. After the deletion of an API with this identifier, it has another client id. Raises
        Refused("invalid_request") if the identifier is registered."""
        secret = secret or new_secret()
        packed, _ = await self._row(api.client_id)
        earlier = deleted_before(packed)
        if earlier is not None:
            with wrapped():
                now = epoch_ms(*await self._client.time())
            made = replace(api.with_secret(secret, now), created_at=now, earlier=earlier)
            # The list is first: an interruption leaves an entry without an API, which a later listing drops.
            with wrapped():
                await self._client.zadd(keys.APIS, {made.client_id: now // 1000}, nx=True)
            if await self._save(made.client_id, packed, made.pack()):
                return made, secret
        raise Refused("invalid_request", "An API with this identifier is registered already.")

    async def update(self, client_id: str, /, **changes: Any) -> ApiRegistration:
        """Changes fields of a registration; the identifier stays. Raises Refused("not_found"), InvalidRegistration."""
        return await self.change(client_id, lambda api: replace(api, **changes))

    async def rotate_secret(self, client_id: str, *, drop_old: bool = False) -> tuple[ApiRegistration, str]:
        """Gives the API a new secret; the previous one stays valid unless `drop_old`. Raises Refused("not_found")."""
        secret = new_secret()
        with wrapped():
            now = epoch_ms(*await self._client.time())
        return await self.change(client_id, lambda api: api.with_secret(secret, now, drop_old)), secret

    async def delete(self, client_id: str, *, by: str | None = None) -> None:
        """Deletes an API; with `by`, only if this person owns it. Its tokens are dead, because nobody may ask about
        them. A tombstone stays, so an API that is registered with the identifier later is another one. Raises
        Refused("not_found")."""
        packed, api = await self._read(client_id)
        if api is None or by not in (None, api.owner):
            raise Refused("not_found", "No such API.")
        if not await self._save(client_id, packed, api.tombstone()):
            raise StoreUnavailable("the registration changed meanwhile")
        with wrapped():
            await self._client.zrem(keys.APIS, client_id)

    async def list(self) -> list[ApiRegistration]:
        """Every registration, oldest first. Drops listed names without a registration."""
        with wrapped():
            listed: Any = await self._client.zrange(keys.APIS, 0, -1, withscores=True)
            now = epoch_ms(*await self._client.time())
        found: list[ApiRegistration] = []
        for start in range(0, len(listed), AT_ONCE):
            some = listed[start : start + AT_ONCE]
            with wrapped():
                async with self._client.pipeline(transaction=False) as batch:
                    for client_id, _ in some:
                        batch.get(keys.api(first_id(client_id.decode())))
                    rows: list[Any] = await batch.execute()
            for (client_id, since), packed in zip(some, rows, strict=True):
                api = _understood(packed)
                if api and api.client_id == client_id.decode():
                    found.append(api)
                elif int(since) * 1000 + APP_BEGUN < now:
                    with wrapped():
                        await self._client.zrem(keys.APIS, client_id)
        return found

    async def change(
        self, client_id: str, change: Callable[[ApiRegistration], ApiRegistration], by: str | None = None
    ) -> ApiRegistration:
        """Replaces a registration with the result of `change`, which runs again if somebody else was quicker. With
        `by`, only if this person owns the API. Raises Refused("not_found") and the errors of `change`."""

        async def attempt() -> ApiRegistration | None:
            packed, present = await self._read(client_id)
            if present is None or by not in (None, present.owner):
                raise Refused("not_found", "No such API.")
            changed = change(present)
            return changed if await self._save(client_id, packed, changed.pack()) else None

        return await retried(attempt)

    async def _save(self, client_id: str, expected: bytes, packed: bytes) -> bool:
        saved = await self.cache.save(self._scripts, keys.api(first_id(client_id)), client_id, expected, packed)
        self._every.forget()
        return saved


def resolve_scopes(text: str, apis: Iterable[ApiRegistration]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The scopes in an operator's list: Latchkey's own, and those of APIs, qualified. A name that several APIs have
    follows its API's identifier. Raises UnknownScope, ValueError."""
    having: defaultdict[str, list[str]] = defaultdict(list)
    known: dict[str, str] = {}
    for api in apis:
        known[api_id(api.identifier)] = api.client_id
        for name in api.scope_names():
            having[name].append(api.client_id)
    own: list[str] = []
    theirs: dict[str, None] = {}
    words = iter(text.split())
    for word in words:
        if word in having:
            if len(having[word]) > 1:
                raise ValueError(f"Several APIs have the scope {word}. Write the API's identifier before it.")
            theirs[ApiScopeName(having[word][0], word).qualified] = None
        elif client_id := known.get(api_id(word)):
            name = next(words, "")
            if client_id not in having.get(name, ()):
                raise ValueError(f"The API {word} has no scope {name[:64] or 'without a name'}.")
            theirs[ApiScopeName(client_id, name).qualified] = None
        else:
            own.append(word)
    return parse_scope(" ".join(own)) if own or not theirs else (), tuple(theirs)


def check_signed(app: Registration, apis: Iterable[ApiRegistration]) -> None:
    """Raises InvalidRegistration if the app registered scopes of one of these APIs, and its profile excludes how that
    API wants tokens signed."""
    theirs = {parse_qualified(scope).api for scope in app.api_scopes}
    if wrong := [api.identifier for api in apis if api.client_id in theirs and not app.rules.allows(api.jwt_alg)]:
        rules = Phrase(
            "scopes of APIs whose tokens are opaque or signed with %(algorithms)s (not those of %(apis)s)",
            algorithms=listed(app.rules.algorithms),
            apis=", ".join(sorted(wrong)),
        )
        raise InvalidRegistration(DEMANDS.filled(profile=app.profile, rules=rules))


def _understood(packed: Any) -> ApiRegistration | None:
    if not isinstance(packed, bytes) or deleted_before(packed) is not None:
        return None
    return ApiRegistration.unpack(packed)
