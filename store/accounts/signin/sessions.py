"""Browser sessions: a sealed cookie, a row that expires when idle, and the person's session epoch that ends them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from store import keys, moments
from store.accounts.audit.security_log import SecurityLog
from store.accounts.people import Credentials
from store.accounts.signin.devices import Device, Devices
from store.accounts.signin.required_step import RequiredStep
from store.bounds import Bounds
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.scripts import Reply, Scripts
from store.lifetimes import BROWSER_SESSION, MISTYPED, PROOF
from store.phrases import Phrase
from store.refused import Refused, SignedOut, refuse_signed_out, refuse_unproved
from store.results import Profile, Visitor, Warned, profile_of, warned_of
from store.security_events import is_ordinary
from store.webhooks.relay_wakeup import RelayWakeup

_BRIEF = "brief"
"""What a cookie says in place of an app if its session is not kept. Cookies of earlier releases say nothing."""
ACTIVITY_SHOWN = 50
"""Events of each trail that the operator sees: the security events and the ordinary ones."""
ACTIVITY_KEPT = 200
"""Events kept in each trail, as in lua/include/audit.lua."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session named by its cookie; only the store knows whether it is alive. `kept`: the person stays signed in when
    the browser closes."""

    user: str
    session_id: str
    kept: bool = True

    def keys(self) -> dict[str, str]:
        """The keys of the person and of the session, and the outbox for what apps hear of it."""
        known = {"session": keys.session(self.user, self.session_id), "outbox": keys.outbox(self.user)}
        return {**keys.person(self.user), **known}


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
        """Whether the event does not concern the account's security."""
        return is_ordinary(self.event)


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A live session, as its person sees it."""

    session_id: str
    created_at: datetime
    seen_at: datetime
    address: str
    agent: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A sign-in: the person, its time (epoch ms, by the store's clock), the cookies of the session and of the known
    device, the addresses of its notice, and the earlier sign-ins and sign-up among the newest 50 events of the
    activity. Simultaneous sign-ins each have the ones that came before."""

    user: str
    at: int
    cookie: str
    device: str
    warned: Warned
    before: tuple[Activity, ...]


class SecondStepNeeded(Exception):
    """The password was right but a second step is needed. `text` names the sign-in for a while; it is no session.
    `setup`: the person has none and must set one up first."""

    def __init__(self, text: str, *, setup: bool = False) -> None:
        super().__init__()
        self.text, self.setup = text, setup


