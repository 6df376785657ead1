"""People with a role: who may operate the server in a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.asyncio import Redis

from store import keys
from store.accounts.signin.sessions import Session
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.oauth.sign_in import LEVELS
from store.operators.roles import PEOPLES_ROLES, OperatorRole, check_operator_role
from store.phrases import Phrase
from store.refused import Refused

MOST_HOLDERS = 500
BY_COMMAND = "command"
"""Who gives a role with the command line."""
LAST_ADMIN = Phrase("This is the last administrator. Give that role to someone else first.")


@dataclass(frozen=True, slots=True)
class RoleHolder:
    """A person with a role. `since` is in epoch ms; `by`: who gave it, in the form of the audit trail."""

    user: str
    role: OperatorRole
    since: int
    by: str


class RoleInSession(NamedTuple):
    """A person's role, and whether they signed in with a second step: without one, the role does not work."""

    role: OperatorRole
    works: bool


class RoleHolders:
    """Gives and takes roles. All are in one key, so one script knows how many admins there are. Every method raises
    StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts

    async def of(self, user: str) -> OperatorRole | None:
        """The role of a person."""
        with wrapped():
            row: Any = await self._client.hget(keys.ROLE_HOLDERS, user)
        return _holder(user, row).role if row else None

    async def working(self, user: str) -> OperatorRole | None:
        """The role of a person who may sign in; None for somebody who is suspended."""
        role = await self.of(user)
        with wrapped():
            status: Any = await self._client.hget(keys.person(user)["user"], "status") if role else None
        return role if status == b"active" else None

    async def in_session(self, session: Session) -> RoleInSession | None:
        """The role of a signed-in person, and whether it works in this session. The caller checks that the session is
        live."""
        role = await self.of(session.user)
        if role is None:
            return None
        with wrapped():
            method: Any = await self._client.hget(session.keys()["session"], "method")
        # RFC 8176: a passkey that verifies its person is two factors.
        return RoleInSession(role, (method or b"pwd").decode() in LEVELS["2"])

    async def list(self) -> list[RoleHolder]:
        """Everybody with a role, the longest first."""
        with wrapped():
            rows: Any = await self._client.hgetall(keys.ROLE_HOLDERS)
        found = [_holder(user.decode(), row) for user, row in rows.items()]
        return sorted(found, key=lambda one: (one.since, one.user))

    async def admins(self) -> tuple[str, ...]:
        """The admins who can sign in: whoever is suspended helps nobody."""
        users = [one.user for one in await self.list() if one.role == "admin"]
        with wrapped():
            async with self._client.pipeline(transaction=False) as batch:
                for user in users:
                    batch.hget(keys.person(user)["user"], "status")
                found: list[Any] = await batch.execute() if users else []
        return tuple(user for user, status in zip(users, found, strict=True) if status == b"active")

    async def is_last_admin(self, user: str) -> bool:
        """Whether this person is an admin, and no other admin can sign in."""
        return await self.of(user) == "admin" and not {*await self.admins()} - {user}

    async def give(self, user: str, role: OperatorRole | None, by: str = BY_COMMAND) -> OperatorRole | None:
        """Gives a person this role, or none, and returns the one before. Raises Refused("access_denied") if no admin
        would be left, Refused("invalid_request") for a role that only keys have, and for too many people."""
        role = check_operator_role(role, PEOPLES_ROLES) if role else None
        if role != "admin" and await self.is_last_admin(user):
            raise Refused("access_denied", LAST_ADMIN)
        before = await self._write(user, role, by)
        # Another admin may have lost the role or the account at the same moment, in another slot.
        if before == "admin" != role and not await self.admins():
            await self._write(user, before, by)
            raise Refused("access_denied", LAST_ADMIN)
        return before

    async def _write(self, user: str, role: OperatorRole | None, by: str) -> OperatorRole | None:
        reply = await self._scripts.run(
            "give_operator_role",
            {"holders": keys.ROLE_HOLDERS},
            member=user,
            role=role or "",
            by=by,
            most=MOST_HOLDERS,
        )
        if reply.word == "last_admin":
            raise Refused("access_denied", LAST_ADMIN)
        if reply.word == "full":
            raise Refused(
                "invalid_request",
                Phrase(
                    "%(most)s people have a role, and that's the limit. Remove someone's role first.", most=MOST_HOLDERS
                ),
            )
        before = reply.text("before")
        return check_operator_role(before) if before else None


def _holder(user: str, row: bytes) -> RoleHolder:
    role, since, by = row.decode().split(" ", 2)
    return RoleHolder(user, check_operator_role(role), int(since), by)
