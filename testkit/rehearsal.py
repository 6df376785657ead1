"""The state that tests of apps control: the person's answers, people, apps, tokens, the clock, and a store that can be
away or emptied."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from handlers.core.site import Site
from outbound.webhooks.poster import WebhookSender
from outbound.webhooks.posting import WHOLE_SECONDS
from store import keys, lifetimes
from store.accounts.signin.sessions import SecondStepNeeded, Session, SignedIn
from store.accounts.signin.totp import STEP, TotpSecrets, code_at
from store.apps.registration import Registration
from store.crypto.jose.private import OURS
from store.errors import StartupError, wrapped
from store.names import SCOPES, normalise_email
from store.refused import Refused, SignedOut
from store.results import Visitor
from store.seed.seeding import seed
from store.wiring import Store
from testkit.clock import LATEST, Clock, pass_time
from testkit.keys import KeyBox

PER_PAIR = ("data-read", "data-write", "data-list", "credits-read", "apps-read", "ai-models")
PER_PERSON = ("oauth", "authorize", "ai")
TELL_SECONDS = WHOLE_SECONDS + 1
"""How long a travel waits for posts in progress: as long as a post may take. The caller waits for longer."""
LEAVE_SECONDS = 1.0
"""How long a reset waits for posts in progress."""
SCANNED = 10_000
"""Keys that one step scans."""
VISITOR = Visitor("127.0.0.1", "A test")
Decides = Literal["allow", "deny", "ask"]


@dataclass(frozen=True, slots=True)
class AutoConsent:
    """The person at the browser and their answer: they allow all scopes, or only `scopes`; they deny; or (`ask`) the
    pages are shown. `spend_limit` is as in `Authorizations.decide`."""

    email: str = ""
    decides: Decides = "ask"
    scopes: tuple[str, ...] | None = None
    spend_limit: int | Literal["none", ""] = ""


class Rehearsal:
    """A server that a test controls. At the start and after a reset, the person `allows` is at the browser and allows
    everything; if it is empty, nobody is. Raises StartupError for an invalid address."""

    def __init__(self, site: Site, webhooks: WebhookSender, seed_file: Path | None, allows: str) -> None:
        self.store: Store = site.store
        self.site = site
        self.clock = Clock()
        self._webhooks = webhooks
        webhooks.takes_all = True  # a travel would overtake events that were put back
        self._posts = site.posts_events
        self._changing = asyncio.Lock()
        self._seed_file = seed_file
        try:
            self._first = self.answer = AutoConsent(normalise_email(allows), "allow") if allows else AutoConsent()
        except ValueError as error:
            raise StartupError(f"auto_consent: {error}") from None
        self._sessions: dict[str, Session] = {}
        self._making: dict[str, asyncio.Lock] = {}
        self.keys = KeyBox()

    async def user(self, email: str) -> str:
        """The user id of the person with this address, who is made if missing. Raises Refused."""
        email = normalise_email(email)
        # Simultaneous requests that name the same new person make only one.
        async with self.alone_with(email):
            credentials = await self.store.people.credentials(email)
            if credentials is not None:
                return credentials.user
            return await self.person(email, email.partition("@")[0], secrets.token_urlsafe(12))

    def alone_with(self, name: str) -> asyncio.Lock:
        """The lock for one person, by e-mail address or user id."""
        return self._making.setdefault(name, asyncio.Lock())

    async def person(self, email: str, name: str, password: str, groups: Sequence[str] = ()) -> str:
        """Makes a person with a confirmed address, and returns the user id. Raises Refused."""
        return await self.store.people.create(
            email, name, password, verified=True, event="created_by_operator", visitor=VISITOR, groups=groups
        )

    async def session(self, email: str, *, again: bool = False) -> Session:
        """A live session of this person, who is made if missing; with `again` one that begins now. Raises Refused for a
        person who signs in with a passkey only a browser has."""
        try:
            return await self.signed_in(email, again=again)
        except SecondStepNeeded:
            raise Refused("access_denied", "Nobody can be played who needs a passkey: answer ask.") from None

    async def signed_in(self, email: str, *, again: bool = False) -> Session:
        """As `session`. Raises SecondStepNeeded if the person needs a passkey."""
        user = await self.user(email)
        before = self._sessions.get(user)
        session = None if again else before
        if session is not None:
            try:
                await self.store.sessions.profile(session)
            except SignedOut:  # for example, the session expired
                session = None
        if session is None:
            credentials = await self.store.people.credentials(normalise_email(email))
            if credentials is None:
                raise Refused("not_found", "No such person.")
            try:
                started = await self.store.sessions.start(credentials, VISITOR)
            except SecondStepNeeded as needed:
                started = await self._with_code(user, needed)
            session = self.store.sessions.open(started.cookie)
            if session is None:
                raise SignedOut
            self._sessions[user] = session
            if again and before is not None:
                # As in a browser: apps know the new session by the same `sid`, and hear of no end.
                await self.store.sessions.end(before, VISITOR, successor=session)
        return session

    async def _with_code(self, user: str, needed: SecondStepNeeded) -> SignedIn:
        """Finishes a sign-in with a code of the person's authenticator app. Raises `needed` if there is no such app."""
        half = self.store.second_step.open(needed.text)
        assert half is not None
        options = await self.store.second_step.options(half)
        if options.secret is None:
            raise needed
        step = options.now // STEP
        with wrapped():  # a code counts once, but a test signs in several times in one step
            await self.store.client.hset(keys.person(user)["factors"], "step", step - 1)
        code = code_at(TotpSecrets(self.store.keys).open(user, options.secret), step)
        return await self.store.second_step.with_code(half, code, VISITOR)

    async def sign_out(self, email: str) -> str:
        """Ends the session that `session` began, as the person would; every app that got an ID token in it gets a
        logout token. Returns the user id. Raises Refused for a person who was never played."""
        user = await self.user(email)
        session = self._sessions.pop(user, None)
        if session is None or not await self.store.sessions.end(session, VISITOR):
            raise Refused("not_found", "This person is not signed in by a test.")
        self._webhooks.wake()
        return user

    async def active_app(self, client_id: str) -> Registration:
        """The app, which must be active. Raises Refused("not_found")."""
        app = await self.store.apps.active(client_id)
        if app is None:
            raise Refused("not_found", "No such active app.")
        return app

    async def known_scopes(self) -> frozenset[str]:
        """Every scope there is: Latchkey's own and those of APIs."""
        return frozenset(SCOPES).union(*(api.scope_names() for api in await self.store.apis.list()))

    async def exhaust(self, email: str, group: str, client_id: str) -> int:
        """Uses up a rate limit, like a burst of requests. Returns the seconds until the next request is allowed. Raises
        Refused for an unknown group, or if a group of a person and an app has no app."""
        known = {one.name: one for one in vars(lifetimes).values() if isinstance(one, lifetimes.Group)}
        known |= {one.name: one for one in self.store.rates.all()}
        if group not in PER_PAIR + PER_PERSON:
            raise Refused("invalid_request", f"group is one of {', '.join(PER_PERSON + PER_PAIR)}.")
        if group in PER_PAIR:
            await self.active_app(client_id)
        window = keys.limit(await self.user(email), group, client_id if group in PER_PAIR else "")
        figures = {"limit": known[group].limit, "period": known[group].period}
        reply = await self.store.scripts.run("take_window", {"window": window}, **figures)
        while reply.word == "ok":
            reply = await self.store.scripts.run("take_window", {"window": window}, **figures)
        return reply.number("retry")

    async def travel(self, seconds: float) -> float:
        """Posts what is due, then moves the service's clock forward. Returns its time, in seconds since 1970. Raises
        Refused for a time after LATEST, StoreUnavailable."""
        async with self._changing:
            if self.clock.now() + seconds > LATEST:
                raise Refused("invalid_request", "Travel ends with the year 8999; reset returns to the present.")
            await self.store.app_stats.flush()  # counts so far belong to the day before the travel
            await self._sweep()
            if self._posts:
                # An event's retention and its lease both follow the store's clock.
                await self._webhooks.bring_out(TELL_SECONDS)
            await pass_time(self.store, self.clock, seconds)
            self.site.client_keys.age(seconds)
            self._forget()
            await self._sweep()
            self._webhooks.wake()
            return self.clock.now()

    def _forget(self) -> None:
        """Drops what this process keeps of the store for some time by the steady clock."""
        self.store.apps.forget()
        self.store.apis.forget()
        self.store.signing_keys.forget()
        for windows in (self.store.client_windows, self.store.introspection_windows):
            windows.allotments.clear()

    async def rotate(self, *, now: bool) -> list[str]:
        """Gives every signing key a successor, as the operator does: it signs in a day, or `now`. Returns the names of
        the successors."""
        await self.store.signing_keys.published()  # makes what nobody has needed so far
        rotated = [await self.store.signing_store.rotate(one, at_once=now) for one in OURS]
        return [listed.row.kid for listed, _ in rotated]

    async def _sweep(self) -> None:
        """Moves outgoing events from the shards that have any, a few out of thousands."""
        shards = set()
        with wrapped():
            for match in keys.outbox_keys("???").values():
                async for key in self.store.client.scan_iter(match=match, count=SCANNED):
                    shards.add(key[1:4].decode())
        await self.store.outbox.sweep(self.store.webhooks.wants, sorted(shards))

    def away(self, away: bool) -> None:
        """Takes the store away, so that everything that needs it is answered 503, or brings it back."""
        self._memory().connected = not away

    async def reset(self) -> None:
        """Returns to the state after a start: only the seed in the store, the real time, the first answer."""
        async with self._changing:
            self.away(False)
            await self._webhooks.leave_off(LEAVE_SECONDS)
            async with self.store.outbox.still():
                await self.store.client.flushall()
            self.clock.back_to_the_present()
            self._forget()
            self.site.client_keys.forget()
            self._sessions.clear()
            self._making.clear()
            self.answer = self._first
            await self.begin()
            if self._posts:
                self._webhooks.start()

    async def begin(self) -> None:
        """Does what a server does with an empty store."""
        await self.store.key_state.check(self.store.keys.ring)
        if self._seed_file:
            await seed(self.store, self._seed_file, base_url=self.site.base_url)

    def _memory(self) -> Any:
        return self.store.client.connection_pool.connection_kwargs["server"]