class Sessions:
    """Sign-in, sign-out and a signed-in person's view of the account. `idle` and `lifetime` are in ms."""

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
        wakeup: RelayWakeup,
    ) -> None:
        self._bounds = bounds
        self._wakeup = wakeup
        self.security = security
        self._scripts = scripts
        self._sealer = sealer
        self._devices = devices
        self._hasher = hasher
        self.idle = idle
        self.lifetime = lifetime
        self.required = RequiredStep()

    def open(self, cookie: str) -> Session | None:
        """The session that a cookie names, or None for a forged or foreign cookie. No I/O."""
        token = self._sealer.open(TokenKind.SESSION, cookie)
        return Session(token.user, token.id, token.client != _BRIEF) if token else None

    def seal(self, session: Session) -> str:
        """The cookie of a session."""
        client = "" if session.kept else _BRIEF
        return self._sealer.seal(Token(TokenKind.SESSION, session.user, client, session.session_id, 0))

    def lasts(self, session: Session) -> int:
        """How long a session may live, in ms."""
        return self.lifetime if session.kept else min(self.lifetime, BROWSER_SESSION)

    def signed_in(self, session: Session, reply: Reply, session_epoch: str, before: Device | None) -> SignedIn:
        """The sign-in from the answer of the script that made its session; `before`: the known device, if any."""
        at = reply.number("now")
        device = self._devices.seal(before, session.user, session_epoch, at)
        before_it = tuple(map(activity_of, reply.rows("before")))
        return SignedIn(session.user, at, self.seal(session), device, warned_of(reply), before_it)

    def room(self, user: str) -> dict[str, str | int]:
        """Arguments for scripts that make a session, and end another if there are too many."""
        return {**ends_of(user), "most_sessions": self._bounds.sessions}

    async def start(
        self,
        credentials: Credentials,
        visitor: Visitor,
        device: Device | None = None,
        *,
        kept: bool = True,
        must: bool = False,
    ) -> SignedIn:
        """Starts a session for verified credentials. `must`: whoever has no second step sets one up. Raises SignedOut
        if the password or the person's status changed during the verification, SecondStepNeeded if the person has a
        second step or must set one up."""
        session_id = new_id()
        session = Session(credentials.user, session_id, kept)
        reply = await self._scripts.run(
            "start_session",
            session.keys(),
            session_id=session_id,
            session_epoch=credentials.session_epoch,
            idle=self.idle,
            lifetime=self.lasts(session),
            rehash=credentials.rehash,
            required=await self.required.of(session.user, must=must),
            **self.room(session.user),
            **visitor.fields(),
        )
        if reply.word == "stale":
            raise SignedOut
        if reply.word in ("second_step", "setup"):
            born = f"{credentials.session_epoch} {reply.number('at')} {reply.text('devices_since')}"
            text = self._sealer.seal(Token(TokenKind.SECOND_STEP, credentials.user, born, new_id(), 0))
            raise SecondStepNeeded(text, setup=reply.word == "setup")
        return self.signed_in(session, reply, credentials.session_epoch, device)

    async def end(
        self,
        session: Session,
        visitor: Visitor,
        *,
        client_id: str = "",
        sid: str = "",
        successor: Session | None = None,
    ) -> bool:
        """Ends a session at once, for the app `client_id` if one asked for it. With a `sid`, only a session that apps
        know by it: returns False for another one. A `successor` is of the same person, in the same browser: apps know
        it by the same `sid` and hear of nothing."""
        continued = successor or session
        reply = await self._scripts.run(
            "end_session",
            {**session.keys(), "successor": keys.session(continued.user, continued.session_id)},
            session_id=session.session_id,
            client=client_id,
            sid=sid,
            **ends_of(session.user),
            **visitor.fields(),
        )
        self._wake(session, reply)
        return reply.word == "ok"

    async def live(self, session: Session) -> list[LiveSession]:
        """The person's sessions, newest first, including this one. Raises SignedOut."""
        reply = await self._scripts.run(
            "list_sessions",
            session.keys(),
            session_prefix=keys.session_prefix(session.user),
            idle=self.idle,
        )
        refuse_signed_out(reply)
        return [live_session(row) for row in reply.rows("rows")]

    async def end_other(self, session: Session, session_id: str, visitor: Visitor) -> None:
        """Ends another session of the same person, if it exists. Raises SignedOut."""
        reply = await self._scripts.run(
            "end_other_session",
            {**session.keys(), "other": keys.session(session.user, session_id)},
            other_id=session_id,
            idle=self.idle,
            **ends_of(session.user),
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        self._wake(session, reply)

    async def end_others(self, session: Session, visitor: Visitor) -> None:
        """Ends every session of the person but this one. Raises SignedOut."""
        reply = await self._scripts.run(
            "end_other_sessions",
            session.keys(),
            session_id=session.session_id,
            idle=self.idle,
            **ends_of(session.user),
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        self._wake(session, reply)

    def _wake(self, session: Session, reply: Reply) -> None:
        """Lets the relay run if the script has written events for apps."""
        self._wakeup.add(session.user, reply.word == "ok" and reply.number("told") > 0)

    async def profile(self, session: Session) -> Profile:
        """The profile of the signed-in person. Raises SignedOut."""
        reply = await self._scripts.run("read_session", session.keys(), idle=self.idle)
        refuse_signed_out(reply)
        return profile_of(session.user, reply)

    async def note(self, session: Session, event: str, visitor: Visitor) -> None:
        """Notes an event of the person in the audit trail. Raises SignedOut."""
        reply = await self._scripts.run(
            "record_own_event", session.keys(), event=event, idle=self.idle, **visitor.fields()
        )
        refuse_signed_out(reply)

    async def mistyped(self, session: Session, visitor: Visitor) -> None:
        """Notes in the activity that somebody typed a wrong password in this session: a thief with its cookie may be
        guessing. A session notes one line an hour, so guesses push out nothing else. Raises SignedOut."""
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
        """The signed-in person's profile, and all kept events of both trails, newest first. Raises SignedOut."""
        reply = await self._scripts.run("read_activity", session.keys(), idle=self.idle)
        refuse_signed_out(reply)
        return profile_of(session.user, reply), activities(reply, ACTIVITY_KEPT)

    async def change_password(
        self, session: Session, current: str, new: str, credentials: Credentials | None, visitor: Visitor
    ) -> str:
        """Changes the password, ends every other session, and returns the cookie of the session that replaces this one.
        `credentials` are those of the person's address. Raises Refused("access_denied") if the current password is
        wrong, SignedOut, HasherBusy, and Unproved if the person has a second step and did not confirm with it within 10
        minutes."""
        right = await self._hasher.verify(current, credentials.password if credentials else None, known=True)
        if not right or credentials is None or credentials.user != session.user:
            self.security.note("confirmation_refused", person=session.user, detail="password")
            await self.mistyped(session, visitor)
            raise Refused("access_denied", Phrase("The current password is incorrect."))
        hashed = await self._hasher.hash(new, known=True)
        session_id = new_id()
        reply = await self._scripts.run(
            "change_password",
            {**session.keys(), "new_session": keys.session(session.user, session_id)},
            old_password=credentials.password,
            new_password=hashed,
            session_id=session_id,
            before_id=session.session_id,
            idle=self.idle,
            lifetime=self.lasts(session),
            proof=PROOF,
            **ends_of(session.user),
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        refuse_unproved(reply)
        self._wake(session, reply)
        if reply.word == "stale":
            raise Refused("access_denied", Phrase("The password was changed in the meantime."))
        return self.seal(Session(session.user, session_id, session.kept))


def ends_of(user: str) -> dict[str, str]:
    """Arguments of scripts that end sessions: where the sessions are, and the person in the lists of the shard."""
    return {"session_prefix": keys.session_prefix(user), "member": keys.member(user)}


def activity_of(entry: bytes) -> Activity:
    """Parses an entry of a trail: time in ms, event, client, address, agent. Only the agent may contain spaces."""
    at, *words = entry.decode("utf-8", "replace").split(" ", 4)
    return Activity(moments.at(int(at)), *words)


def activities(reply: Reply, most: int) -> list[Activity]:
    """The newest events in a script's answer, newest first: at most `most` security events and `most` ordinary ones.
    Earlier releases wrote both to one trail."""
    rows = [activity_of(row) for row in (*reply.rows("entries"), *reply.rows("ordinary"))]
    rows.sort(key=lambda entry: entry.at, reverse=True)
    ordinary = [entry for entry in rows if entry.ordinary][:most]
    security = [entry for entry in rows if not entry.ordinary][:most]
    return sorted(security + ordinary, key=lambda entry: entry.at, reverse=True)


def live_session(row: list[bytes]) -> LiveSession:
    """Parses a session in a script's answer."""
    one, created, seen, address, agent = row
    return LiveSession(
        one.decode(),
        moments.at(int(created)),
        moments.at(int(seen)),
        address.decode(),
        agent.decode("utf-8", "replace"),
    )
