"""The teams of apps: who is in them, invitations, changes of roles, and what happens when somebody leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from redis.asyncio import Redis

from store import keys
from store.accounts.signin.sessions import Session
from store.apps.apps import Apps
from store.apps.cache import INVITATION_OVER
from store.apps.owners.invitations import Invitation, Invitations, spent
from store.apps.owners.member_lists import MemberLists
from store.apps.owners.members import (
    IN_TEAM,
    bereft,
    check_may,
    given_to,
    joined,
    role_of,
    team_of,
    with_role,
    without,
)
from store.apps.owners.owner_notes import OwnerNotes
from store.apps.owners.roles import Act, Member, Role
from store.apps.registration import Registration
from store.engine.scripts import Scripts
from store.lifetimes import CHANGE_APP
from store.phrases import Phrase, plural
from store.refused import Refused, let_in, refuse_signed_out
from store.results import Profile, Visitor, profile_of

MOST_TEAMS = 100
"""Apps of others whose teams one person may join."""
_ROLE_EVENTS = {
    (True, False): "app_role_given",
    (False, False): "app_role_taken",
    (True, True): "app_role_given_by_operator",
    (False, True): "app_role_taken_by_operator",
}
"""The event of a role, by whether there is one now, and whether the operator changed it."""


class Teammate(NamedTuple):
    """A member of a team; `profile` is None if the account no longer exists."""

    member: Member
    profile: Profile | None


class Team(NamedTuple):
    """The team of an app, as its members see it: the person who looks, everybody, and open invitations."""

    profile: Profile
    app: Registration
    people: tuple[Teammate, ...]
    invitations: tuple[Invitation, ...]


class TeamChange(NamedTuple):
    """A change of a team: the registration before and after, the person concerned, who may be gone, and whether
    anything changed."""

    before: Registration
    after: Registration
    person: Profile | None
    changed: bool = True


class Offer(NamedTuple):
    """An opened invitation, its app, and the inviter."""

    app: Registration
    invitation: Invitation
    inviter: Profile


class Teams:
    """Teams of apps. Methods with a session raise SignedOut, and Refused("not_found") or Refused("access_denied") for
    somebody whose role does not allow the act. Inviting, changing a role, removing and leaving raise Unproved unless
    the person re-authenticated within 10 minutes. `idle` is the idle lifetime of a session in ms."""

    def __init__(
        self, client: Redis, scripts: Scripts, apps: Apps, invitations: Invitations, notes: OwnerNotes, idle: int
    ) -> None:
        self._scripts = scripts
        self._apps = apps
        self._invitations = invitations
        self._lists = MemberLists(client, scripts, apps)
        self._notes = notes
        self._idle = idle

    async def read(self, session: Session, client_id: str) -> Team:
        """The team of an app."""
        profile, app = await self._find(session, client_id, "see")
        people, invitations = await asyncio.gather(self.people(app), self._open(app))
        return Team(profile, app, people, tuple(invitations))

    async def invite(self, session: Session, client_id: str, email: str, role: Role, visitor: Visitor) -> str:
        """Invites an address, in its normal form. Returns the sealed text for the mail. Raises Refused("rate_limited",
        or "invalid_request" if the person is in the team, or too many invitations are open)."""
        profile, app = await self._find(session, client_id, "team")
        if not profile.email_verified:
            raise Refused(
                "access_denied", Phrase("Confirm your own e-mail address first: the invitation shows who you are.")
            )
        if any(one.profile and one.profile.email == email for one in await self.people(app)):
            raise Refused("invalid_request", IN_TEAM)
        await self._notes.note(session, client_id, "app_member_invited", visitor)
        return await self._invitations.make(client_id, email, role, session.user)

    async def withdraw(self, session: Session, client_id: str, invitation_id: str, visitor: Visitor) -> str:
        """Ends an open invitation, which takes no re-authentication. Returns its address, or an empty text if it was
        over."""
        _, app = await self._find(session, client_id, "team")
        for one in await self._open(app):
            if one.id == invitation_id:
                await self._notes.note(
                    session, client_id, "app_invitation_withdrawn", visitor, reauthenticated=False, counted=False
                )
                return one.email if await self._invitations.withdraw(client_id, one.id) else ""
        return ""

    async def look(self, text: str) -> Offer:
        """Opens an invitation. Raises Refused("invalid_request") if it is over, or its inviter is suspended."""
        token = self._invitations.open(text)
        app, _ = await self._apps.fresh(token.client)
        invitation = await self._invitations.find(app, token, await self._apps.now())
        assert app is not None
        reply = await self._scripts.run("read_member", keys.person(invitation.by))
        # Somebody who is suspended acts no more, not even by what they sent before. Resumed, they invite again.
        if reply.word == "not_found" or reply.text("status") != "active":
            raise Refused("invalid_request", INVITATION_OVER)
        return Offer(app, invitation, profile_of(invitation.by, reply))

    def app_of(self, text: str) -> str:
        """The client id in an invitation, perhaps one that is over. Raises Refused("invalid_request")."""
        return self._invitations.open(text).client

    async def is_member(self, user: str, client_id: str) -> bool:
        """Whether the person is in the team of the app now."""
        app, _ = await self._apps.fresh(client_id)
        return app is not None and role_of(app, user) is not None

    async def accept(self, session: Session, text: str, visitor: Visitor) -> TeamChange:
        """Joins a team by an invitation, which works once. Raises SignedOut, Refused("rate_limited",
        "invalid_request" if it is over, if the person is in the team, or in too many, or "access_denied" for another or
        an unconfirmed address)."""
        app, invitation, _ = await self.look(text)
        reply = await self._scripts.run(
            "join_app",
            {**session.keys(), "window": keys.limit(session.user, CHANGE_APP.name)},
            client=app.client_id,
            email=invitation.email,
            most=MOST_TEAMS,
            idle=self._idle,
            limit=CHANGE_APP.limit,
            period=CHANGE_APP.period,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "rate_limited":
            let_in(CHANGE_APP, reply)
        if reply.word == "elsewhere":
            raise Refused("access_denied", Phrase("This invitation is for a different e-mail address."))
        if reply.word == "full":
            raise Refused(
                "invalid_request",
                plural(
                    "You’re in %(count)s team, and that’s the limit. Leave it first.",
                    "You’re in %(count)s teams, and that’s the limit. Leave one first.",
                    MOST_TEAMS,
                ),
            )
        now = await self._apps.now()
        new = Member(session.user, invitation.role, now, invitation.by)

        def join(present: Registration) -> Registration:
            if role_of(present, invitation.by) != "owner":
                raise Refused("invalid_request", INVITATION_OVER)
            return joined(present, new)

        try:
            before, after = await self._lists.change(
                app.client_id,
                join,
                entered=(session.user, "teams"),
                spent=spent(app.client_id, invitation),
            )
        except Refused:
            present, _ = await self._apps.fresh(app.client_id)
            if present is None or role_of(present, session.user) is None:
                await self._lists.leave(session.user, "teams", app.client_id)
            raise
        person = await self.person(session.user)
        if person is None:  # the account was deleted meanwhile, perhaps after its teams were read
            await self._part(app.client_id, session.user, now)
        return TeamChange(before, after, person)

    async def set_role(self, session: Session, client_id: str, user: str, role: Role, visitor: Visitor) -> TeamChange:
        """Gives a member another role. Raises Refused as `with_role`."""
        change = partial(with_role, user=user, role=role, by=session.user)
        return await self._changed(session, client_id, user, "team", "app_member_role_changed", change, visitor)

    async def remove(self, session: Session, client_id: str, user: str, visitor: Visitor) -> TeamChange:
        """Removes a member, who has no access from now on. Raises Refused as `without`."""
        change = partial(without, user=user, by=session.user)
        return await self._changed(session, client_id, user, "team", "app_member_removed", change, visitor)

    async def leave(self, session: Session, client_id: str, visitor: Visitor) -> TeamChange:
        """Takes the person out of the team. Raises Refused as `without`."""
        change = partial(without, user=session.user, by=session.user)
        return await self._changed(session, client_id, session.user, "leave", "app_left", change, visitor)

    async def _changed(
        self,
        session: Session,
        client_id: str,
        user: str,
        act: Act,
        event: str,
        change: Callable[..., Registration],
        visitor: Visitor,
    ) -> TeamChange:
        """Notes a change and makes it, if it is one. Notes it for the other person concerned too."""
        _, present = await self._find(session, client_id, act)
        now = await self._apps.now()
        unchanged = change(present, now=now) == present  # refuses somebody who is not in the team
        person = await self.person(user)
        if unchanged:
            return TeamChange(present, present, person, changed=False)
        # Who ends something takes no place: beginning it took one.
        await self._notes.note(session, client_id, event, visitor, counted=event == "app_member_role_changed")
        before, after = await self._lists.change(client_id, lambda app: change(app, now=now), session.user, act=act)
        await self._parted(after, user, person)
        if user != session.user:
            await self._tell(user, after, client_id)
        return TeamChange(before, after, person, changed=before != after)

    async def _tell(self, user: str, after: Registration, client_id: str, *, by_operator: bool = False) -> None:
        """Notes in the activity of a person that their own role changed."""
        given = role_of(after, user) is not None
        event = _ROLE_EVENTS[given, by_operator]
        await self._scripts.run("record_event", keys.person(user), event=event, client=client_id)

    async def _parted(self, app: Registration, user: str, person: Profile | None) -> None:
        """Ends what could bring somebody back who is no longer in the team: invitations by them, or to their address.
        Those by somebody who is no owner don't count."""
        if role_of(app, user) != "owner":
            await self._invitations.end_of(app.client_id, user)
        if person and role_of(app, user) is None:
            there = [one.id for one in await self._open(app) if one.email == person.email]
            await self._invitations.withdraw(app.client_id, *there)

    async def people(self, app: Registration) -> tuple[Teammate, ...]:
        """Everybody in the team of an app, the first owner first."""
        team = team_of(app)
        found = await asyncio.gather(*(self.person(one.user) for one in team))
        return tuple(Teammate(*both) for both in zip(team, found, strict=True))

    async def persons(self, users: Iterable[str]) -> list[Profile]:
        """Those of these people who have an account."""
        found = await asyncio.gather(*(self.person(user) for user in users))
        return [one for one in found if one]

    async def person(self, user: str) -> Profile | None:
        """A person whom others of a team see; None if there is no such account."""
        reply = await self._scripts.run("read_member", keys.person(user))
        return None if reply.word == "not_found" else profile_of(user, reply)

    async def put(self, client_id: str, user: str, role: Role) -> TeamChange:
        """Adds a person to a team, or changes their role, for the operator. The first member of an app without an owner
        is its owner. Raises Refused("not_found"), and as `joined` and `with_role`."""
        now = await self._apps.now()

        def change(app: Registration) -> Registration:
            if not app.owner:
                if role != "owner":
                    raise Refused("invalid_request", Phrase("The app has no owner. Add one first."))
                return given_to(app, user)
            if role_of(app, user) is None:
                return joined(app, Member(user, role, now))
            return with_role(app, user, role, "", now)

        return await self._by_operator(client_id, user, change)

    async def take(self, client_id: str, user: str) -> TeamChange:
        """Takes a person out of a team, for the operator. Raises Refused("not_found"), and as `without`."""
        now = await self._apps.now()
        return await self._by_operator(client_id, user, lambda app: without(app, user, "", now))

    async def _by_operator(
        self, client_id: str, user: str, change: Callable[[Registration], Registration]
    ) -> TeamChange:
        person = await self.person(user)
        before, after = await self._lists.change(client_id, change)
        if before != after:
            await self._parted(after, user, person)
            await self._tell(user, after, client_id, by_operator=True)
        return TeamChange(before, after, person, changed=before != after)

    async def part_with(self, user: str) -> None:
        """Takes a person whose account is being deleted out of every team. An app whose only owner they are stays as it
        is. Removes the lists. May be repeated."""
        now = await self._apps.now()
        for client_id in await self._lists.of(user):
            await self._part(client_id, user, now)
        await self._lists.drop(user)

    async def _part(self, client_id: str, user: str, now: int) -> None:
        gone = [user]
        while present := (await self._apps.fresh(client_id))[0]:
            after = bereft(present, gone, now)
            if after == present:
                return
            try:
                await self._lists.change(client_id, lambda app: bereft(app, gone, now))
                return
            except Refused:  # the app is gone, or the account of the new first owner
                gone.append(after.owner)

    async def _find(self, session: Session, client_id: str, act: Act) -> tuple[Profile, Registration]:
        profile = await self._notes.profile(session)
        app, _ = await self._apps.fresh(client_id)
        if app is None:
            raise Refused("not_found", Phrase("You have no such app."))
        check_may(app, session.user, act)
        return profile, app

    async def _open(self, app: Registration) -> list[Invitation]:
        return await self._invitations.of(app, await self._apps.now())
