"""Apps, as managed by the people who registered them, and by the others of their teams.

A registration and its owner's list are in two slots. An entry in the list is written first and removed last. So after
any interruption the owner still sees the app, and reading the list drops an entry without an app. A deleted app stays
in the list as long as its tombstone.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.accounts.signin.sessions import Session
from store.apps.apps import Apps, Known
from store.apps.client_ids import client_id_of
from store.apps.domains import proven
from store.apps.logos import logo_id
from store.apps.owners.invitations import Invitations
from store.apps.owners.member_lists import MemberLists
from store.apps.owners.members import check_may, role_of
from store.apps.owners.owner_notes import OwnerNotes
from store.apps.owners.roles import Act, Role
from store.apps.owners.undoing import taken_back, taken_back_phrase
from store.apps.registration import Registration
from store.apps.registration_changes import changed_by_owner, own_sector, rotated, without_secret
from store.apps.sectors import check_told_at
from store.apps.webhooks import WebhookChange, Webhooks
from store.engine.memory import Headroom
from store.engine.scripts import Reply, Scripts
from store.errors import wrapped
from store.lifetimes import APP_BEGUN, REGISTER_APP
from store.moments import at
from store.phrases import Phrase
from store.refused import Refused, let_in, refuse_signed_out
from store.results import Profile, Visitor, profile_of


class Registered(NamedTuple):
    """A registered app and its secret: None for a public app, and for a form that was sent before."""

    registration: Registration
    secret: str | None
    again: bool = False


class Deleted(NamedTuple):
    """A deleted app, and the end of its people's documents at the latest."""

    client_id: str
    name: str
    until: datetime


class Joined(NamedTuple):
    """An app of somebody else whose team a person is in, and their role."""

    app: Registration
    role: Role


@dataclass(frozen=True, slots=True)
class Owned:
    """The apps of a person, oldest first, the ids of apps whose deletion is not finished, and the deleted apps whose
    documents are still kept for people. All of them count. `joined`: apps whose first owner is somebody else, which
    count for that person."""

    profile: Profile
    apps: tuple[Registration, ...]
    deleting: tuple[str, ...]
    deleted: tuple[Deleted, ...]
    joined: tuple[Joined, ...] = ()

    def __len__(self) -> int:
        """How many apps count."""
        return len(self.apps) + len(self.deleting) + len(self.deleted)


