"""What an app that leaves early, or that hides its text, must not get for less than it costs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from handlers.core.application import Latchkey
from handlers.core.site import Site
from outbound.ai.dialects.conversation import Thinking
from outbound.ai.models import Models
from outbound.ai.openai_meter import METERS
from outbound.ai.protocols import Dialect
from outbound.ai.tokens import DATA_TOKENS, count_request
from store.json_text import MAX_NESTING
from tests.ai.openai.kit import CHAT, CLAUDE, GPT, RESPONSES, asks, chat
from tests.ai.openai.kit import site as site
from tests.support.http.driver import Service
from tests.support.http.openai_upstream import ChatPlan, ResponsesPlan, chunks_of, completion, response, response_events
from tests.support.http.upstream import KEY, Plan, ScriptedUpstream, events_of, message
from tests.support.store.ai_spender import SDK, OpenStream, Spender, at_rest, both_ways, cost, noticed, question

pytestmark = pytest.mark.gen_test(timeout=30)

LONG = "word " * 10_000


@pytest.mark.parametrize(
    "body",
    [
        {"functions": [{"name": "f", "description": LONG}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"description": LONG}}}},
        {"text": {"format": {"type": "json_schema", "schema": {"description": LONG}}}},
        {"output_config": {"format": {"schema": {"description": LONG}}}},
        {"field_of_next_year": [LONG]},
        {"messages": [{"role": "user", "content": f"data:image/png;base64,{LONG}"}]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": f"data:,{LONG}"}]}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"url": f"data:,{LONG}"}}}]},
    ],
    ids=lambda body: next(iter(body)),
)
def test_text_counts_wherever_a_model_reads_it(body: dict[str, Any]) -> None:
    """A server of OpenAI's dialects reports the input at the end: an app that leaves before pays what we count."""
    assert count_request(body) >= 10_000


def test_a_picture_counts_as_one_and_a_note_as_nothing() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10**6}}
    counted = count_request({"messages": [{"role": "user", "content": [part]}], "metadata": {"note": LONG}})
    assert DATA_TOKENS < counted < DATA_TOKENS + 50


@pytest.mark.parametrize(
    ("dialect", "events", "reply"),
    [
        (
            "chat",
            [{"choices": [{"index": 0, "delta": {"function_call": {"name": "f", "arguments": LONG}}}]}],
            {"choices": [{"message": {"function_call": {"name": "f", "arguments": LONG}}}]},
        ),
        *(
            (
                "responses",
                [{"type": "response.output_item.done", "item": item}],
                {"output": [item]},
            )
            for item in (
                {"type": "local_shell_call", "action": {"type": "exec", "command": ["bash", "-c", LONG]}},
                {"type": "apply_patch_call", "operation": {"type": "create_file", "path": "a", "diff": LONG}},
            )
        ),
    ],
    ids=["function_call", "local_shell", "apply_patch"],
)
def test_every_way_to_call_a_tool_is_output(dialect: Dialect, events: list[Any], reply: Any) -> None:
    streamed, whole = METERS[dialect]({}), METERS[dialect]({})
    for event in events:
        streamed.see_event(event)
    whole.see_reply(reply)
    assert 10_000 <= streamed.used_so_far().output < 20_100
    assert 10_000 <= whole.used().output < 20_100


def test_a_patch_that_came_in_pieces_counts_once() -> None:
    meter = METERS["responses"]({})
    meter.see_event({"type": "response.apply_patch_call_operation_diff.delta", "delta": LONG})
    once = meter.used_so_far().output
    item = {"type": "apply_patch_call", "operation": {"type": "create_file", "path": "a", "diff": LONG}}
    meter.see_event({"type": "response.output_item.done", "item": item})
    assert once <= meter.used_so_far().output <= once + 10


@pytest.mark.trap(70)
@both_ways
async def test_an_error_inside_of_an_answer_stays_here(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    secret = {"code": 502, "message": f"key {KEY} of https://internal.example"}
    reply = completion()
    reply["choices"][0] |= {"error": secret, "finish_reason": "error"}
    chunks = chunks_of(completion())
    chunks[-2]["choices"][0]["error"] = secret
    answered = response(error=secret)
    begun = [{**event, "error": secret} for event in response_events(response())]
    for plan, body, path in (
        (ChatPlan(reply=reply, events=chunks), chat(stream=stream), CHAT),
        (ChatPlan(reply={**completion(), "error": secret}), chat(stream=stream), CHAT),
        (ResponsesPlan(reply=answered), asks(stream=stream), RESPONSES),
        (ResponsesPlan(reply=answered, events=begun), asks(stream=stream), RESPONSES),
        (
            Plan(reply=message(error=secret), events=[{"type": "new", "error": secret}]),
            question(model=CLAUDE, stream=stream),
            SDK,
        ),
    ):
        upstream.plan = plan
        answer = await spender.ask(body, path)
        assert KEY not in answer.body.decode()
        assert "internal.example" not in answer.body.decode()


def file_at(address: str) -> list[dict[str, Any]]:
    """A message with a file at an address."""
    return [{"role": "user", "content": [{"type": "input_file", "file_url": address}]}]


THINKING: dict[str, Any] = {"prompt_tokens": 25, "completion_tokens": 900, "input_tokens": 25, "output_tokens": 900}
PIXEL = "data:image/png;base64,iVBORw0KGgo="
PICTURE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}


