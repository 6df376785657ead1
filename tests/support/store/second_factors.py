"""A person's authenticator apps, recovery codes, passkeys and identities elsewhere in a store: shortcuts for tests."""

from __future__ import annotations

from collections.abc import Awaitable

from store.accounts.identities import UpstreamIdentity
from store.accounts.signin.passkeys import RelyingParty, decode, options_for_new, options_for_use, read_answer
from store.accounts.signin.reauth import ReauthFailed
from store.accounts.signin.second_step import Half
from store.accounts.signin.sessions import SecondStepNeeded, Session
from store.accounts.signin.totp import STEP, TotpSecrets, code_at
from store.accounts.signin.upstream import Admission, Arrival, NewLink
from store.refused import Refused, SignedOut, Unproved
from store.wiring import Store
from tests.support.store.authenticator import Authenticator
from tests.support.store.world import PASSWORD, VISITOR, World

ORIGIN = "http://localhost:8080"
MARGIN = 2_000  # ms for a test to present the code that it asked for
RELYING_PARTY = RelyingParty("localhost", ORIGIN)


async def store_now(w: World) -> int:
    """The store's time in ms."""
    seconds, micros = await w.store.client.time()
    return int(seconds) * 1000 + int(micros) // 1000


async def is_live(world: World, session: Session) -> bool:
    return await outcome(world.store.sessions.profile(session)) == "in"


class App:
    """A person's authenticator app."""

    def __init__(self, world: World, sealed: str) -> None:
        self.world = world
        self.sealed = sealed
        self.secret = TotpSecrets(world.store.keys).open(world.user, decode(sealed))
        self.codes: list[str] = []

    @classmethod
    async def add(cls, world: World) -> App:
        """Sets the app up, with the code of the step before the present one."""
        await reauth_if_needed(world)
        app = cls(world, world.store.factors.new_secret(world.user))
        added = await world.store.factors.enable_totp(world.session, app.sealed, await app.code(-1), VISITOR)
        app.codes, world.undo = added.codes, added.undo
        world.codes = app.codes or world.codes
        return app

    async def code(self, beside: int = 0) -> str:
        """The code of the current step, or of one some steps away; of the next step if that is about to begin."""
        return code_at(self.secret, (await store_now(self.world) + MARGIN) // STEP + beside)


async def add_passkey(world: World, device: Authenticator | None = None) -> Authenticator:
    """Adds a passkey to the person."""
    await reauth_if_needed(world)
    device = device or Authenticator(ORIGIN)
    challenge = await world.store.factors.challenge(world.session)
    options = options_for_new(RELYING_PARTY, "Latchkey", world.user, world.email, "Ada", challenge, [])
    answer = read_answer(device.create(options))
    added = await world.store.factors.add_passkey(world.session, RELYING_PARTY, challenge, answer, "My phone", VISITOR)
    world.codes, world.undo = added.codes or world.codes, added.undo
    return device


async def reauth(world: World, code: str | None = None, password: str = PASSWORD) -> None:
    """Re-authenticates: with the password and, if there is a second step, a code; by default the last unused recovery
    code."""
    if code is None:
        code = world.codes.pop() if world.codes else ""
    cookie = await world.store.reauth.with_password(world.session, password, code, VISITOR)
    session = world.store.sessions.open(cookie)
    assert session is not None
    world.session = session


async def reauth_if_needed(world: World) -> None:
    """Re-authenticates as before a change."""
    if not (await world.store.factors.of(world.session)).proved:
        await reauth(world)


async def shown(store: Store, session: Session) -> None:
    """Acts as if the person had just re-authenticated, for tests of something else."""
    now = await store.apps.now()
    await store.client.hset(session.keys()["session"], mapping={"proved_at": now, "shown_at": now})


async def half_of(world: World, password: str = PASSWORD) -> Half:
    """A sign-in that has reached its second step."""
    credentials = await world.store.people.verify(world.email, password)
    assert credentials is not None
    try:
        await world.store.sessions.start(credentials, VISITOR)
    except SecondStepNeeded as needed:
        half = world.store.second_step.open(needed.text)
        assert half is not None
        return half
    raise AssertionError("the password was enough")


async def use_passkey(world: World, device: Authenticator, half: Half | None = None, **lies: object) -> str:
    """Signs in with a passkey; returns the cookie."""
    challenge = await world.store.second_step.challenge(half)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge), **lies))
    return (await world.store.second_step.with_passkey(half, RELYING_PARTY, challenge, answer, VISITOR)).cookie


async def outcome(call: Awaitable[object]) -> str:
    """`in`, the missing factor, the code of a refusal, `over` or `unproved`."""
    try:
        await call
    except ReauthFailed as wrong:
        return wrong.part
    except Refused as refused:
        return refused.code
    except SignedOut:
        return "over"
    except Unproved:
        return "unproved"
    return "in"


ISSUER = "https://id.example"
TRUSTED = Admission(by_address=True, create=True)
KNOWN_ONLY = Admission()


def arrival(subject: str, email: str = "", method: str = "up") -> Arrival:
    """Somebody with this subject, whose address the other server verified."""
    return Arrival(UpstreamIdentity(ISSUER, subject), email, "Ada", email or subject, method)


async def link(world: World, subject: str = "", email: str = "") -> NewLink:
    """Links an identity to the person's account, after a re-authentication."""
    await reauth_if_needed(world)
    return await world.store.upstream.link(world.session, arrival(subject or f"sub-{world.user}", email), VISITOR)
