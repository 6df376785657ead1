"""Twenty turns with a tool and with thinking, in each dialect and across."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.ai.openai.kit import CHAT, CLAUDE, GPT, RESPONSES
from tests.ai.openai.kit import site as site
from tests.support.http.driver import Service, json_of
from tests.support.http.openai_upstream import ChatPlan, ResponsesPlan, call_of, completion, response
from tests.support.http.upstream import Data, Plan, ScriptedUpstream, message
from tests.support.store.ai_spender import SDK, Spender, both_ways, events_in

pytestmark = pytest.mark.gen_test(timeout=60)

TURNS = 20
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class MessagesApp:
    """An agent that speaks the Messages API."""

    path = SDK

    def __init__(self, model: str) -> None:
        tools = [{"name": "look", "input_schema": SCHEMA}]
        thinking = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
        self.body: Data = {"model": model, "max_tokens": 500, "tools": tools, "messages": [], **thinking}
        self.body["messages"].append({"role": "user", "content": "Look twenty times."})

    def hear(self, raw: bytes, stream: bool) -> None:
        """Takes the answer into the conversation, with the tool's result."""
        content = _content_of(events_in(raw)) if stream else json.loads(raw)["content"]
        [call] = [block for block in content if block["type"] == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"saw {call['input']['n']}"}
        self.body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]


class ChatApp:
    """An agent that speaks chat/completions."""

    path = CHAT

    def __init__(self, model: str) -> None:
        tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
        asked = [{"role": "user", "content": "Look twenty times."}]
        self.body: Data = {"model": model, "tools": tools, "messages": asked, "reasoning_effort": "high"}

    def hear(self, raw: bytes, stream: bool) -> None:
        """Takes the answer into the conversation, with the tool's result."""
        if stream:
            deltas = [json.loads(block[6:]) for block in raw.decode().split("\n\n") if block.startswith("data: {")]
            calls = [call for one in deltas for c in one["choices"] for call in c["delta"].get("tool_calls", ())]
            arguments = "".join(call["function"]["arguments"] for call in calls)
            called = {**calls[0], "function": {"name": calls[0]["function"]["name"], "arguments": arguments}}
            answer: Data = {"role": "assistant", "content": None, "tool_calls": [called]}
        else:
            answer = json.loads(raw)["choices"][0]["message"]
        [call] = answer["tool_calls"]
        said = f"saw {json.loads(call['function']['arguments'])['n']}"
        self.body["messages"] += [answer, {"role": "tool", "tool_call_id": call["id"], "content": said}]


class ResponsesApp:
    """An agent that speaks responses, and brings its reasoning items back."""

    path = RESPONSES

    def __init__(self, model: str) -> None:
        tools = [{"type": "function", "name": "look", "parameters": SCHEMA}]
        asked = [{"role": "user", "content": "Look twenty times."}]
        self.body: Data = {"model": model, "tools": tools, "input": asked, "reasoning": {"effort": "high"}}

    def hear(self, raw: bytes, stream: bool) -> None:
        """Takes the items of the answer into the input, with the tool's result."""
        reply = events_in(raw)[-1]["response"] if stream else json.loads(raw)
        [call] = [item for item in reply["output"] if item["type"] == "function_call"]
        said = f"saw {json.loads(call['arguments'])['n']}"
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": said}
        self.body["input"] += [*reply["output"], result]


def _content_of(events: list[Data]) -> list[Data]:
    blocks: list[Data] = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            for name, value in event["delta"].items():
                if name != "type":
                    blocks[-1][name] = blocks[-1].get(name, "") + value
    for block in blocks:
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json"))
    return blocks


def thought_of(turn: int) -> Data:
    """What a model of the Messages API thinks in a turn."""
    return {"type": "thinking", "thinking": f"Turn {turn} \u2014 \U0001f511", "signature": f"c2ln{turn}=="}


def on_messages(turn: int) -> Plan:
    """A turn of a server of the Messages API: it thinks and calls the tool."""
    tool = {"type": "tool_use", "id": f"toolu_{turn}", "name": "look", "input": {"n": turn}}
    return Plan(message(thought_of(turn), tool, stop_reason="tool_use"))