@pytest.mark.trap(29)
@pytest.mark.parametrize("thinking", ["adaptive", "none"])
@pytest.mark.parametrize("case", ["chat", "responses", "messages", "picture"])
async def test_an_app_that_leaves_pays_what_the_model_thought_unseen(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, case: str, thinking: Thinking
) -> None:
    """An OpenAI server reports its thinking, and what it read in an image, at the end of a stream alone."""
    known = app.site.models
    app.site = replace(app.site, models=Models(tuple(replace(one, thinking=thinking) for one in known.all())))
    spender, gate = await Spender.make(service, amount=10**7), asyncio.Semaphore(5)
    chats = ChatPlan(completion(usage=THINKING), gate=gate)
    upstream.plan, body, path = {
        "chat": (chats, chat(stream=True, reasoning_effort="none"), CHAT),
        "responses": (ResponsesPlan(response(usage=THINKING), gate=gate), asks(stream=True), RESPONSES),
        "messages": (chats, question(model=GPT, stream=True, max_tokens=1000), SDK),
        "picture": (chats, chat(stream=True, messages=[PICTURE]), CHAT),
    }[case]
    stream = await (await OpenStream.open(spender, body, path=path)).begin()
    stream.cut()
    await noticed(app)
    for _ in range(100):
        gate.release()
    await at_rest(app)
    await upstream.calls[0].over.wait()
    whole = thinking != "none" or case == "picture"
    assert upstream.calls[0].hung_up is not whole
    [charged] = await spender.charged()
    assert (charged == cost(25, 900)) is whole
    assert charged > cost(5, 0)


@pytest.mark.trap(29)
@pytest.mark.parametrize("case", ["chat", "responses", "messages", "search"])
async def test_a_stream_whose_input_nobody_can_count_is_read_to_its_report(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, site: Site, case: str
) -> None:
    """A file at an address is some twenty tokens by our count: an app that left before the end read it for nothing."""
    spender = await Spender.make(service, amount=10**9)
    gate, address = asyncio.Semaphore(4), "https://x.example/a"
    chat_usage = {"prompt_tokens": 90_000, "completion_tokens": 31}
    reads = {"input_tokens": 90_000, "output_tokens": 31}
    picture = {"type": "image", "source": {"type": "url", "url": address}}
    image = {"type": "image_url", "image_url": {"url": address}}
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 1}
    cases: dict[str, tuple[Plan, dict[str, Any], str]] = {
        "chat": (
            ChatPlan(reply=completion(usage=chat_usage), gate=gate),
            chat(stream=True) | {"messages": [{"role": "user", "content": [image]}]},
            CHAT,
        ),
        "responses": (
            ResponsesPlan(reply=response(usage=reads), gate=gate),
            asks(stream=True) | {"input": file_at(address)},
            RESPONSES,
        ),
        "messages": (
            ChatPlan(reply=completion(usage=chat_usage), gate=gate),
            question(model=GPT, stream=True, messages=[{"role": "user", "content": [picture]}]),
            SDK,
        ),
        "search": (Plan(gate=gate), question(model=CLAUDE, stream=True, tools=[search]), SDK),
    }
    upstream.plan, body, path = cases[case]
    if case == "search":
        events = events_of(message())
        events[-2]["usage"] = reads
        upstream.plan = replace(upstream.plan, events=events)
    stream = await OpenStream.open(spender, body, path=path)
    await stream.begin()
    calls: list[Any] = [cast(Any, stop).__self__ for stop in site.endings]
    stream.cut()
    while not calls[0]._gone:
        await asyncio.sleep(0.001)
    for _ in range(100):
        gate.release()
    await at_rest(app)
    await upstream.calls[0].over.wait()
    assert not upstream.calls[0].hung_up
    assert await spender.charged() == [cost(90_000, 31)]


@pytest.mark.trap(29)
async def test_a_request_that_is_deeper_once_translated_is_charged_when_its_app_leaves(
    service: Service, app: Latchkey, upstream: ScriptedUpstream
) -> None:
    """The request of a stream is kept as text and read again, if its input must be counted after all."""
    app.site = replace(app.site, models=Models(tuple(replace(one, thinking="none") for one in app.site.models.all())))
    spender, gate = await Spender.make(service), asyncio.Semaphore(5)
    upstream.plan = ChatPlan(gate=gate)
    schema: dict[str, Any] = {}
    for _ in range(MAX_NESTING - 4):  # a request, its tools and a tool are around it
        schema = {"properties": schema}
    tools = [{"name": "f", "input_schema": {**schema, "type": "object"}}]
    stream = await (await OpenStream.open(spender, question(model=GPT, stream=True, tools=tools), path=SDK)).begin()
    stream.cut()
    await noticed(app)
    gate.release()
    await at_rest(app)
    [charged] = await spender.charged()
    assert charged > cost(MAX_NESTING, 0)
