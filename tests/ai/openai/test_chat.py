"""chat/completions on servers of both dialects and on the built-in model, whole and streamed. SPEC 4.6."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.core.site import Site
from outbound.ai.probe import probe
from outbound.ai.tokens import count, count_request
from store.credits.prices import TokenCounts
from tests.ai.openai.kit import CACHED, CHAT, CLAUDE, ECHO, GPT, chat, chunks_in, said_in, wrong
from tests.ai.openai.kit import site as site
from tests.support.http.driver import Service, json_of
from tests.support.http.openai_upstream import SAID, ChatPlan, chunks_of, completion
from tests.support.http.upstream import KEY, TEXT, VENDOR_MODEL, Plan, ScriptedUpstream, error
from tests.support.store.ai_spender import (
    Spender,
    both_ways,
    cost,
    events_in,
    question,
    text_of,
)

pytestmark = pytest.mark.gen_test(timeout=30)

CHARGE = CACHED.cost(TokenCounts(15, 31, 10))
"""The cost of the scripted report: 10 of the 25 tokens of the prompt came from a cache."""
USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


async def test_a_request_goes_on_as_it_came_and_the_cost_comes_back(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    upstream.plan = ChatPlan()
    body = chat(seed=7, field_of_next_year={"a": [1]}, max_completion_tokens=50, store=True, user="u")
    answer = await spender.ask(body, CHAT, OpenAI_Beta="a-beta=v1", OpenAI_Organization="org_of_the_app")
    sent = upstream.calls[-1]
    assert sent.request.path == "/v1/chat/completions"
    kept = {name: value for name, value in body.items() if name != "store"}
    assert sent.question == {**kept, "model": VENDOR_MODEL, "stream": False}
    headers = dict(sent.request.headers.get_all())
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Openai-Beta"] == "a-beta=v1"
    assert "org_of_the_app" not in str(headers)
    found = json_of(answer)
    assert found["choices"][0]["message"]["content"] == SAID
    assert (found["model"], found["system_fingerprint"]) == (GPT, "fp_1")
    assert found["usage"] == {**completion()["usage"], "credits_charged": CHARGE}
    assert await spender.charged() == [CHARGE]


@pytest.mark.parametrize("wants", [True, False])
async def test_a_stream_has_its_usage_only_where_the_app_wants_it(
    service: Service, upstream: ScriptedUpstream, wants: bool
) -> None:
    spender = await Spender.make(service)
    chunks = chunks_of(completion())
    chunks.insert(2, {**chunks[1], "choices": [], "brand_new": 1, "usage": None})
    for model, plan, said in ((GPT, ChatPlan(events=chunks), SAID), (CLAUDE, Plan(), TEXT), (ECHO, Plan(), "Hello")):
        upstream.plan = plan
        body = chat("Hello", model, stream=True, **({"stream_options": {"include_usage": True}} if wants else {}))
        answer = await spender.ask(body, CHAT)
        found = chunks_in(answer.body)
        assert said_in(found) == said
        assert {one["model"] for one in found} == {model}
        charged = (await spender.charged())[-1]
        reports = [one["usage"] for one in found if one.get("usage")]
        assert len(reports) == wants
        if wants:
            assert found[-1]["choices"] == []
            assert reports[0]["credits_charged"] == charged
            assert found[-2]["choices"][0]["finish_reason"] == "stop"
        else:
            assert found[-1]["choices"][0]["finish_reason"] == "stop"
            assert all("usage" not in one for one in found)
        if model == GPT:
            assert [one for one in found if "brand_new" in one]
            assert upstream.calls[-1].question["stream_options"] == {"include_usage": True}


@both_ways
async def test_a_call_on_a_server_of_the_messages_api_is_translated(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    body = chat("Hello", CLAUDE, max_completion_tokens=50, stop="END", temperature=0.5, stream=stream)
    answer = await spender.ask(body, CHAT)
    assert answer.code == 200
    assert upstream.calls[-1].request.path == "/v1/messages"
    assert upstream.calls[-1].question == {
        **{"model": VENDOR_MODEL, "max_tokens": 50, "stream": stream, "temperature": 0.5, "stop_sequences": ["END"]},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    }
    assert await spender.charged() == [cost(25, 31)]
    if not stream:
        usage = json_of(answer)["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (25, 31, 56)
        assert usage["credits_charged"] == cost(25, 31)


@both_ways
async def test_the_messages_api_on_an_openai_server_is_translated(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    upstream.plan = ChatPlan()
    answer = await spender.ask(question("Hello", system="Be brief.", stream=stream))
    sent = upstream.calls[-1].question
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert (sent["model"], sent["max_completion_tokens"]) == (VENDOR_MODEL, 100)
    assert sent.get("stream_options") == ({"include_usage": True} if stream else None)
    if stream:
        events = events_in(answer.body)
        assert text_of(events) == SAID
        usage, credits = events[-2]["usage"], events[-2]["credits"]
    else:
        reply = json_of(answer)
        assert reply["content"] == [{"type": "text", "text": SAID}]
        usage, credits = reply["usage"], reply["credits"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (15, 10, 31)
    assert credits["charged"] == CHARGE
    assert await spender.charged() == [CHARGE]


async def test_a_count_for_an_openai_server_is_our_own(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    answer = await spender.ask(question("Hello there"), "/api/v1/ai/v1/messages/count_tokens")
    expected = count_request({"messages": [{"role": "user", "content": "Hello there"}]})
    assert json_of(answer) == {"input_tokens": expected}
    assert upstream.calls == []


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"n": 17}, "n"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"prediction": {"type": "content", "content": "x"}}, "prediction"),
        ({"modalities": ["text", "audio"], "audio": {}}, "modalities"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]}, "messages"),
        ({"model": CLAUDE, "seed": 7}, "seed"),
        ({"model": CLAUDE, "n": 2}, "n"),
        ({"model": CLAUDE, "messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"model": ECHO, "logprobs": True}, "logprobs"),
        ({"model": None}, "model"),
    ],
)
async def test_what_is_refused_is_named_and_free(
    service: Service, upstream: ScriptedUpstream, change: dict[str, Any], param: str
) -> None:
    spender = await Spender.make(service)
    found = wrong(await spender.ask({**chat(), **change}, CHAT), 400)
    assert (found["param"], found["type"], found["code"]) == (param, "invalid_request_error", "invalid_request")
    assert found["message"]
    assert upstream.calls == []
    assert await spender.charged() == []


async def test_several_choices_multiply_the_hold(service: Service, upstream: ScriptedUpstream) -> None:
    upstream.plan = ChatPlan()
    spender = await Spender.make(service, amount=cost(1100, 15))
    found = wrong(await spender.ask(chat(n=16), CHAT), 402)
    assert (found["type"], found["code"]) == ("insufficient_quota", "insufficient_quota")
    await service.store.credits.grant(service.ada, cost(0, 800))
    answer = await spender.ask(chat(n=4, max_tokens=4000), CHAT)
    assert answer.code == 200
    limit = upstream.calls[-1].question["max_completion_tokens"]
    assert 150 < limit < 250, "a quarter of what the credits cover"
    assert upstream.calls[-1].question["n"] == 4
    await service.store.credits.grant(service.ada, cost(0, 10_000))
    assert (await spender.ask(chat(n=4, max_tokens=50), CHAT)).code == 200
    assert upstream.calls[-1].question["max_completion_tokens"] == 50, "four answers of 50 tokens were held"


@both_ways
@pytest.mark.trap(67)
@pytest.mark.parametrize(
    ("usage", "charged"),
    [
        pytest.param(None, None, id="none"),
        pytest.param({"prompt_tokens": 25, "completion_tokens": 2**53}, "hold", id="enormous"),
        pytest.param({"prompt_tokens": -1, "completion_tokens": "31"}, None, id="no numbers"),
    ],
)
async def test_a_report_that_is_missing_or_wrong_is_charged_once_and_within_the_hold(
    service: Service,
    upstream: ScriptedUpstream,
    stream: bool,
    usage: dict[str, Any] | None,
    charged: str | None,
) -> None:
    spender = await Spender.make(service)
    upstream.plan = ChatPlan(reply=completion(usage=usage))
    body = chat(max_tokens=100, stream=stream)
    answer = await spender.ask(body, CHAT)
    assert answer.code == 200
    [found] = await spender.charged()
    if charged == "hold":
        assert cost(25, 100) < found < cost(25 + 1500, 100)
    else:
        assert found == cost(count_request(body), count(SAID))


@pytest.mark.trap(67)
async def test_a_report_in_every_chunk_is_charged_once(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    chunks = chunks_of(completion())
    for number, chunk in enumerate(chunks[:-1]):
        chunk["usage"] = {"prompt_tokens": 25, "completion_tokens": number}
    upstream.plan = ChatPlan(events=chunks)
    found = chunks_in((await spender.ask(chat(**USAGE), CHAT)).body)
    assert [one["usage"] for one in found if one["usage"]] == [{**completion()["usage"], "credits_charged": CHARGE}]
    assert await spender.charged() == [CHARGE]


async def test_a_stream_that_breaks_ends_with_an_error_and_is_charged(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    for plan in (
        ChatPlan(stops_after=4, then="cut"),
        ChatPlan(events=[*chunks_of(completion())[:4], {"error": {"message": f"key {KEY}", "type": "server_error"}}]),
        ChatPlan(events=[*chunks_of(completion())[:4], {"error": f"key {KEY}"}]),
        ChatPlan(events=chunks_of(completion())[:4], done=False),
    ):
        upstream.plan = plan
        answer = await spender.ask(chat(**USAGE), CHAT)
        *chunks, last = answer.body.decode().removesuffix("\n\n").split("\n\n")
        assert answer.code == 200
        assert len(chunks) == 4
        found = json.loads(last.removeprefix("data: "))["error"]
        assert (found["type"], found["code"], found["param"]) == ("server_error", "upstream_error", None)
        assert KEY not in answer.body.decode()
    expected = cost(count_request(chat()), count("It is a"))
    assert await spender.charged() == [expected] * 4


@pytest.mark.trap(70)
@pytest.mark.parametrize(
    ("status", "given", "code", "param"),
    [
        (400, {"code": "context_length_exceeded", "param": "messages"}, "invalid_request", "messages"),
        (400, {"code": None, "type": "invalid_request_error"}, "invalid_request", None),
        (401, {"code": "invalid_api_key"}, "upstream_error", None),
        (404, {"code": "model_not_found"}, "upstream_error", None),
        (500, {}, "upstream_error", None),
    ],
)
async def test_an_error_of_the_server_is_told_in_our_words(
    service: Service, upstream: ScriptedUpstream, status: int, given: dict[str, Any], code: str, param: str | None
) -> None:
    spender = await Spender.make(service)
    secret = "https://internal.example org-of-the-operator"
    upstream.plan = Plan(status=status, body=json.dumps({"error": {"message": secret, **given}}).encode())
    answer = await spender.ask(chat(), CHAT)
    found = wrong(answer, 400 if code == "invalid_request" else 502)
    assert (found["code"], found["param"]) == (code, param)
    assert "internal.example" not in answer.body.decode()
    assert await spender.charged() == []


async def test_an_error_with_the_status_200_is_free(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(body=json.dumps({"error": {"message": "no", "type": "server_error"}}).encode())
    assert wrong(await spender.ask(chat(), CHAT), 502)["code"] == "upstream_error"
    upstream.plan = Plan(body=json.dumps({"error": KEY}).encode())
    assert KEY not in wrong(await spender.ask(chat(), CHAT), 502)["message"]
    upstream.plan = Plan(body=json.dumps(error("overloaded_error")).encode())
    assert wrong(await spender.ask(chat(model=CLAUDE), CHAT), 529)["code"] == "overloaded"
    assert await spender.charged() == []


@both_ways
async def test_a_key_replays_within_its_dialect(service: Service, upstream: ScriptedUpstream, stream: bool) -> None:
    spender = await Spender.make(service)
    upstream.plan = ChatPlan()
    body = chat(max_tokens=9, stream=stream)
    first = await spender.ask(body, CHAT, key="k")
    again = await spender.ask(body, CHAT, key="k")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.body == first.body
    assert (await spender.ask(body, key="k")).code == 422, "the same bytes in the Messages API"
    assert len(upstream.calls) == 1
    assert await spender.charged() == [CHARGE]


async def test_a_form_is_refused(service: Service) -> None:
    spender = await Spender.make(service)
    answer = await spender.ask(b"model=scripted", CHAT, Content_Type="application/x-www-form-urlencoded")
    assert wrong(answer, 415)["type"] == "invalid_request_error"


async def test_the_operators_check_calls_an_openai_server(
    service: Service, upstream: ScriptedUpstream, site: Site
) -> None:
    upstream.plan = ChatPlan()
    model = site.models.find(GPT)
    assert model is not None
    found = await probe(model)
    assert (found.error, found.tokens, found.cost) == ("", TokenCounts(15, 31, 10, reasoning=7), CHARGE)
    assert upstream.calls[0].question["max_completion_tokens"] == 64