class OwnedApps:
    """A person's operations on the apps whose teams they are in; other apps are Refused("not_found"), and what their
    role does not allow is Refused("access_denied"). A change that could be
    turned against an app's users raises Unproved unless the person re-authenticated within 10 minutes; that allows
    several changes. Each change takes a place in one window of the person, or raises Refused("rate_limited") and does
    nothing. Switching an app off, ending a secret and deleting an app take no place, so a thief who fills the window
    cannot block the owner. `idle` is the idle lifetime of a session in ms."""

    def __init__(
        self,
        client: Redis,
        scripts: Scripts,
        apps: Apps,
        webhooks: Webhooks,
        notes: OwnerNotes,
        invitations: Invitations,
        idle: int,
        headroom: Headroom,
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._apps = apps
        self._webhooks = webhooks
        self._notes = notes
        self._invitations = invitations
        self._lists = MemberLists(client, scripts, apps)
        self._idle = idle
        self._headroom = headroom

    async def list(self, session: Session) -> Owned:
        """The person's apps. Raises SignedOut."""
        reply = await self._scripts.run("list_owned", session.keys(), idle=self._idle)
        refuse_signed_out(reply)
        now = reply.number("now")
        apps, deleting, deleted = [], [], []
        for client, began, known in await self._known(reply.rows("rows")):
            if known and known.owner == session.user:
                if isinstance(known, Registration):
                    apps.append(known)
                elif known.until:
                    name = known.app.name if known.app else client
                    deleted.append(Deleted(client, name, at(known.until)))
                else:
                    deleting.append(client)
            elif began + APP_BEGUN < now:
                with wrapped():
                    await self._client.zrem(session.keys()["apps"], client)
        joined = []
        for client, began, known in await self._known(reply.rows("joined")):
            role = role_of(known, session.user) if isinstance(known, Registration) else None
            if isinstance(known, Registration) and role and known.owner != session.user:
                joined.append(Joined(known, role))
            elif began + APP_BEGUN < now:
                with wrapped():
                    await self._client.zrem(session.keys()["teams"], client)
        return Owned(profile_of(session.user, reply), tuple(apps), tuple(deleting), tuple(deleted), tuple(joined))

    async def _known(self, rows: Sequence[bytes]) -> Sequence[tuple[str, int, Known]]:
        """The apps in a list with scores: client id, time (epoch ms), and what the store has of the app."""
        ids = [client.decode() for client in rows[::2]]
        found = await asyncio.gather(*(self._apps.stored(client) for client in ids))
        return list(zip(ids, (int(float(score)) for score in rows[1::2]), found, strict=True))

    async def find(self, session: Session, client_id: str, act: Act = "see") -> tuple[Profile, Registration]:
        """One app, read from the store, to do this with it. Raises SignedOut, Refused as `check_may`."""
        profile = await self._notes.profile(session)
        registration, _ = await self._apps.fresh(client_id)
        if registration is None:
            raise Refused("not_found", Phrase("You have no such app."))
        check_may(registration, session.user, act)
        return profile, registration

    async def register(self, session: Session, nonce: str, visitor: Visitor, *, most: int, **fields: Any) -> Registered:
        """Registers an app for this person, who may have `most`. The client id is derived from person and `nonce`, so a
        repeated form registers nothing more. Raises SignedOut, ValueError for a forbidden value,
        Refused("access_denied") if the person has `most` apps already, Refused("rate_limited"), StoreFull."""
        client_id = client_id_of(hashlib.sha256(f"{session.user}:{nonce}".encode()).digest())
        chosen = fields.get("api_scopes", ())
        registration = Registration(client_id, **fields, owner=session.user, owner_scopes=chosen)
        check_told_at(own_sector(registration), registration.backchannel_logout_uri)
        self._headroom.require()
        reply = await self._claim(session, client_id, most, visitor)
        if reply.word == "full" and len(await self.list(session)) < most:
            reply = await self._claim(session, client_id, most, visitor)  # dropped entries have made room
        if reply.word == "full":
            raise Refused(
                "access_denied",
                Phrase(
                    "You have %(most)s apps, which is as many as one person may have here. Deleted ones count while "
                    "documents of their people are kept.",
                    most=most,
                ),
            )
        if reply.word == "rate_limited":
            let_in(REGISTER_APP, reply)
        try:
            return Registered(*await self._apps.create(registration))
        except Refused:
            present, _ = await self._apps.fresh(client_id)
            if present is None or present.owner != session.user:
                raise
            return Registered(present, None, again=True)

    async def _claim(self, session: Session, client_id: str, most: int, visitor: Visitor) -> Reply:
        reply = await self._scripts.run(
            "claim_app",
            {**session.keys(), "window": keys.limit(session.user, REGISTER_APP.name)},
            client=client_id,
            most=most,
            limit=REGISTER_APP.limit,
            period=REGISTER_APP.period,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        return reply

    async def update(
        self, session: Session, client_id: str, event: str, visitor: Visitor, **changes: Any
    ) -> Registration:
        """Changes fields of an app, and returns its previous state. Switching it off takes no confirmation. A change
        without effect is not noted. Raises SignedOut, Unproved, ValueError for a forbidden value, Refused("not_found",
        "rate_limited", or "access_denied" for the status of an app that the operator has disabled)."""
        _, before = await self.find(session, client_id, "change")
        if changed_by_owner(before, session.user, **changes) == before:
            return before
        ends = changes == {"status": "off"}
        await self._notes.note(session, client_id, event, visitor, reauthenticated=not ends, counted=not ends)

        def change(present: Registration) -> Registration:
            nonlocal before
            before = present  # of simultaneous requests, only one finds the app unchanged
            return changed_by_owner(present, session.user, **changes)

        await self._apps.change(client_id, change, session.user)
        return before

    async def set_logo(self, session: Session, client_id: str, image: bytes, visitor: Visitor) -> bool:
        """Replaces the app's logo with an encoded one, or removes it if `image` is empty. Returns whether that changed
        anything. Takes no confirmation: a file cannot wait for one, and a logo opens nothing. A new one ends the
        operator's mark. Raises SignedOut, StoreFull, Refused("not_found" or "rate_limited")."""
        _, before = await self.find(session, client_id, "change")
        if before.logo == logo_id(image):
            return False
        if image:
            self._headroom.require()
        await self._notes.note(session, client_id, "app_changed", visitor, reauthenticated=False, counted=bool(image))
        await self._apps.change(client_id, lambda app: app, session.user, logo=image)
        return True

    async def prove_domain(self, session: Session, seen: Registration, domain: str, visitor: Visitor) -> None:
        """Notes that a domain names the app, in its state when the domain was asked. This takes no confirmation: a
        thief with the session cannot change what the domain says. Raises SignedOut, Refused("not_found",
        "rate_limited", or "invalid_request" if the app has changed meanwhile)."""
        _, present = await self.find(session, seen.client_id, "change")
        now = await self._apps.now()
        proven(present, domain, seen, now)
        await self._notes.note(session, seen.client_id, "app_domain_verified", visitor, reauthenticated=False)
        await self._apps.change(seen.client_id, lambda app: proven(app, domain, seen, now), session.user)

    async def rotate(self, session: Session, client_id: str, visitor: Visitor) -> tuple[Registration, str]:
        """Gives an app a second secret. Raises SignedOut, Unproved, Refused("not_found", "rate_limited", or
        "invalid_request" if the app has two already, or is public)."""
        _, present = await self.find(session, client_id, "change")
        rotated(present, "", spare=True)
        await self._notes.note(session, client_id, "app_secret_made", visitor)
        return await self._apps.rotate_secret(client_id, by=session.user)

    async def drop_secret(self, session: Session, client_id: str, mark: str, visitor: Visitor) -> None:
        """Ends one of two secrets. Raises SignedOut, Unproved, Refused("not_found", or "invalid_request" for the
        last one)."""
        _, present = await self.find(session, client_id, "change")
        without_secret(present, mark)
        await self._notes.note(session, client_id, "app_secret_ended", visitor, counted=False)
        await self._apps.drop_secret(client_id, mark, by=session.user)

    async def set_webhook(
        self,
        session: Session,
        client_id: str,
        url: str,
        visitor: Visitor,
        *,
        events: tuple[str, ...] | None = None,
    ) -> WebhookChange:
        """Sets the URL for webhooks of an app, and if given the event types that it wants; an empty URL turns them off.
        Raises SignedOut, Unproved, ValueError for a forbidden URL, Refused("not_found" or "rate_limited")."""
        _, present = await self.find(session, client_id, "change")
        if url != present.webhook_url:
            check_told_at(own_sector(present), url)
        replace(present, webhook_url=url, webhook_events=present.webhook_events if events is None else events)
        await self._notes.note(session, client_id, "app_webhook_changed", visitor)
        return await self._webhooks.set_url(client_id, url, events=events, by=session.user)

    async def rotate_webhook(
        self, session: Session, client_id: str, visitor: Visitor, *, mark: str, ends: str | None
    ) -> WebhookChange:
        """Gives the webhook of an app a new signing secret, if the newest secret still has this mark. If two secrets
        sign, one of them `ends` ("newer" or "older"). Raises SignedOut, Unproved, Refused("not_found", "rate_limited",
        or "invalid_request" as `Webhooks.rotated`)."""
        _, present = await self.find(session, client_id, "change")
        self._webhooks.rotated(present, await self._apps.now(), mark, ends)
        await self._notes.note(session, client_id, "app_webhook_secret_made", visitor)
        return await self._webhooks.rotate(client_id, by=session.user, mark=mark, ends=ends)

    async def delete(self, session: Session, client_id: str, visitor: Visitor) -> None:
        """Begins an app's deletion, which kills all its tokens. `Apps.finish_deletion` does the rest. Raises SignedOut,
        Unproved, Refused as `check_may`."""
        registration, left_by = await self._apps.fresh(client_id)
        if registration:
            check_may(registration, session.user, "delete")
        elif session.user != left_by:
            raise Refused("not_found", Phrase("You have no such app."))
        # An interrupted deletion that continues here was confirmed when it began.
        reauthenticated = registration is not None
        await self._notes.note(
            session, client_id, "app_deleted", visitor, reauthenticated=reauthenticated, counted=False
        )
        await self._apps.begin_deletion(client_id, by=session.user)

    async def take_back(self, user: str, since: int) -> dict[str, Phrase]:
        """Applies `taken_back` to each app whose team has a person who takes back an account that somebody else had
        from `since` on (epoch ms), and ends the person's invitations. Returns what was done, by client id. Raises
        StoreUnavailable."""
        done: dict[str, Phrase] = {}
        for client_id in await self._lists.of(user):
            # Before the team is read, so that nobody joins between the two.
            await self._invitations.end_of(client_id, user)
            present, _ = await self._apps.fresh(client_id)
            if present is None or role_of(present, user) is None:
                continue
            after = taken_back(present, user, since)
            ended, off = after.secrets != present.secrets, after.status != present.status
            parted = after.members != present.members
            if not (ended or off or parted):
                continue
            for event in ("app_secret_ended",) * ended + ("app_disabled",) * off + ("app_member_removed",) * parted:
                await self._scripts.run("record_event", keys.person(user), event=event, client=client_id)
            with suppress(Refused):  # it was deleted meanwhile
                await self._apps.change(client_id, lambda app: taken_back(app, user, since), user, act="see")
            done[client_id] = taken_back_phrase(off=off, ended=ended, parted=parted)
        return done

    async def give(self, user: str, client_id: str) -> None:
        """Adds an app to the list of the person who is about to become its owner. The previous owner loses the app with
        the change of the registration. Raises Refused("not_found")."""
        reply = await self._scripts.run("give_app", keys.person(user), client=client_id)
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
