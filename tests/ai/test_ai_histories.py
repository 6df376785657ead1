"""AI calls compared with a model of their cost: any reply, cut by anybody at any place. SPEC 4.6."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tornado.iostream import StreamClosedError

from handlers.ai.call import Call
from handlers.ai.connection import ClientGone
from handlers.ai.errors import envelope
from observability.metrics.measures import Measures
from outbound.ai.events import StreamEvent
from outbound.ai.exchange.messages import SameMessages
from outbound.ai.failure import UpstreamFailed
from outbound.ai.health import Health
from outbound.ai.models import Asker, Model, Timeouts
from outbound.ai.tokens import count, count_request
from store.credits.prices import Price
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.refused import Refused
from store.wiring import Store
from tests.support.store.credit_spender import PER, Spender, a_world, cost

RING = Keys(KeyRing.parse(KeyRing.generate(1)))
QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "What is the first sentence of this book?"}]}
COUNTED = count_request(QUESTION)
HELD_INPUT, HELD_OUTPUT = 60, 40
KINDS = Price("kinds", PER, PER, PER // 10, PER * 5 // 4, PER * 2)
HELD = HELD_INPUT * 2 + HELD_OUTPUT
"""The hold covers the dearest kind of input."""


@dataclass
class History:
    """What happens to a call. The server answers 200 or not, says a word for each of `reports`, the output tokens that
    it reports behind the word (None: no report), then ends as `ending` says. The app hangs up before word `leaves`,
    at -1 before the server answers; None: it stays. `cached` are tokens read from a cache, written to one, and written
    to one for an hour."""

    stream: bool
    keyed: bool
    accepted: bool
    reports: list[int | None]
    ending: str
    leaves: int | None
    input: int | None
    cached: tuple[int, int, int] = (0, 0, 0)

    @property
    def left(self) -> bool:
        """Whether the app ends the call by hanging up."""
        return self.stream and not self.keyed and self.leaves is not None and self.leaves < len(self.reports)

    def cost(self) -> int:
        """The rule: refused calls are free, complete ones cost what they report, others their input and the higher
        count of their output; never more than was held."""
        if not self.accepted or self.ending == "refused":
            return 0
        # Who hangs up before the answer pays what is on its way by then, which here is all of it.
        reported = self.reports[: self.leaves] if self.left and self.leaves != -1 else self.reports
        figures = [one for one in reported if one is not None]
        received = len(reported) * count("word")
        highest = max(figures, default=0)
        complete = self.ending == "complete" and not self.left
        if not self.stream and not complete:  # the reply can't be read, so its bytes count
            return min(COUNTED + min(received, HELD_OUTPUT), HELD)
        output = highest if complete and figures else max(highest, received)
        used = (COUNTED, output) if self.input is None else (self.input, output, *self.cached)
        return min(cost(KINDS, *used), HELD)

    def report(self) -> dict[str, Any]:
        """The report of the input."""
        read, write, hour = self.cached
        parts = {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": hour}
        written = {"cache_creation_input_tokens": write + hour, "cache_creation": parts}
        return {"input_tokens": self.input, "cache_read_input_tokens": read, **(written if write or hour else {})}


@dataclass
class Server:
    """Runs a history."""

    history: History
    call: Call = field(init=False)
    health: Health = field(default_factory=Health)
    name = "acting"
    url = ""
    limits = Timeouts()

    def leave_at(self, place: int) -> None:
        """The app hangs up here, if it does."""
        if self.history.leaves == place:
            self.call.hang_up()

    def begin(self, asker: Asker) -> None:
        """The server answers."""
        self.leave_at(-1)
        if not self.history.accepted:
            raise UpstreamFailed("upstream_error", "status 500")
        asker.accept()
        if self.history.ending == "refused":
            asker.refuse()
            raise UpstreamFailed("overloaded", "an error in place of a reply")

    def usage(self, output: int | None) -> dict[str, Any]:
        """A report."""
        return {} if output is None else {"usage": {"output_tokens": output}}

    async def complete(self, model: Model, request: Mapping[str, Any], asker: Asker) -> dict[str, Any]:
        """A whole reply; nothing comes of it before its end."""
        self.begin(asker)
        asker.receive(body := bytearray())
        for number in range(len(self.history.reports)):
            self.leave_at(number)
            body += b" word"
            await asyncio.sleep(0)
        if self.history.ending == "broken":
            raise UpstreamFailed("upstream_error", "cut off")
        figures = [one for one in self.history.reports if one is not None]
        usage = {**self.history.report(), **({"output_tokens": max(figures)} if figures else {})}
        return {"content": [{"type": "text", "text": "word"} for _ in self.history.reports], "usage": usage}

    async def stream(self, model: Model, request: Mapping[str, Any], asker: Asker) -> AsyncGenerator[StreamEvent]:
        """The same word by word, with a report after each."""
        self.begin(asker)
        begun = {"usage": {**self.history.report(), "output_tokens": 1}}
        yield StreamEvent("message_start", {"type": "message_start", "message": begun})
        for number, output in enumerate(self.history.reports):
            self.leave_at(number)
            await asyncio.sleep(0)
            word = {"type": "text_delta", "text": "word"}
            yield StreamEvent("content_block_delta", {"type": "content_block_delta", "delta": word})
            yield StreamEvent("message_delta", {"type": "message_delta", "delta": {}, **self.usage(output)})
        if self.history.ending == "broken":
            raise UpstreamFailed("upstream_error", "the stream broke")
        yield StreamEvent("message_delta", {"type": "message_delta", "delta": {}})
        yield StreamEvent("message_stop", {"type": "message_stop"})

    async def count_tokens(self, model: Model, request: Mapping[str, Any]) -> int:
        """Nobody asks."""
        raise NotImplementedError

    def most_input(self, model: Model, request: Mapping[str, Any], size: int) -> int:
        """Nobody asks."""
        raise NotImplementedError

    async def close(self) -> None:
        """Has nothing open."""

    async def send(self, media_type: str, piece: bytes) -> None:
        """Passes a piece to the app, until the app hangs up."""
        if self.call._gone:
            raise StreamClosedError


async def charged(history: History) -> tuple[int, bool]:
    """The cost of a history, and whether anything is still held."""
    store = Store(await connect("memory"), RING, PasswordHasher(8192, 1), session_idle=10**9, session_lifetime=10**9)
    try:
        world = await a_world(store)
        await store.credits.grant(world.user, 10**6)
        app = await Spender.make(world)
        hold = await app.hold(HELD_INPUT, HELD_OUTPUT, price=KINDS, key="k" if history.keyed else None)
        server = Server(history)
        always = ((datetime(2026, 1, 1, tzinfo=UTC), KINDS),)
        model = Model("acting", "Acting", cast(Any, server), "acting", 1000, 1000, always)
        deadline = asyncio.get_running_loop().time() + 60
        asked = SameMessages({**QUESTION, "max_tokens": HELD_OUTPUT}, model)
        server.call = Call(store.calls, hold, model, asked, deadline, Measures(), envelope)
        with suppress(Refused, ClientGone):
            await (server.call.stream(server) if history.stream else server.call.reply())
        account = await store.credits.show(world.user)
        assert len([entry for entry in account.entries if entry.kind == "charge"]) <= 1
        return 10**6 - account.paid, bool(account.holds)
    finally:
        await store.close()


histories = st.builds(
    History,
    stream=st.booleans(),
    keyed=st.booleans(),
    accepted=st.integers(0, 5).map(bool),
    reports=st.lists(st.sampled_from([None, None, 0, 1, 5, 30, 2**53]), max_size=4),
    ending=st.sampled_from(["complete", "complete", "broken", "refused"]),
    leaves=st.one_of(st.none(), st.integers(-1, 5)),
    input=st.sampled_from([None, 0, 7, 25, 10**6]),
    cached=st.sampled_from([(0, 0, 0), (0, 0, 0), (9, 0, 0), (13, 5, 0), (3, 7, 11), (0, 0, 6), (10**9, 1, 2**53)]),
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
@example(History(True, False, True, [], "complete", -1, 25))
@example(History(True, False, True, [None, 5], "complete", -1, None))
@example(History(True, False, True, [None, None], "complete", 1, 25))
@example(History(False, False, True, [5], "complete", -1, 25))
@example(History(True, True, True, [None], "broken", 0, None))
def test_every_call_history_costs_what_the_rule_says(history: History) -> None:
    assert asyncio.run(charged(history)) == (history.cost(), False)
