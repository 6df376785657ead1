"""AI calls of every dialect on servers of both, compared with a model of their cost: whole or streamed, complete,
refused, broken off or left by the app at any event, with any report. SPEC 4.6."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from handlers.ai.call import Call
from handlers.ai.connection import ClientGone
from handlers.ai.errors import envelope, openai_envelope
from observability.metrics.measures import Measures
from outbound.ai.dialects.conversation import Thinking
from outbound.ai.events import StreamEvent
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.exchange.pairs import from_chat, from_messages, from_responses
from outbound.ai.failure import UpstreamFailed
from outbound.ai.models import Asker, Model
from outbound.ai.protocols import PROTOCOLS
from outbound.ai.tokens import count_request
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.refused import Refused
from store.wiring import Store
from tests.ai.test_ai_histories import HELD, HELD_INPUT, HELD_OUTPUT, KINDS, QUESTION, RING
from tests.ai.test_ai_histories import Server as ActingServer
from tests.support.http.openai_upstream import ChatPlan, ResponsesPlan, completion, item_of, response
from tests.support.http.upstream import Data, Plan, message
from tests.support.store.credit_spender import Spender, a_world, cost

GIVEN = 10**6
Report = tuple[int, int, int, int]
"""Tokens of input outside of a cache, read from one, and written to one; and of output."""


@dataclass(frozen=True)
class History:
    """What happens to a call of an app that speaks `door` to a server that speaks `dialect`. The server says `words`
    and reports `report` (None: nothing). `ending`: complete, broken before event `breaks`, an error in place of the
    answer, or refused. The app hangs up before event `leaves`, if it does. `thinking` is the operator's word on the
    model."""

    door: Literal["messages", "chat", "responses"]
    dialect: Literal["anthropic", "openai"]
    stream: bool
    keyed: bool
    thinking: Thinking
    words: int
    report: Report | None
    ending: Literal["complete", "broken", "error", "refused"]
    breaks: int
    leaves: int | None

    @property
    def plan(self) -> Plan:
        """The script of the server."""
        said = " ".join(["word"] * self.words)
        if self.dialect == "anthropic":
            return Plan(message(said, usage=self._in_messages()))
        if self.door == "responses":
            return ResponsesPlan(response(item_of(said), usage=self._in_openai("input", "output")))
        return ChatPlan(completion(said, usage=self._in_openai("prompt", "completion")))

    def _in_messages(self) -> Data:
        if self.report is None:
            return {}
        fresh, read, written, output = self.report
        cached = {"cache_read_input_tokens": read, "cache_creation_input_tokens": written}
        return {"input_tokens": fresh, **cached, "output_tokens": output}

    def _in_openai(self, whole: str, output: str) -> Data | None:
        if self.report is None:
            return None
        fresh, read, written, told = self.report
        details = {"cached_tokens": read, "cache_write_tokens": written}
        return {f"{whole}_tokens": fresh + read + written, f"{whole}_tokens_details": details, f"{output}_tokens": told}

    def events(self, asks: Any) -> list[StreamEvent]:
        """The events of the server's stream."""
        return list(PROTOCOLS[asks].reader().feed(b"".join(self.plan.stream())))

    def received(self, events: list[StreamEvent]) -> tuple[list[StreamEvent], bool]:
        """The events that arrive, and whether these are all."""
        stays = self.keyed or (self.dialect == "openai" and self.thinking != "none")
        ends = [self.breaks] if self.ending == "broken" else []
        ends += [self.leaves] if self.leaves is not None and not stays else []
        arrived = events[: min([*ends, len(events)])]
        return arrived, len(arrived) == len(events)

    def cost(self, exchange: ModelExchange) -> int:
        """The rule: a call that was not accepted is free. A complete one costs what its server reports. Any other costs
        the reported input, or our count of it, and the higher count of the output. Never more than was held."""
        if self.ending in ("error", "refused"):
            return 0
        counted = count_request(exchange.request)
        if not self.stream:
            if self.ending == "broken":  # nobody can read it, so its bytes count
                return min(cost(KINDS, counted, min(self.words, HELD_OUTPUT)), HELD)
            used = self.report or (counted, 0, 0, self.words)
        else:
            events, complete = self.received(self.events(exchange.asks))
            read, told = _reports(events)
            said = sum(_says(event.data) for event in events)
            fresh, cached, written = self.report[:3] if self.report and read else (counted, 0, 0)
            output = self.report[3] if self.report and told else 0
            used = (fresh, cached, written, output if complete and told else max(output, said))
        fresh, cached, written, output = used
        return min(cost(KINDS, fresh, output, cached, written), HELD)


def _reports(events: list[StreamEvent]) -> tuple[bool, bool]:
    """Whether events report the input, and the output."""
    usages = [event.data.get("usage") or {} for event in events]
    usages += [(event.data.get(name) or {}).get("usage") or {} for event in events for name in ("message", "response")]
    names = {name for usage in usages for name in usage}
    return bool(names & {"input_tokens", "prompt_tokens"}), bool(names & {"output_tokens", "completion_tokens"})


def _says(data: Mapping[str, Any]) -> int:
    """The words in an event."""
    if data.get("type") in ("content_block_delta", "response.output_text.delta"):
        return 1
    return sum(bool(choice["delta"].get("content")) for choice in data.get("choices", ()))


