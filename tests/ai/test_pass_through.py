"""Requests of the Messages API for a server that speaks it: what goes on as it came, and what is held or refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from outbound.ai.dialects.messages_same import check, forwarded_headers, is_measured
from outbound.ai.dialects.rules import Untranslatable
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import VENDOR_MODEL, Plan, ScriptedUpstream, events_of, message
from tests.support.store.ai_spender import (
    MODEL,
    SDK,
    OpenStream,
    Spender,
    bound,
    cost,
    events_in,
    models_on,
    question,
    reached,
)

pytestmark = pytest.mark.gen_test(timeout=20)

MOST_INPUT = 200_000


@pytest.fixture
def strict() -> bool:
    """Whether the operator refuses unknown fields."""
    return False


@pytest.fixture
def site(io_loop: IOLoop, ai_site: Site, upstream: ScriptedUpstream, strict: bool) -> Iterator[Site]:
    """The model runs on the scripted upstream."""
    made = replace(ai_site, models=models_on(upstream.url))
    for model in made.models.all():
        model.upstream.refuses_unknown = strict
    yield made
    io_loop.run_sync(made.models.close)


def says(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A request whose one message has these blocks."""
    return question(messages=[{"role": "user", "content": list(blocks)}], **fields)


AGENT: dict[str, Any] = {
    "max_tokens": 100,
    "system": [{"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "messages": [
        {"role": "user", "content": "List the files."},
        {"role": "system", "content": [{"type": "text", "text": "The date has changed."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "A tool.", "signature": "c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"url": "http://x", "source": "y"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.py"}]},
    ],
    "tools": [
        *({"name": f"tool_{number}", "input_schema": {"type": "object"}, "x": number} for number in range(21)),
        {"type": "bash_20250124", "name": "bash"},
    ],
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": "user_1"},
}
"""A request as a coding agent sends it."""


async def test_a_coding_agents_request_goes_on_as_it_came(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    betas = "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27"
    for stream in (False, True):
        body = {"model": MODEL, **AGENT, "stream": stream}
        answer = await spender.ask(body, SDK, anthropic_beta=betas, anthropic_version="2023-06-01")
        assert answer.code == 200
        assert upstream.calls[-1].question == {**body, "model": VENDOR_MODEL}
        sent = [name for name in upstream.calls[-1].question if name not in ("model", "max_tokens", "stream")]
        assert sent == [name for name in AGENT if name != "max_tokens"], "in the order of the app"
        assert upstream.calls[-1].request.headers["Anthropic-Beta"] == betas
    counted = await spender.ask({**AGENT, "model": MODEL}, f"{SDK}/count_tokens", anthropic_beta=betas)
    assert counted.code == 200
    assert upstream.calls[-1].request.headers["Anthropic-Beta"] == betas
    assert "metadata" not in upstream.calls[-1].question


async def test_unknown_events_and_blocks_of_a_stream_go_back(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    events = events_of(message())
    block = {"type": "content_block_start", "index": 1, "content_block": {"type": "block_of_next_year", "x": [1]}}
    events[-2:-2] = [{"type": "event_of_next_year", "deep": {"a": None}}, block]
    upstream.plan = Plan(events=events)
    answer = await spender.ask(question(stream=True))
    expected = [{**event} for event in events]
    expected[0] = {**events[0], "message": {**events[0]["message"], "model": MODEL}}
    found = events_in(answer.body)
    found[-2].pop("credits")
    assert found == expected
    assert await spender.charged() == [cost(25, 31)]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param({"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}, id="an address"),
        pytest.param({"type": "document", "source": {"type": "base64", "data": "AA"}}, id="a PDF"),
        pytest.param({"type": "block_of_next_year", "id": "x"}, id="an unknown block"),
        pytest.param({"type": "image", "source": "x"}, id="a source that is none"),
    ],
)
async def test_input_that_its_length_does_not_bound_holds_all_the_model_reads(
    service: Service, upstream: ScriptedUpstream, block: dict[str, Any]
) -> None:
    request = says({"type": "tool_result", "tool_use_id": "t", "content": [block]}, stream=True)
    spender = await Spender.make(service, amount=cost(MOST_INPUT, 100) - 1)
    assert (await spender.ask({**request, "stream": False})).code == 200
    assert upstream.calls[-1].question["max_tokens"] == 99, "one micro-dollar is missing"
    assert upstream.calls[-1].question["messages"] == request["messages"]
    stream = await OpenStream.open(spender, question(stream=True))
    await reached(upstream, 2)
    assert (await (await stream.begin()).rest())[-1]["type"] == "message_stop"
    stream.cut()


def test_arguments_of_tools_are_no_addresses() -> None:
    assert is_measured(AGENT)
    assert bound({**AGENT, "model": MODEL}) < MOST_INPUT


@pytest.mark.parametrize("strict", [True])
@pytest.mark.parametrize(
    ("request_", "headers", "named"),
    [
        pytest.param(question(field_of_next_year=1), {}, "field_of_next_year", id="a field"),
        pytest.param(says({"type": "block_of_next_year"}), {}, "block_of_next_year", id="a block"),
        pytest.param(question(), {"anthropic_beta": "a-beta-2027-01-01"}, "a-beta-2027-01-01", id="a beta"),
    ],
)
async def test_an_operator_may_refuse_what_is_unknown(
    service: Service, upstream: ScriptedUpstream, request_: dict[str, Any], headers: dict[str, str], named: str
) -> None:
    spender = await Spender.make(service)
    refused = await spender.ask(request_, SDK, **headers)
    assert refused.code == 400
    assert named in json_of(refused)["error"]["message"]
    agent = await spender.ask({"model": MODEL, **AGENT}, SDK, anthropic_beta="claude-code-20250219")
    assert agent.code == 200
    assert (await spender.ask(question())).code == 200


@pytest.mark.parametrize(
    "beta",
    [
        *("context-1m-2025-08-07", "fast-mode-2026-02-01", "code-execution-2025-08-25", "mcp-client-2025-11-20"),
        *("files-api-2025-04-14", "compact-2026-01-12", "a b", "a\x7f", ",".join(f"b{n}" for n in range(51))),
    ],
)
def test_betas_that_change_what_is_billed_are_refused(beta: str) -> None:
    with pytest.raises(Untranslatable):
        forwarded_headers("2023-06-01", ["interleaved-thinking-2025-05-14", beta])


def test_only_versions_and_betas_go_on() -> None:
    assert forwarded_headers("yesterday", []) == {}
    assert forwarded_headers("", ["a", "b,, c"]) == {"anthropic-beta": "a,b,c"}


def test_a_refused_field_is_named() -> None:
    for field, value in (("speed", "fast"), ("service_tier", "priority"), ("container", "c"), ("mcp_servers", [{}])):
        with pytest.raises(Untranslatable, match=field):
            check({"messages": [], field: value})
