"""APIs, as managed by the people to whom the operator gave them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, NamedTuple

from store import keys
from store.accounts.signin.sessions import Session
from store.apps.api_apps import apis_of
from store.apps.api_record import ApiRegistration
from store.apps.api_scopes import ApiScopeName
from store.apps.apis import Apis
from store.apps.apps import Apps
from store.apps.client_secrets import new_secret
from store.apps.owners.owner_notes import OwnerNotes
from store.apps.owners.undoing import taken_back_phrase
from store.apps.registration import LIVE_SECRETS, Registration
from store.engine.scripts import Scripts
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile, Visitor

MOST_APPS = 100
"""The most apps that a page about an API names."""


class AppAtApi(NamedTuple):
    """An app that registered scopes of an API, and their names."""

    client_id: str
    name: str
    active: bool
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AppsAtApi:
    """The newest apps of an API, and how many more there may be."""

    apps: tuple[AppAtApi, ...]
    more: int


class OwnedApis:
    """A person's operations on their own APIs, with the rules of `OwnedApps`; other people's APIs are
    Refused("not_found"). The operator registers APIs, so they are few: a person's are found among all."""

    def __init__(self, scripts: Scripts, apis: Apis, apps: Apps, notes: OwnerNotes) -> None:
        self._scripts = scripts
        self._apis = apis
        self._apps = apps
        self._notes = notes

    async def list(self, session: Session) -> tuple[Profile, tuple[ApiRegistration, ...]]:
        """The person's APIs, oldest first, at most 5 s old. Raises SignedOut."""
        return await self._notes.profile(session), await self.of(session.user)

    async def of(self, user: str) -> tuple[ApiRegistration, ...]:
        """The APIs of a person, oldest first, at most 5 s old."""
        return tuple(api for api in await self._apis.every() if api.owner == user)

    async def has_any(self, user: str) -> bool:
        """Whether a person owns an API; at most 5 s old."""
        return bool(await self.of(user))

    async def find(self, session: Session, client_id: str) -> tuple[Profile, ApiRegistration]:
        """One API, read from the store. Raises SignedOut, Refused("not_found")."""
        profile = await self._notes.profile(session)
        api = await self._apis.fresh(client_id)
        if api is None or api.owner != session.user:
            raise Refused("not_found", Phrase("You have no such API."))
        return profile, api

    async def apps_at(self, api: ApiRegistration) -> AppsAtApi:
        """The apps that registered scopes of the API, newest first. Drops entries without any."""
        listed = await self._apps.at_apis.newest(api.client_id, MOST_APPS)
        found = await asyncio.gather(*(self._apps.find(app) for app, _ in listed.entries))
        using = []
        for entry, app in zip(listed.entries, found, strict=True):
            if app and (scopes := _scopes_at(app, api)):
                using.append(AppAtApi(app.client_id, app.name, app.active, scopes))
            elif api.client_id not in apis_of(app):
                await self._apps.at_apis.drop_stale(api.client_id, entry, listed.now)
        return AppsAtApi(tuple(using), listed.total - len(listed.entries))

    async def update(
        self, session: Session, client_id: str, event: str, visitor: Visitor, **changes: Any
    ) -> ApiRegistration:
        """Changes fields of an API, and returns its previous state. Switching it off takes no confirmation. A change
        without effect is not noted. Raises SignedOut, Unproved, InvalidRegistration, Refused("not_found",
        "rate_limited", or "access_denied" for the status of an API that the operator has disabled)."""
        _, before = await self.find(session, client_id)
        now = await self._apps.now()
        if before.changed_by_owner(now, **changes) == before:
            return before
        ends = changes == {"status": "off"}
        await self._notes.note(session, client_id, event, visitor, reauthenticated=not ends, counted=not ends)

        def change(present: ApiRegistration) -> ApiRegistration:
            nonlocal before
            before = present  # of simultaneous requests, only one finds the API unchanged
            return present.changed_by_owner(now, **changes)

        await self._apis.change(client_id, change, session.user)
        return before

    async def rotate(self, session: Session, client_id: str, visitor: Visitor) -> tuple[ApiRegistration, str]:
        """Gives an API a second secret. Raises SignedOut, Unproved, Refused("not_found", "rate_limited", or
        "invalid_request" if the API has two already)."""
        _, present = await self.find(session, client_id)
        now, secret = await self._apps.now(), new_secret()
        _with_spare(present, secret, now)
        await self._notes.note(session, client_id, "api_secret_made", visitor)
        return await self._apis.change(client_id, lambda api: _with_spare(api, secret, now), session.user), secret

    async def drop_secret(self, session: Session, client_id: str, mark: str, visitor: Visitor) -> None:
        """Ends one of two secrets. Raises SignedOut, Unproved, Refused("not_found", or "invalid_request" for the last
        one)."""
        _, present = await self.find(session, client_id)
        present.without_secret(mark)
        await self._notes.note(session, client_id, "api_secret_ended", visitor, counted=False)
        await self._apis.change(client_id, lambda api: api.without_secret(mark), session.user)

    async def delete(self, session: Session, client_id: str, visitor: Visitor) -> None:
        """Deletes an API, which kills its tokens. Raises SignedOut, Unproved, Refused("not_found")."""
        await self.find(session, client_id)
        await self._notes.note(session, client_id, "api_deleted", visitor, counted=False)
        await self._apis.delete(client_id, by=session.user)

    async def take_back(self, user: str, since: int) -> dict[str, Phrase]:
        """Applies `ApiRegistration.taken_back` to each API of a person, as `OwnedApps.take_back`."""
        done: dict[str, Phrase] = {}
        for present in await self._apis.list():
            if present.owner != user:
                continue
            after = present.taken_back(since)
            ended, off = after.secrets != present.secrets, after.status != present.status
            if ended or off:
                for event in ("api_secret_ended",) * ended + ("api_disabled",) * off:
                    person = keys.person(user)
                    await self._scripts.run("record_event", person, event=event, client=present.client_id)
                await self._apis.change(present.client_id, lambda api: api.taken_back(since), user)
                done[present.client_id] = taken_back_phrase(off=off, ended=ended)
        return done


def _scopes_at(app: Registration, api: ApiRegistration) -> tuple[str, ...]:
    return tuple(name for name in api.scope_names() if ApiScopeName(api.client_id, name).qualified in app.api_scopes)


def _with_spare(api: ApiRegistration, secret: str, now: int) -> ApiRegistration:
    """The API with a second secret. Raises Refused("invalid_request") if it has two: one of them may be in use."""
    if len(api.secrets) >= LIVE_SECRETS:
        raise Refused("invalid_request", Phrase("This API already has two client secrets. Revoke one first."))
    return api.with_secret(secret, now, by_owner=True)