class Server(ActingServer):
    """Runs a history."""

    history: Any
    refuses_unknown = False

    @property
    def dialect(self) -> str:
        """The APIs that it speaks."""
        return str(self.history.dialect)

    def begin(self, asker: Asker) -> None:
        """The server answers."""
        if self.history.ending == "refused":
            raise UpstreamFailed("upstream_error", "status 500")
        asker.accept()
        if self.history.ending == "error":
            asker.refuse()
            raise UpstreamFailed("overloaded", "an error in place of a reply")

    async def complete(self, model: Model, request: Mapping[str, Any], asker: Asker) -> dict[str, Any]:
        """A whole reply; nothing comes of it before its end."""
        self.begin(asker)
        asker.receive(body := bytearray())
        self.leave_at(self.history.leaves)
        body += b" word" * self.history.words
        await asyncio.sleep(0)
        if self.history.ending == "broken":
            raise UpstreamFailed("upstream_error", "cut off")
        return dict(self.history.plan.reply)

    async def stream(self, model: Model, request: Mapping[str, Any], asker: Asker) -> AsyncGenerator[StreamEvent]:
        """The same event by event."""
        self.begin(asker)
        for number, event in enumerate(self.history.events(asker.dialect)):
            self.leave_at(number)
            await asyncio.sleep(0)
            if self.history.ending == "broken" and number == self.history.breaks:
                raise UpstreamFailed("upstream_error", "the stream broke")
            yield event


def exchange_of(history: History, model: Model) -> ModelExchange:
    """The call of the app."""
    body: Data = {"model": "acting", "stream": history.stream}
    if history.door == "messages":
        asked = {**QUESTION, "max_tokens": HELD_OUTPUT}
        return from_messages(asked, model, "", [], stream=history.stream)
    if history.door == "chat":
        return from_chat({**body, **QUESTION}, model, [])
    return from_responses({**body, "input": QUESTION["messages"]}, model, [])


async def run(history: History) -> tuple[int, int]:
    """What a history was charged, and what it costs by the rule. Asserts that the ledger's sum is the balance, that
    nothing is held, and that it has at most one charge."""
    store = Store(await connect("memory"), RING, PasswordHasher(8192, 1), session_idle=10**9, session_lifetime=10**9)
    try:
        world = await a_world(store)
        await store.credits.grant(world.user, GIVEN)
        app = await Spender.make(world)
        acted: Any = history
        server = Server(acted)
        always = ((datetime(2026, 1, 1, tzinfo=UTC), KINDS),)
        acting: Any = server
        model = Model("acting", "Acting", acting, "acting", 1000, 1000, always, thinking=history.thinking)
        exchange = exchange_of(history, model)
        hold = await app.hold(HELD_INPUT, HELD_OUTPUT, price=KINDS, key="k" if history.keyed else None)
        told = envelope if history.door == "messages" else openai_envelope
        deadline = asyncio.get_running_loop().time() + 60
        server.call = Call(store.calls, hold, model, exchange, deadline, Measures(), told)
        with suppress(Refused, ClientGone):
            await (server.call.stream(server) if history.stream else server.call.reply())
        account = await store.credits.show(world.user)
        charges = [-entry.amount for entry in account.entries if entry.kind == "charge"]
        assert len(charges) <= 1
        assert account.paid == account.opening + sum(entry.amount for entry in account.entries)
        assert (account.held, account.holds) == (0, ())
        assert GIVEN - account.paid == sum(charges)
        return sum(charges), history.cost(exchange_of(history, model))  # the call frees its own request
    finally:
        await store.close()


few = st.sampled_from([0, 1, 7, 40])
histories = st.builds(
    History,
    door=st.sampled_from(["messages", "chat", "responses"]),
    dialect=st.sampled_from(["anthropic", "openai"]),
    stream=st.sampled_from([True, True, False]),
    keyed=st.sampled_from([False, False, True]),
    thinking=st.sampled_from(["adaptive", "none"]),
    words=st.integers(1, 6),
    report=st.one_of(st.none(), st.tuples(few, few, few, st.sampled_from([0, 1, 5, 30, 10**6]))),
    ending=st.sampled_from(["complete", "complete", "broken", "broken", "error", "refused"]),
    breaks=st.integers(1, 9),
    leaves=st.one_of(st.none(), st.integers(1, 12)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
@example(History("chat", "openai", True, False, "adaptive", 3, (20, 5, 0, 30), "complete", 1, 2))
@example(History("chat", "openai", True, False, "none", 3, (20, 5, 0, 30), "complete", 1, 2))
@example(History("messages", "openai", True, False, "adaptive", 3, (20, 5, 0, 30), "complete", 1, 3))
@example(History("responses", "openai", True, True, "none", 3, (20, 5, 7, 10**6), "complete", 1, 2))
@example(History("responses", "anthropic", True, False, "none", 4, (1, 7, 7, 30), "broken", 5, None))
def test_every_history_in_any_dialect_costs_what_the_rule_says(history: History) -> None:
    charged, ruled = asyncio.run(run(history))
    assert charged == ruled
