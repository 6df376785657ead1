"""AI calls must not harm the operator or others: free answers, long bodies without charge, a blocked server, leaked
account details."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from time import process_time
from typing import Any

import pytest

from handlers.ai import call
from handlers.ai.call import Call
from handlers.ai.errors import envelope
from handlers.core.site import Site
from observability.metrics.measures import Measures
from outbound.ai.echo import echo_model
from outbound.ai.events import EventReader, StreamEvent
from outbound.ai.exchange.messages import SameMessages
from outbound.ai.tokens import count
from store.lifetimes import AI
from store.results import Caller
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import USAGE, Plan, ScriptedUpstream, error, message
from tests.support.store.ai_spender import (
    PATIENT,
    SDK,
    SHORT,
    Spender,
    both_ways,
    cost,
    events_in,
    hurry,
    question,
    session_of,
)
from tests.support.store.credit_spender import Spender as OnTheStore
from tests.support.store.second_factors import shown
from tests.support.store.world import VISITOR, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

LONG = 40_000
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}


@pytest.fixture
def site(ai_site: Site) -> Site:
    return ai_site


@both_ways
async def test_an_answer_ended_by_a_stop_sequence_is_charged(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    reply = message(stop_reason="stop_sequence", stop_sequence="YES", usage={"input_tokens": 25, "output_tokens": 4})
    reply["content"] = []
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**reply, "usage": {"input_tokens": 25}}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "stop_sequence", "stop_sequence": "YES"},
            "usage": {"output_tokens": 4},
        },
        {"type": "message_stop"},
    ]
    upstream.plan = Plan(reply, events=events)
    assert (await spender.ask(question(stream=stream, stop_sequences=["YES", "NO"]))).code == 200
    assert await spender.charged() == [cost(25, 4)]


async def test_a_stream_cut_by_a_timeout_is_charged_for_what_arrived(
    service: Service, site: Site, upstream: ScriptedUpstream
) -> None:
    hurry(site, replace(SHORT, first_byte=5, between_events=5, total=0.5))
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(5)
    upstream.plan = Plan(gate=gate)
    events = events_in((await spender.ask(question(stream=True))).body)
    assert events[-1]["error"]["type"] == "timeout_error"
    assert "was charged" in events[-1]["error"]["message"]
    (charged,) = await spender.charged()
    assert cost(USAGE["input_tokens"], 1) <= charged < cost(USAGE["input_tokens"], USAGE["output_tokens"])


async def test_a_stream_without_a_message_delta_does_not_end_like_a_whole_one(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    begun: list[Any] = [{"type": "message_start", "message": message()}, DELTA]
    upstream.plan = Plan(events=[*begun, {"type": "message_stop"}])
    names = [event["type"] for event in events_in((await spender.ask(question(stream=True))).body)]
    assert names == ["message_start", "content_block_delta", "error"]
    assert await spender.charged() == [cost(25, count("word "))]


class Swallowing:
    """A client that reads everything, so that nothing has to wait for it."""

    async def send(self, media_type: str, piece: bytes) -> None:
        """Reads it."""


async def test_a_fast_stream_does_not_block_the_event_loop(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    spender = await Spender.make(service)
    below = await on_the_store(spender)
    model = echo_model()
    request = {"messages": [{"role": "user", "content": "a " * 8_000}], "max_tokens": 8_000}

    async def turns_of_others() -> int:
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        hold = await below.hold(8_000, 8_000)
        deadline = asyncio.get_running_loop().time() + 60
        others = asyncio.ensure_future(take_turns())
        asked = SameMessages(request, model)
        made = Call(service.store.calls, hold, model, asked, deadline, Measures(), envelope)
        await made.stream(Swallowing())
        others.cancel()
        return turns

    with_pauses = await turns_of_others()
    monkeypatch.setattr(call, "BREATH", 3600.0)
    assert with_pauses > await turns_of_others() + 3


@pytest.mark.parametrize("path", [pytest.param(SDK, id="a call"), pytest.param(f"{SDK}/count_tokens", id="a count")])
async def test_a_long_body_is_read_only_after_authorization(service: Service, path: str) -> None:
    spender = await Spender.make(service)
    wrong = b'{"messages": [' + b"[]," * LONG + b"[]]}"
    assert (await spender.ask(wrong, path)).code == 400
    await service.web.revoke(spender.token)
    dead = await spender.ask(wrong, path)
    assert (dead.code, json_of(dead)["error"]["type"]) == (401, "authentication_error")


async def test_every_long_body_counts_in_the_window(service: Service) -> None:
    spender = await Spender.make(service)
    wrong = b" " * LONG
    for _ in range(AI.limit):
        assert (await spender.ask(wrong)).code == 400
    refused = await spender.ask(wrong)
    assert (refused.code, json_of(refused)["error"]) == (429, "rate_limited")


async def test_a_long_request_is_answered_like_any_other(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    text = "word " * LONG
    assert (await spender.ask(question(text))).code == 200
    assert json.loads(upstream.calls[0].request.body)["messages"][0]["content"] == text


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("Your credit balance is too low to access the API.", id="its balance"),
        pytest.param("This organization has been disabled.", id="its account"),
    ],
)
async def test_errors_of_the_operators_account_are_hidden_from_apps(
    service: Service, upstream: ScriptedUpstream, said: str
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(status=400, body=json.dumps(error("invalid_request_error", said)).encode())
    answer = await spender.ask()
    assert (answer.code, json_of(answer)["error"]) == (502, "upstream_error")
    assert said not in answer.body.decode()
    assert await spender.charged() == []


async def test_a_hold_outlives_the_longest_call(service: Service, site: Site, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(gate=gate)
    waiting = asyncio.ensure_future(spender.ask(question(stream=True)))
    while not upstream.calls:
        await asyncio.sleep(0.01)
    seconds, _ = await service.store.client.time()
    (hold,) = (await spender.account()).holds
    assert hold.ends_at.timestamp() - seconds > PATIENT.total + site.hold_margin - 10
    for _ in range(100):
        gate.release()
    assert (await waiting).code == 200


async def test_a_disabled_app_is_not_listed(service: Service) -> None:
    reader = await Spender.make(service, "apps:read")
    other = await service.add_app("another-app")
    await service.store.tokens.mint(service.ada, await registered(service, other.client_id), ("profile",))
    assert [app["client_id"] for app in json_of(await reader.get("/apps"))["apps"]] == ["another-app"]
    await service.store.apps.update("another-app", status="disabled")
    assert json_of(await reader.get("/apps"))["apps"] == []


async def registered(service: Service, client_id: str) -> Any:
    found = await service.store.apps.find(client_id)
    assert found is not None
    return found


async def on_the_store(spender: Spender) -> OnTheStore:
    """The same app, a layer below."""
    registration = await registered(spender.service, spender.app.client_id)
    token = spender.service.store.tokens.open_access(spender.token)
    assert token is not None
    return OnTheStore(spender.service.store, Caller.of(token, registration.scopes))


async def test_a_spend_limit_for_three_calls_allows_three(service: Service) -> None:
    below = await on_the_store(await Spender.make(service))
    session = await session_of(service)
    await shown(service.store, session)
    await service.store.credits.set_spend_limit(session, service.web.client_id, 30, VISITOR)
    found = [await refusal_of(below.ask(10, 0)) for _ in range(5)]
    assert found == [None, None, None, "app_spend_limit", "app_spend_limit"]


def test_many_events_in_one_piece_are_all_read() -> None:
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    assert len(list(EventReader().feed(ping * 20_000))) == 20_000
    reader = EventReader()
    whole = b'data: {"type": "ping", "long": "' + b"x" * 50_000 + b'"}\n\n'
    found = [event for at in range(0, len(whole), 100) for event in reader.feed(whole[at : at + 100])]
    assert len(found) == 1


def test_a_large_event_in_small_pieces_is_read_in_linear_time() -> None:
    reader, began = EventReader(most_bytes=8 * 2**20), process_time()
    whole = b'data: {"type": "ping", "long": "' + b"x" * 4 * 2**20 + b'"}\n\n'
    found: list[StreamEvent] = []
    for at in range(0, len(whole), 64):
        found += reader.feed(whole[at : at + 64])
        assert process_time() - began < 3, "each piece copies all before it"
    assert len(found) == 1
