"""Successful AI calls: the upstream request, the answer, and the exact charge. SPEC 2.4, 4.6."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.site import Site
from outbound.ai.tokens import count
from tests.support.http.driver import Service, json_of, send_raw
from tests.support.http.upstream import PING, TEXT, VENDOR_MODEL, Data, Plan, ScriptedUpstream, events_of, message
from tests.support.store.ai_spender import (
    MODEL,
    NATIVE,
    PLENTY,
    OpenStream,
    Spender,
    assert_error,
    both_ways,
    cost,
    events_in,
    mint,
    question,
    text_of,
)

pytestmark = pytest.mark.gen_test(timeout=20)

TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"word": "universally", "times": 3}}
THINKING = {"type": "thinking", "thinking": "Which book is that?", "signature": "c2lnbmF0dXJl"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@pytest.mark.spec("2.4.credits-spend")
@pytest.mark.spec("4.6.ai")
@pytest.mark.spec("9.v1")
async def test_a_plain_reply_reports_its_cost(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service, amount=10_000)
    response = await spender.ask()
    assert response.code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-RateLimit-Limit"] == "20"
    assert response.headers["X-RateLimit-Remaining"] == "19"
    assert response.headers["X-RateLimit-Reset"].isdigit()
    charge = cost(25, 31)
    expected = {**message(), "model": MODEL, "credits": {"charged": charge, "remaining": 10_000 - charge}}
    assert json_of(response) == expected
    assert await spender.charged() == [charge]
    account = await spender.account()
    assert (account.paid, account.spendable) == (10_000 - charge, 10_000 - charge)
    entry = account.entries[0]
    assert (entry.client, entry.model, entry.price_version) == (spender.app.client_id, MODEL, "v3")
    assert (entry.input_tokens, entry.output_tokens, entry.paid) == (25, 31, account.paid)
    assert upstream.calls[0].question == {**question(), "model": VENDOR_MODEL, "stream": False}


@pytest.mark.spec("2.4.credits-spend")
@pytest.mark.spec("4.6.ai")
async def test_a_streams_last_delta_reports_its_cost(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service, amount=10_000)
    response = await spender.ask(question(stream=True))
    assert response.code == 200
    assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response.headers["X-Accel-Buffering"] == "no"
    assert response.headers["X-RateLimit-Remaining"] == "19"
    charge = cost(25, 31)
    expected = events_of(message())
    expected[0]["message"]["model"] = MODEL
    expected[-2]["credits"] = {"charged": charge, "remaining": 10_000 - charge}
    assert events_in(response.body) == expected
    assert text_of(expected) == TEXT
    assert await spender.charged() == [charge]
    assert upstream.calls[0].question == {**question(), "model": VENDOR_MODEL, "stream": True}


USAGES = [
    # id, usage, tokens that are charged: None for what is counted here, "all" for all that was held
    pytest.param({"input_tokens": 7, "output_tokens": 1}, (7, 1), id="small"),
    pytest.param(
        {"input_tokens": 7, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 9},
        (327, 9),
        id="with a cache without prices of its own",
    ),
    pytest.param(
        {"input_tokens": 7, "cache_creation_input_tokens": None, "cache_read_input_tokens": "many", "output_tokens": 9},
        (7, 9),
        id="with a cache that says nothing",
    ),
    pytest.param({"input_tokens": 10**9, "output_tokens": 10**9}, "all", id="more than was held"),
    pytest.param({"input_tokens": 10**40, "output_tokens": 10**300}, "all", id="absurd"),
    pytest.param({"input_tokens": 0, "output_tokens": 31}, (0, 31), id="no input"),
    pytest.param({"input_tokens": -25, "output_tokens": -31}, None, id="negative"),
    pytest.param({"input_tokens": "25", "output_tokens": "31"}, None, id="strings"),
    pytest.param({"input_tokens": 25.0, "output_tokens": True}, None, id="a float and a truth value"),
    pytest.param({"input_tokens": [25], "output_tokens": {"a": 1}}, None, id="lists and objects"),
    pytest.param({}, None, id="an empty report"),
    pytest.param(None, None, id="null"),
    pytest.param("25/31", None, id="no object"),
]


@both_ways
@pytest.mark.parametrize(("usage", "charged"), USAGES)
async def test_the_charge_is_the_price_of_the_reported_usage(
    service: Service, upstream: ScriptedUpstream, usage: Any, charged: Any, stream: bool
) -> None:
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(message(usage=usage), gate=gate if stream else None)
    if not stream:
        response = await spender.ask()
        charge = json_of(response)["credits"]["charged"]
    else:
        opened = await OpenStream.open(spender)
        while not upstream.calls:
            await asyncio.sleep(0)
        held = (await spender.account()).held
        for _ in range(100):
            gate.release()
        charge = (await (await opened.begin()).rest())[-2]["credits"]["charged"]
        opened.cut()
    if charged == "all":
        size = len(json.dumps({"messages": question()["messages"]}, separators=(",", ":")))
        assert charge == cost(size + 1024, 100)
    else:
        # Where nobody says better a word is a token or more, the names of members too.
        assert charge == cost(*(charged or (11, 20)))
    assert not stream or charge <= held
    assert await spender.charged() == [charge]


async def test_output_tokens_reported_only_at_the_start_count(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    events = events_of(message())
    events[0]["message"]["usage"] = {"input_tokens": 25, "output_tokens": 1}
    del events[-2]["usage"]
    upstream.plan = Plan(events=events)
    assert (await spender.ask(question(stream=True))).code == 200
    assert await spender.charged() == [cost(25, 20)]


HIDDEN = {"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl" * 100}


@both_ways
@pytest.mark.parametrize(
    ("reply", "used"),
    [
        pytest.param(message(content=[]), (25, 31), id="no block"),
        pytest.param(message("", usage={"input_tokens": 25, "output_tokens": 0}), (25, 0), id="a block without text"),
        pytest.param(message(HIDDEN, usage={"input_tokens": 25, "output_tokens": 6000}), "all", id="hidden thinking"),
        pytest.param(message(HIDDEN, usage=None), (11, count(HIDDEN["signature"])), id="the same without a report"),
        pytest.param(message(content=[], usage=None), (11, 0), id="nothing at all, and no report of it"),
    ],
)
async def test_a_complete_reply_is_charged_as_reported(
    service: Service, upstream: ScriptedUpstream, reply: dict[str, Any], used: Any, stream: bool
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(reply)
    response = await spender.ask(question(stream=stream, max_tokens=4000))
    credits = events_in(response.body)[-2]["credits"] if stream else json_of(response)["credits"]
    size = len(json.dumps({"messages": question()["messages"]}, separators=(",", ":")))
    # Never more than was held.
    charge = min(cost(25, 6000), cost(size + 1024, 4000)) if used == "all" else cost(*used)
    assert (response.code, credits) == (200, {"charged": charge, "remaining": PLENTY - charge})
    assert await spender.charged() == [charge]


REPORTS = [
    pytest.param([7, 31, 5], (25, 31), id="a usage that shrinks"),
    pytest.param([*range(1, 32)], (25, 31), id="a usage in every event"),
    pytest.param([2**53], "all", id="a usage of 2^53"),
    pytest.param([None, None], (25, 20), id="no usage at all"),
]


@pytest.mark.trap(67)
@pytest.mark.parametrize(("reports", "used"), REPORTS)
async def test_a_stream_with_several_reports_is_charged_once(
    service: Service,
    upstream: ScriptedUpstream,
    reports: list[int | None],
    used: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    spender = await Spender.make(service)
    first, *middle, _, stop = events_of(message())
    delta: Data = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    deltas = [{**delta, "usage": {"output_tokens": number}} if number is not None else delta for number in reports]
    upstream.plan = Plan(events=[first, *middle, *deltas, stop])
    events = events_in((await spender.ask(question(stream=True))).body)
    size = len(json.dumps({"messages": question()["messages"]}, separators=(",", ":")))
    charge = min(cost(size + 1024, 100), cost(25, 2**53)) if used == "all" else cost(*used)
    assert [event["credits"]["charged"] for event in events if "credits" in event] == [charge]
    assert await spender.charged() == [charge]
    assert ("reports less than before" in caplog.text) == (reports[-1] == 5)
    assert ("more than was held" in caplog.text) == (used == "all")


@both_ways
async def test_the_balance_is_reported_only_with_credits_read(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    narrow = await mint(service, service.web, "credits:spend")
    spender = await Spender.make(service)
    blind = replace(spender, token=narrow)

    async def credits_of(by: Spender) -> dict[str, int]:
        answer = await by.ask(question(stream=stream), key="k1")
        found: dict[str, int] = (events_in(answer.body)[-2] if stream else json_of(answer))["credits"]
        return found

    assert await credits_of(blind) == {"charged": cost(25, 31)}
    # The reply is kept for both; the token of whoever asks decides.
    assert await credits_of(spender) == {"charged": cost(25, 31), "remaining": PLENTY - cost(25, 31)}
    assert len(upstream.calls) == 1


@both_ways
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(message("I look it up.", TOOL_USE, TOOL_USE, stop_reason="tool_use"), id="text and tools"),
        pytest.param(message(TOOL_USE, stop_reason="tool_use"), id="a tool alone"),
        pytest.param(message(THINKING, REDACTED, "Pride and Prejudice."), id="thinking and text"),
        pytest.param(message(REDACTED), id="nothing but what is redacted"),
        pytest.param(message('Grüße, 世界 🌍 \u2028 \x7f \\ " </script>'), id="text beyond ASCII"),
        pytest.param(message("half of a pair: \ud83d"), id="half of a surrogate pair"),
        pytest.param(
            message("x", stop_details={"credits": 1.5e300}, container=None, credits={"charged": 0}), id="more fields"
        ),
    ],
)
async def test_replies_are_relayed_unchanged(
    service: Service, upstream: ScriptedUpstream, reply: dict[str, Any], stream: bool
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(reply)
    tools = [{"name": "look_up", "input_schema": {"type": "object"}}]
    thinking = {"type": "enabled", "budget_tokens": 50}
    response = await spender.ask(question(stream=stream, tools=tools, thinking=thinking))
    assert response.code == 200
    expected = {**reply, "model": MODEL, "credits": {"charged": cost(25, 31), "remaining": PLENTY - cost(25, 31)}}
    if stream:
        events = events_of({**reply, "model": MODEL})
        events[-2]["credits"] = expected["credits"]
        assert events_in(response.body)[1:] == events[1:]
        events[0]["message"].pop("credits", None)
    else:
        assert json_of(response) == expected
    assert await spender.charged() == [cost(25, 31)]
    assert upstream.calls[0].question["tools"] == tools
    assert upstream.calls[0].question["thinking"] == thinking


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda piece: [bytes([byte]) for byte in piece], id="byte by byte"),
        pytest.param(lambda piece: [piece.replace(b"\n", b"\r\n")], id="with CRLF"),
        pytest.param(lambda piece: [bytes([b]) for b in piece.replace(b"\n", b"\r\n")], id="with CRLF, byte by byte"),
        pytest.param(lambda piece: [b": a comment\nid: 7\nretry: 1\n" + piece], id="with comments, ids and retries"),
        pytest.param(lambda piece: [b": keep-alive\n\n", piece, b"\n\n\n"], id="with comments between"),
        pytest.param(lambda piece: [piece.replace(b"data: ", b"data:")], id="without spaces"),
        pytest.param(lambda piece: [piece.replace(b'", "', b'",\ndata: "')], id="with data on several lines"),
        pytest.param(lambda piece: [piece.partition(b"\n")[2]], id="without names"),
        pytest.param(lambda piece: [piece, PING], id="with pings"),
    ],
)
async def test_streams_are_parsed_in_any_valid_spelling(
    service: Service, upstream: ScriptedUpstream, write: Callable[[bytes], Sequence[bytes]]
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(write=write)
    response = await spender.ask(question(stream=True))
    events = [event for event in events_in(response.body) if event["type"] != "ping"]
    charge = cost(25, 31)
    expected = events_of(message(model=MODEL))
    expected[-2]["credits"] = {"charged": charge, "remaining": PLENTY - charge}
    assert events == expected
    assert await spender.charged() == [charge]


async def test_events_in_one_piece_and_several_deltas_of_the_message(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    first, *middle, last, stop = events_of(message())
    early = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 3}}
    upstream.plan = Plan(events=[first, early, early, *middle, early, last, stop])
    response = await spender.ask(question(stream=True))
    events = events_in(response.body)
    assert [event for event in events if event["type"] == "message_delta"][:-1] == [early, early, early]
    assert [event["type"] for event in events if "credits" in event] == ["message_delta"]
    assert events[-2] == {**last, "credits": {"charged": cost(25, 31), "remaining": PLENTY - cost(25, 31)}}
    assert await spender.charged() == [cost(25, 31)]


async def test_http_1_0_clients_get_streams(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    head = f"POST {NATIVE} HTTP/1.0\r\nAuthorization: Bearer {spender.token}\r\nContent-Type: application/json\r\n"
    status, answer = await send_raw(service.base_url, head.encode(), json.dumps(question(stream=True)).encode())
    assert status == 200
    assert text_of(events_in(answer.partition(b"\r\n\r\n")[2])) == TEXT
    assert await spender.charged() == [cost(25, 31)]


async def test_ai_calls_must_be_posts(service: Service) -> None:
    spender = await Spender.make(service)
    refused = await spender.get("/ai/messages")
    assert_error(refused, 405, "method_not_allowed")
    assert refused.headers["Allow"] == "POST, OPTIONS"
    answer = await spender.get("/ai/v1/messages")
    assert (answer.code, json_of(answer)["error"]["type"]) == (405, "invalid_request_error")
