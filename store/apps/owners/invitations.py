"""Open invitations to the teams of apps: kept with the app for 7 days, and named by the sealed text in a mail.

An invitation counts only while its inviter is an owner, so an owner who is removed leaves no way back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.apps.cache import INVITATION_OVER, Spent
from store.apps.owners.members import role_of
from store.apps.owners.roles import Role, check_role
from store.apps.registration import Registration
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.lifetimes import TEAM_INVITATION
from store.phrases import plural
from store.refused import Refused

MOST_OPEN = 10
"""Open invitations of one app."""


class Invitation(NamedTuple):
    """An open invitation: its id, its end (epoch ms), the role, the inviter and the invited address; `row` is its
    stored form."""

    id: str
    ends: int
    role: Role
    by: str
    email: str
    row: bytes


def _read(invitation_id: str, row: bytes) -> Invitation:
    ends, role, by, email = row.decode().split(" ", 3)
    return Invitation(invitation_id, int(ends), check_role(role), by, email, row)


class Invitations:
    """The open invitations of apps. Every method raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts, sealer: Sealer) -> None:
        self._client = client
        self._scripts = scripts
        self._sealer = sealer

    async def make(self, client_id: str, email: str, role: Role, by: str) -> str:
        """Keeps an invitation by an owner, which replaces an open one for this address. Returns its sealed text. Raises
        Refused("invalid_request") if the app has as many as it may."""
        made = new_id()
        reply = await self._scripts.run(
            "invite_member",
            {"invitations": _key(client_id)},
            id=made,
            role=role,
            by=by,
            email=email,
            most=MOST_OPEN,
            lasts=TEAM_INVITATION,
        )
        if reply.word == "full":
            raise Refused(
                "invalid_request",
                plural(
                    "This app has %(count)s open invitation, and that's the limit. Withdraw it first.",
                    "This app has %(count)s open invitations, and that's the limit. Withdraw one first.",
                    MOST_OPEN,
                ),
            )
        return self._sealer.seal(Token(TokenKind.TEAM, by, client_id, made, 0))

    def open(self, text: str) -> Token:
        """The invitation that a text names, perhaps an ended one. Raises Refused("invalid_request")."""
        token = self._sealer.open(TokenKind.TEAM, text)
        if token is None:
            raise Refused("invalid_request", INVITATION_OVER)
        return token

    async def of(self, app: Registration, now: int) -> list[Invitation]:
        """The open invitations of an app at `now` (epoch ms), the oldest first."""
        with wrapped():
            rows: dict[Any, Any] = await self._client.hgetall(_key(app.client_id))
        found = [_read(one.decode(), row) for one, row in rows.items()]
        live = [one for one in found if one.ends > now and role_of(app, one.by) == "owner"]
        return sorted(live, key=lambda one: one.ends)

    async def find(self, app: Registration | None, token: Token, now: int) -> Invitation:
        """The open invitation of this text. Raises Refused("invalid_request")."""
        for one in await self.of(app, now) if app else ():
            if one.id == token.id:
                return one
        raise Refused("invalid_request", INVITATION_OVER)

    async def withdraw(self, client_id: str, *ids: str) -> bool:
        """Ends invitations. Returns whether there was one of them."""
        with wrapped():
            return bool(ids) and bool(await self._client.hdel(_key(client_id), *ids))

    async def end_of(self, client_id: str, user: str) -> None:
        """Ends the invitations by a person."""
        with wrapped():
            rows: dict[Any, Any] = await self._client.hgetall(_key(client_id))
        theirs = [one.decode() for one, row in rows.items() if _read(one.decode(), row).by == user]
        await self.withdraw(client_id, *theirs)


def spent(client_id: str, invitation: Invitation) -> Spent:
    """The invitation that a change of the registration uses up."""
    return Spent(_key(client_id), invitation.id, invitation.row)


def _key(client_id: str) -> str:
    return keys.app_stats(client_id)["invitations"]
