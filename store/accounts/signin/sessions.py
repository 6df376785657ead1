"""Browser sessions: sealed in a cookie, alive by a row that idles out, and dead with the person's session epoch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from store import keys, moments
from store.accounts.audit.security_log import SecurityLog
from store.accounts.people import Credentials
from store.accounts.signin.devices import Device, Devices
from store.bounds import Bounds
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.scripts import Reply, Scripts
from store.lifetimes import MISTYPED, PROOF
from store.refused import Refused, SignedOut, refuse_signed_out, refuse_unproved
from store.results import Profile, Visitor, profile_of, warned_of
from store.security_events import is_ordinary

ACTIVITY_SHOWN = 50
"""Events of each trail that are shown, the security events and the ordinary ones."""
ACTIVITY_KEPT = 200
"""Events of each trail that are kept, as lua/include/audit.lua has it."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session as its cookie names it; whether it is alive only the store can say."""

    user: str
    session_id: str

    def keys(self) -> dict[str, str]:
        """The keys of the person and of the session."""
        return {**keys.person(self.user), "session": keys.session(self.user, self.session_id)}


@dataclass(frozen=True, slots=True)
class Activity:
    """One entry of the audit trail."""

    at: datetime
    event: str
    client: str
    address: str
    agent: str

    @property
    def ordinary(self) -> bool:
        """Whether the event says nothing about the account's security."""
        return is_ordinary(self.event)


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A session as its person sees it."""

    session_id: str
    created_at: datetime
    seen_at: datetime
    address: str
    agent: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A sign-in: the person, the cookies of its session and of the known device, where it is told of, and what the
    activity had before of sign-ins and the sign-up, among its newest 50 events. Of sign-ins at the same moment each has
    those that came before it."""

    user: str
    cookie: str
    device: str
    warned: tuple[str, ...]
    before: tuple[Activity, ...]


