"""responses on servers of both dialects and on the built-in model, whole and streamed. Nothing is kept. SPEC 4.6."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outbound.ai.tokens import count, count_request
from store.credits.prices import TokenCounts
from tests.ai.openai.kit import CACHED, CLAUDE, ECHO, GPT, RESPONSES, asks, site, wrong
from tests.support.http.driver import Service, json_of, send
from tests.support.http.openai_upstream import SAID, ResponsesPlan, response, response_events
from tests.support.http.upstream import KEY, TEXT, VENDOR_MODEL, Plan, ScriptedUpstream, message
from tests.support.store.ai_spender import Spender, both_ways, cost, events_in

__all__ = ["site"]
pytestmark = pytest.mark.gen_test(timeout=30)

CHARGE = CACHED.cost(TokenCounts(15, 31, 10))


def text_in(reply: dict[str, Any]) -> str:
    """The text of a response."""
    return "".join(part["text"] for item in reply["output"] for part in item.get("content", ()))


@both_ways
async def test_each_server_answers_with_a_response_and_its_cost(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    for model, plan, said in ((GPT, ResponsesPlan(), SAID), (CLAUDE, Plan(), TEXT), (ECHO, Plan(), "Hello")):
        upstream.plan = plan
        answer = await spender.ask(asks("Hello", model, stream=stream, max_output_tokens=50), RESPONSES)
        assert answer.code == 200
        reply = json_of(answer) if not stream else events_in(answer.body)[-1]["response"]
        assert (reply["object"], reply["status"], reply["model"]) == ("response", "completed", model)
        assert text_in(reply) == said
        assert reply["usage"]["credits_charged"] == (await spender.charged())[-1]
        if stream:
            numbers = [event["sequence_number"] for event in events_in(answer.body)]
            assert numbers == list(range(len(numbers)))
    assert (await spender.charged())[:2] == [CHARGE, cost(25, 31)]


async def test_a_request_goes_on_as_it_came_but_is_not_kept(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    upstream.plan = ResponsesPlan()
    body = asks(field_of_next_year=[1], store=True, truncation="auto", reasoning={"effort": "low"})
    assert (await spender.ask(body, RESPONSES)).code == 200
    sent = upstream.calls[-1]
    assert sent.request.path == "/v1/responses"
    assert sent.question == {
        **body,
        **{"model": VENDOR_MODEL, "stream": False, "store": False, "max_output_tokens": 4096},
        "include": ["reasoning.encrypted_content"],
    }


async def test_unknown_events_of_a_stream_go_back(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    events = response_events(response())
    events.insert(3, {"type": "response.of_next_year", "deep": {"a": None}, "sequence_number": 3})
    upstream.plan = ResponsesPlan(events=events)
    found = events_in((await spender.ask(asks(stream=True), RESPONSES)).body)
    expected = [
        {**event, "response": {**event["response"], "model": GPT}} if "response" in event else event for event in events
    ]
    assert found[-1]["response"]["usage"].pop("credits_charged") == CHARGE
    assert found == expected


@pytest.mark.parametrize("model", [GPT, CLAUDE, ECHO])
@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"background": True}, "background"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"type": "additional_tools", "role": "developer", "tools": []}]}, "input[0].type"),
        ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
    ],
)
async def test_what_is_kept_or_billed_otherwise_is_refused_by_name(
    service: Service, upstream: ScriptedUpstream, model: str, change: dict[str, Any], param: str
) -> None:
    spender = await Spender.make(service)
    assert wrong(await spender.ask({**asks(model=model), **change}, RESPONSES), 400)["param"] == param
    assert upstream.calls == []


async def test_no_response_is_ever_found(service: Service) -> None:
    spender = await Spender.make(service)
    url = f"{service.base_url}{RESPONSES}/resp_1"
    for method in ("GET", "DELETE"):
        answer = await send(url, method, headers={"Authorization": f"Bearer {spender.token}"})
        assert wrong(answer, 404)["type"] == "invalid_request_error"
        assert wrong(await send(url, method), 401)["code"] == "invalid_api_key"


async def test_a_stream_that_fails_ends_with_an_error_and_is_charged(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    events = response_events(response())
    secret = {"message": f"key {KEY}", "code": "server_error"}
    reports = response(status="failed", error=secret, usage={"input_tokens": 25, "output_tokens": 2})
    for plan, charged in (
        (ResponsesPlan(stops_after=6, then="cut"), None),
        (ResponsesPlan(events=[*events[:6], {"type": "error", **secret}]), None),
        (ResponsesPlan(events=[*events[:6], {"type": "response.failed", "response": reports}]), cost(25, 2)),
    ):
        upstream.plan = plan
        answer = await spender.ask(asks(stream=True), RESPONSES)
        found = events_in(answer.body)
        assert [event["type"] for event in found[:-1]] == [event["type"] for event in events[:6]]
        assert found[-1]["type"] == "error"
        assert found[-1]["error"]["code"] == found[-1]["code"] == "upstream_error"
        assert found[-1]["sequence_number"] >= 6
        assert KEY not in answer.body.decode()
        expected = cost(count_request(asks()), count("It is")) if charged is None else charged
        assert (await spender.charged())[-1] == expected


async def test_a_whole_response_that_failed_is_charged_and_an_error(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    upstream.plan = ResponsesPlan(reply=response(status="failed", error={"message": KEY, "code": "server_error"}))
    answer = await spender.ask(asks(), RESPONSES)
    assert wrong(answer, 502)["code"] == "upstream_error"
    assert KEY not in answer.body.decode()
    assert answer.headers["X-Should-Retry"] == "false"
    assert await spender.charged() == [CHARGE]


@both_ways
async def test_thinking_comes_sealed_and_goes_back_unchanged(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    thought = {"type": "thinking", "thinking": "A tool \u2014 \U0001f511.", "signature": "c2ln"}
    tool = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "\u00e9"}}
    upstream.plan = Plan(reply=message(thought, tool, stop_reason="tool_use"))
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    body = asks("Look", CLAUDE, stream=stream, tools=tools, reasoning={"effort": "high"})
    answer = await spender.ask(body, RESPONSES)
    reply = json_of(answer) if not stream else events_in(answer.body)[-1]["response"]
    assert [item["type"] for item in reply["output"]] == ["reasoning", "function_call"]
    assert json.loads(reply["output"][1]["arguments"]) == tool["input"]
    result = {"type": "function_call_output", "call_id": "toolu_1", "output": "a key"}
    upstream.plan = Plan()
    given = [{"role": "user", "content": "Look"}, *reply["output"], result]
    assert (await spender.ask({**body, "input": given}, RESPONSES)).code == 200
    sent = upstream.calls[-1].question
    assert sent["messages"][1] == {"role": "assistant", "content": [thought, tool]}
    assert sent["thinking"] == {"type": "adaptive"}
    assert sent["output_config"] == {"effort": "high"}
