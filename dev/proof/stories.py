"""What a worker does: as one app of one person it does what apps and people do, and some things wrong on purpose: a
code or refresh token from two sides at once, a revoked token, an old version twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dev.proof.apps import Backend
from dev.proof.history import Op
from dev.proof.people import App, Hand, Person, Tokens

PACE = 0.3
"""Seconds between two steps of a worker, which has its own rate limits."""
NAMES = tuple(f"d{number}" for number in range(6))
TRIES = 4


class Worker(Backend):
    """One app of one person. `held` is every token it ever had, `tokens` the ones in use."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tokens: Tokens | None = None
        self.held: list[Tokens] = []
        self.etags: dict[str, int] = {}
        self.signed_out: list[tuple[str, str]] = []
        self.new_people: list[str] = []
        self._limited = 0.0
        self._actions, self._weights = zip(*self._all().items(), strict=True)
        self._endings = (self.remove, self.give_back_access, self.give_back_all, self.disconnect_app, self.leave)

    def _all(self) -> dict[Callable[[Tokens], Awaitable[Any]], float]:
        """The things that it does with tokens, and how often."""
        return {
            self.rotate: 12,
            self.rotate_twice_at_once: 2,
            self.replay: 2,
            self.write: 16,
            self.write_twice_at_once: 3,
            self.read: 14,
            self.remove: 4,
            self.listing: 3,
            self.impatience: 3,
            self.userinfo: 8,
            self.balance: 4,
            self.call_model: 2.5,
            self.call_with_key: 2.5,
            self.stream: 2,
            self.stream_and_hang_up: 1,
            self.pay: 3,
            self.look_at_page: 3,
            self.look_back: 5,
            self.give_back_access: 2,
            self.give_back_all: 1.5,
            self.disconnect_app: 1.5,
            self.leave: 1.5,
            self.newcomer: 0.5,
        }

    async def work(self, done: asyncio.Event) -> None:
        """Takes step after step until the end."""
        while not done.is_set():
            await self.step()
            await self.pause(PACE)
            if self._limited > self.stage.now():
                await asyncio.sleep(1.0)

    async def step(self) -> None:
        """Signs in, connects, or uses what it has."""
        ending = self.stage.clients.ending
        if ending and self.new_people:
            await self.give_up(self.new_people.pop())
        elif not self.session:
            self._watch(await self.sign_in())
        elif self.tokens is None or not self.tokens.live:
            await self.connect()
        else:
            (action,) = self.dice.choices(self._actions, self._weights)
            await (self.dice.choice(self._endings) if ending else action)(self.tokens)

    def _watch(self, op: Op) -> Op:
        """Slows down after a rate limit; forgets tokens and sessions that were refused."""
        if op.status == 429:
            self._limited = self.stage.now() + 3
        if op.status == 401 and op.error == "login_required":
            self.session = ""
        elif op.status == 401 and self.tokens is not None and op.args.get("family") == self.tokens.family:
            self.tokens = None
        return op

    # Tokens.

    async def connect(self) -> None:
        """Consent, and the exchange of the code; sometimes from two sides at once, or once more afterwards."""
        op, tokens = await self.consent()
        self._watch(op)
        if tokens is None:
            return
        self.held.append(tokens)
        way = self.dice.random()
        if way < 0.1:
            ops = list(await asyncio.gather(self.exchange(tokens, 0), self.exchange(tokens, 1)))
        elif way < 0.15:
            ops = [await self.exchange(tokens), await self.exchange(tokens)]
        else:
            ops = [await self.exchange(tokens)]
            if ops[0].unknown:  # an app without an answer tries again
                await self.pause(PACE)
                ops.append(await self.exchange(tokens))
        if any(op.refused and op.sent for op in ops) and tokens.live:
            await self.look_at(tokens)
        elif tokens.live:
            self.tokens = tokens

    async def rotate(self, tokens: Tokens) -> None:
        """Uses the refresh token, and again if there was no answer. A refused token is dropped."""
        for _ in range(TRIES):
            op = self._watch(await self.refresh(tokens, tokens.generation))
            if not op.unknown and op.sent:
                break
            await self.pause(PACE)
        if op.refused and op.status == 400:
            self.tokens = None

    async def rotate_twice_at_once(self, tokens: Tokens) -> None:
        """Presents the same refresh token to two servers."""
        generation = tokens.generation
        await asyncio.gather(self.refresh(tokens, generation, 0), self.refresh(tokens, generation, 1))
        self.tokens = None
        await self.look_at(tokens)

    async def replay(self, tokens: Tokens) -> None:
        """Presents a refresh token from two rotations ago, as a thief would, and checks that its family is dead."""
        if tokens.generation >= 2:
            op = await self.refresh(tokens, tokens.generation - 2)
            if op.refused and op.status == 400:
                self.tokens = None
                await self.look_at(tokens)

    async def look_at(self, tokens: Tokens) -> None:
        """Calls with a token, live or not."""
        await self.userinfo(tokens, generation=self.dice.choice(list(tokens.access)))

    async def look_back(self, tokens: Tokens) -> None:
        """Calls with an earlier token or session."""
        if self.signed_out and self.dice.random() < 0.3:
            await self.page(*self.dice.choice(self.signed_out))
            return
        old = [one for one in self.held if one.live]
        await self.look_at(self.dice.choice(old))

    async def give_back_access(self, tokens: Tokens) -> None:
        """Revokes the access token."""
        op = self._watch(await self.revoke(tokens, refresh=False))
        if op.acked:
            await self.userinfo(tokens)
            await self.rotate(tokens)

    async def give_back_all(self, tokens: Tokens) -> None:
        """Revokes the refresh token, and again if there was no answer."""
        for _ in range(TRIES):
            op = await self.revoke(tokens, refresh=True)
            if op.acked:
                self.tokens = None
                await self.look_at(tokens)
                return
            await self.pause(PACE)

    async def disconnect_app(self, tokens: Tokens) -> None:
        """The person disconnects the app."""
        op = self._watch(await self.disconnect())
        if op.acked:
            self.tokens = None
            await self.look_at(tokens)

    async def leave(self, tokens: Tokens) -> None:
        """Signs out and checks the session."""
        session, cookie = self.session, self.cookies.get("latchkey_session", "")
        op = await self.sign_out()
        if op.acked:
            self.signed_out.append((session, cookie))
            await self.page(session, cookie)

    async def look_at_page(self, tokens: Tokens) -> None:
        """Opens a page of the account."""
        self._watch(await self.page(self.session, self.cookies.get("latchkey_session", "")))

    async def newcomer(self, tokens: Tokens) -> None:
        """Signs up a new person."""
        person = Person(f"new-{self.stage.recorder.number()}@example.com")
        hand = Hand(self.stage, person, App("", None), self.name, self.dice)
        hand.address = f"198.51.100.{self.dice.randrange(1, 255)}"
        op = await hand.sign_up()
        if op.acked:
            self.new_people.append(person.email)

    async def give_up(self, email: str) -> None:
        """Deletes the account of a person who signed up."""
        hand = Hand(self.stage, Person(email), App("", None), self.name, self.dice)
        hand.address = f"198.51.100.{self.dice.randrange(1, 255)}"
        if (await hand.sign_in()).acked:
            await hand.erase()

    # Documents.

    async def write(self, tokens: Tokens) -> None:
        """Writes a document, half of the time on condition of the known version."""
        name = self.dice.choice(NAMES)
        condition = str(self.etags[name]) if name in self.etags and self.dice.random() < 0.5 else ""
        op = self._watch(await self.put(tokens, name, condition))
        self._note(name, op)

    async def write_twice_at_once(self, tokens: Tokens) -> None:
        """Asks two servers to replace the same version."""
        name = self.dice.choice(NAMES)
        condition = str(self.etags[name]) if name in self.etags else "*"
        both = [self.put(tokens, name, condition, server=server) for server in (0, 1)]
        for op in await asyncio.gather(*both):
            self._note(name, self._watch(op))

    async def read(self, tokens: Tokens) -> None:
        """Reads a document."""
        name = self.dice.choice(NAMES)
        op = self._watch(await self.get(tokens, name))
        if op.result.get("absent"):
            self.etags.pop(name, None)
        self._note(name, op)

    async def remove(self, tokens: Tokens) -> None:
        """Deletes a document."""
        name = self.dice.choice(NAMES)
        self._watch(await self.delete(tokens, name))
        self.etags.pop(name, None)

    async def impatience(self, tokens: Tokens) -> None:
        """Writes or reads, and hangs up before an answer is possible."""
        patience = self.dice.uniform(0.002, 0.03)
        name = self.dice.choice(NAMES)
        if self.dice.random() < 0.7:
            await self.put(tokens, name, patience=patience)
        else:
            await self.get(tokens, name, patience=patience)
        self.etags.pop(name, None)

    def _note(self, name: str, op: Op) -> None:
        if op.acked and "etag" in op.result:
            self.etags[name] = max(op.result["etag"], self.etags.get(name, 0))
        elif op.status == 412:
            self.etags.pop(name, None)

    # Money.

    async def call_model(self, tokens: Tokens) -> None:
        """An AI call that is not repeated."""
        if number := self.person.next_call(self.stage.calls):
            self._watch(await self.ask(tokens, number, stream=False))

    async def call_with_key(self, tokens: Tokens) -> None:
        """An AI call with an idempotency key, repeated until there is an answer."""
        if number := self.person.next_call(self.stage.calls):
            stream = self.dice.random() < 0.3
            for _ in range(TRIES):
                op = self._watch(await self.ask(tokens, number, stream=stream, key=f"{self.name}-{number}"))
                if op.acked or (op.refused and op.status not in (0, 409)):
                    return
                await self.pause(2 * PACE)

    async def stream(self, tokens: Tokens) -> None:
        """A stream, read to its end."""
        if number := self.person.next_call(self.stage.calls):
            self._watch(await self.ask(tokens, number, stream=True))

    async def stream_and_hang_up(self, tokens: Tokens) -> None:
        """A stream that the app reads in part: the charge is for the input and the output so far."""
        if number := self.person.next_call(self.stage.calls):
            self._watch(await self.ask(tokens, number, stream=True, most=self.dice.randrange(100, 3000)))

    async def pay(self, tokens: Tokens) -> None:
        """A payment for the person, repeated under its key until there is an answer."""
        self.person.top_ups += 1
        key, amount = f"{self.person.email}-{self.person.top_ups}", self.dice.randrange(1, 10_000)
        for _ in range(TRIES):
            op = await self.top_up(key, amount)
            if op.acked:
                return
            await self.pause(PACE)