def on_chat(turn: int) -> Plan:
    """A turn of a server of chat/completions."""
    return ChatPlan(completion(None, call_of("look", {"n": turn}, f"call_{turn}")))


def reasoned_of(turn: int) -> Data:
    """What a model of responses thinks in a turn, sealed by its server."""
    return {"id": f"rs_{turn}", "type": "reasoning", "summary": [], "encrypted_content": f"theirs-{turn}"}


def on_responses(turn: int) -> Plan:
    """A turn of a server of responses: it thinks and calls the tool."""
    call = {"id": f"fc_{turn}", "type": "function_call", "call_id": f"call_{turn}", "name": "look"}
    return ResponsesPlan(
        response(reasoned_of(turn), {**call, "arguments": json.dumps({"n": turn}), "status": "completed"})
    )


def thoughts_at_messages(sent: Data) -> list[Data]:
    """The thinking that a server of the Messages API got back."""
    return [
        block
        for message_ in sent["messages"]
        if isinstance(message_["content"], list)
        for block in message_["content"]
        if block["type"] == "thinking"
    ]


Pair = tuple[Callable[[str], MessagesApp | ChatApp | ResponsesApp], str, Callable[[int], Plan]]
PAIRS: dict[str, Pair] = {
    "messages on messages": (MessagesApp, CLAUDE, on_messages),
    "chat on messages": (ChatApp, CLAUDE, on_messages),
    "responses on messages": (ResponsesApp, CLAUDE, on_messages),
    "messages on chat": (MessagesApp, GPT, on_chat),
    "chat on chat": (ChatApp, GPT, on_chat),
    "responses on responses": (ResponsesApp, GPT, on_responses),
}


@both_ways
@pytest.mark.parametrize("name", PAIRS)
async def test_twenty_turns_with_a_tool_and_thinking(
    service: Service, upstream: ScriptedUpstream, name: str, stream: bool
) -> None:
    make, model, plan = PAIRS[name]
    spender, app = await Spender.make(service), make(model)
    for turn in range(TURNS):
        upstream.plan = plan(turn)
        answer = await spender.ask({**app.body, "stream": stream}, app.path)
        assert answer.code == 200, (turn, answer.body)
        app.hear(answer.body, stream)
        await spender.fresh_window()
    assert len(await spender.charged()) == TURNS
    sent = upstream.calls[-1].question
    text = json.dumps(sent)
    assert [f"saw {turn}" in text for turn in range(TURNS)] == [True] * (TURNS - 1) + [False]
    if name in ("messages on messages", "responses on messages"):
        assert thoughts_at_messages(sent) == [thought_of(turn) for turn in range(TURNS - 1)]
        assert sent["thinking"] == {"type": "adaptive"}
    elif name == "chat on messages":
        assert thoughts_at_messages(sent) == []
        assert upstream.calls[0].question["thinking"] == {"type": "adaptive"}
        assert [one.question["thinking"] for one in upstream.calls[1:]] == [{"type": "disabled"}] * (TURNS - 1)
    elif name == "responses on responses":
        assert [item for item in sent["input"] if item.get("type") == "reasoning"] == [
            reasoned_of(turn) for turn in range(TURNS - 1)
        ]
    else:
        assert sent["reasoning_effort"] == "high"
        calls = [one["tool_calls"][0]["function"]["arguments"] for one in sent["messages"] if one.get("tool_calls")]
        assert [json.loads(one) for one in calls] == [{"n": turn} for turn in range(TURNS - 1)]


async def test_thinking_is_on_again_once_the_person_speaks(service: Service, upstream: ScriptedUpstream) -> None:
    spender, app = await Spender.make(service), ChatApp(CLAUDE)
    upstream.plan = on_messages(0)
    app.hear((await spender.ask(app.body, CHAT)).body, False)
    upstream.plan = Plan()
    said = json_of(await spender.ask(app.body, CHAT))["choices"][0]["message"]
    app.body["messages"] += [said, {"role": "user", "content": "And now?"}]
    assert (await spender.ask(app.body, CHAT)).code == 200
    assert [one.question["thinking"]["type"] for one in upstream.calls] == ["adaptive", "disabled", "adaptive"]