class SecondStepNeeded(Exception):
    """The password was right and is not enough: `text` stands for the sign-in, for 5 minutes, and is no session."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Sessions:
    """Sign-in, sign-out and what a signed-in person reads of the account. `idle` and `lifetime` are in ms."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        hasher: PasswordHasher,
        devices: Devices,
        idle: int,
        lifetime: int,
        security: SecurityLog,
        bounds: Bounds,
    ) -> None:
        self._bounds = bounds
        self.security = security
        self._scripts = scripts
        self._sealer = sealer
        self._devices = devices
        self._hasher = hasher
        self.idle = idle
        self.lifetime = lifetime

    def open(self, cookie: str) -> Session | None:
        """The session a cookie names, or None for anything that is not one of ours. No I/O."""
        token = self._sealer.open(TokenKind.SESSION, cookie)
        return Session(token.user, token.id) if token else None

    def seal(self, session: Session) -> str:
        """The cookie of a session."""
        return self._sealer.seal(Token(TokenKind.SESSION, session.user, "", session.session_id, 0))

    def signed_in(self, session: Session, reply: Reply, session_epoch: str, before: Device | None) -> SignedIn:
        """The sign-in in the answer of a script that made its session; `before`: the browser was known already."""
        device = self._devices.seal(before, session.user, session_epoch, reply.number("now"))
        before_it = tuple(map(activity_of, reply.rows("before")))
        return SignedIn(session.user, self.seal(session), device, warned_of(reply), before_it)

    def room(self, user: str) -> dict[str, str | int]:
        """The arguments of the scripts that make a session: how many there may be, and where they are."""
        return {"session_prefix": keys.session_prefix(user), "most_sessions": self._bounds.sessions}

    async def start(self, credentials: Credentials, visitor: Visitor, device: Device | None = None) -> SignedIn:
        """Starts a new session for verified credentials. Raises SignedOut when the password
        or the person's status changed while it was being verified, SecondStepNeeded where it is not enough."""
        session_id = new_id()
        session = Session(credentials.user, session_id)
        reply = await self._scripts.run(
            "start_session",
            session.keys(),
            session_id=session_id,
            session_epoch=credentials.session_epoch,
            idle=self.idle,
            lifetime=self.lifetime,
            rehash=credentials.rehash,
            **self.room(session.user),
            **visitor.fields(),
        )
        if reply.word == "stale":
            raise SignedOut
        if reply.word == "second_step":
            born = f"{credentials.session_epoch} {reply.number('at')} {reply.text('devices_since')}"
            raise SecondStepNeeded(self._sealer.seal(Token(TokenKind.SECOND_STEP, credentials.user, born, new_id(), 0)))
        return self.signed_in(session, reply, credentials.session_epoch, device)

    async def end(self, session: Session, visitor: Visitor) -> None:
        """Ends a session at once."""
        await self._scripts.run("end_session", session.keys(), session_id=session.session_id, **visitor.fields())

    async def live(self, session: Session) -> list[LiveSession]:
        """The sessions of the person, newest first, this one among them. Raises SignedOut."""
        reply = await self._scripts.run(
            "list_sessions",
            session.keys(),
            session_prefix=keys.session_prefix(session.user),
            idle=self.idle,
        )
        refuse_signed_out(reply)
        return [live_session(row) for row in reply.rows("rows")]

    async def end_other(self, session: Session, session_id: str, visitor: Visitor) -> None:
        """Ends another session of the same person, if there is such a one. Raises SignedOut."""
        reply = await self._scripts.run(
            "end_other_session",
            {**session.keys(), "other": keys.session(session.user, session_id)},
            other_id=session_id,
            idle=self.idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)

    async def end_others(self, session: Session, visitor: Visitor) -> None:
        """Ends every session of the person but this one. Raises SignedOut."""
        reply = await self._scripts.run(
            "end_other_sessions",
            session.keys(),
            idle=self.idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)

    async def profile(self, session: Session) -> Profile:
        """Who is signed in. Raises SignedOut."""
        reply = await self._scripts.run("read_session", session.keys(), idle=self.idle)
        refuse_signed_out(reply)
        return profile_of(session.user, reply)

    async def note(self, session: Session, event: str, visitor: Visitor) -> None:
        """Notes in the audit trail what the person does. Raises SignedOut."""
        reply = await self._scripts.run(
            "record_own_event", session.keys(), event=event, idle=self.idle, **visitor.fields()
        )
        refuse_signed_out(reply)

    async def mistyped(self, session: Session, visitor: Visitor) -> None:
        """Notes in the activity that somebody typed a wrong password in this session: whoever stole its cookie may be
        guessing. A line an hour for each session, so guesses push out nothing else. Raises SignedOut."""
        reply = await self._scripts.run(
            "note_mistyped",
            {**session.keys(), "window": keys.limit(session.user, MISTYPED.name, session.session_id)},
            limit=MISTYPED.limit,
            period=MISTYPED.period,
            idle=self.idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)

    async def activity(self, session: Session) -> tuple[Profile, list[Activity]]:
        """Who is signed in and the newest events of each trail, newest first. Raises SignedOut."""
        reply = await self._scripts.run("read_activity", session.keys(), idle=self.idle)
        refuse_signed_out(reply)
        return profile_of(session.user, reply), activities(reply, ACTIVITY_SHOWN)

    async def change_password(
        self, session: Session, current: str, new: str, credentials: Credentials | None, visitor: Visitor
    ) -> str:
        """Changes the password and returns the cookie of the session that takes this one's place; every other
        session ends. `credentials` are those of the person's address. Raises Refused("access_denied") when the
        current password is wrong, SignedOut, HasherBusy, and Unproved where the person has a second step and did not
        confirm with it within 10 minutes."""
        right = await self._hasher.verify(current, credentials.password if credentials else None, known=True)
        if not right or credentials is None or credentials.user != session.user:
            self.security.note("confirmation_refused", person=session.user, detail="password")
            await self.mistyped(session, visitor)
            raise Refused("access_denied", "The current password is not right.")
        hashed = await self._hasher.hash(new, known=True)
        session_id = new_id()
        reply = await self._scripts.run(
            "change_password",
            {**session.keys(), "new_session": keys.session(session.user, session_id)},
            old_password=credentials.password,
            new_password=hashed,
            session_id=session_id,
            idle=self.idle,
            lifetime=self.lifetime,
            proof=PROOF,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        refuse_unproved(reply)
        if reply.word == "stale":
            raise Refused("access_denied", "The password was changed meanwhile.")
        return self.seal(Session(session.user, session_id))


def activity_of(entry: bytes) -> Activity:
    """An entry of a trail: the millisecond it was written, event, client, address, and the agent, which alone may hold
    spaces."""
    at, *words = entry.decode("utf-8", "replace").split(" ", 4)
    return Activity(moments.at(int(at)), *words)


def activities(reply: Reply, most: int) -> list[Activity]:
    """The newest events in the answer of a script, newest first: at most so many security events, and so many ordinary
    ones. What an earlier release wrote has both in one trail."""
    rows = [activity_of(row) for row in (*reply.rows("entries"), *reply.rows("ordinary"))]
    rows.sort(key=lambda entry: entry.at, reverse=True)
    ordinary = [entry for entry in rows if entry.ordinary][:most]
    security = [entry for entry in rows if not entry.ordinary][:most]
    return sorted(security + ordinary, key=lambda entry: entry.at, reverse=True)


def live_session(row: list[bytes]) -> LiveSession:
    """A session in the answer of a script."""
    one, created, seen, address, agent = row
    return LiveSession(
        one.decode(),
        moments.at(int(created)),
        moments.at(int(seen)),
        address.decode(),
        agent.decode("utf-8", "replace"),
    )
