"""Client libraries of AI APIs, unmodified: with only a base URL and an access token, they call models on servers of
both dialects. Each call of theirs is charged what they see. SPEC 4.6."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store.credits.prices import TokenCounts
from tests.ai.clients.driving import CHAT, CLIENTS, RESPONSES, Client, Program
from tests.ai.openai.kit import CACHED, CLAUDE, ECHO, GPT
from tests.ai.openai.kit import site as site
from tests.ai.openai.test_turns import thoughts_at_messages
from tests.support.http.driver import Service
from tests.support.http.openai_upstream import ChatPlan, ResponsesPlan, call_of, completion, item_of, response
from tests.support.http.upstream import TEXT, Data, Plan, ScriptedUpstream, events_of, message
from tests.support.store.ai_spender import Spender, question

pytestmark = [
    pytest.mark.gen_test(timeout=120),
    pytest.mark.slow,
    pytest.mark.parametrize("client", CLIENTS, ids=str),
]

LOOKED = {"at": "the \U0001f511"}
CITY = {"name": "Lyon", "people": 520774}
THOUGHT = {"type": "thinking", "thinking": "First, I look \u2014 then I say.", "signature": "c2lnbmVk+/=="}
REASONED = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed-by-their-server"}
CACHED_USAGE = {"input_tokens": 12, "cache_read_input_tokens": 40, "output_tokens": 31}
MODELS = [CLAUDE, GPT]


def on_messages(*content: Data | str, **changes: Any) -> Plan:
    """The plan of a server of the Messages API. As the real ones, it also reports the input at the end."""
    reply = message(*content, usage=CACHED_USAGE, **changes)
    *events, last, stop = events_of(reply)
    return Plan(reply, [*events, {**last, "usage": CACHED_USAGE}, stop])


def says(client: Client, model: str, text: str) -> Plan:
    """The plan of a server that says something."""
    if model == CLAUDE:
        return on_messages(text)
    return ResponsesPlan(response(item_of(text))) if client.door == RESPONSES else ChatPlan(completion(text))


def looks(client: Client, model: str) -> Plan:
    """The plan of a server that thinks and calls a tool."""
    if model == CLAUDE:
        tool = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": LOOKED}
        return on_messages(THOUGHT, tool, stop_reason="tool_use")
    if client.door == RESPONSES:
        call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look", "status": "completed"}
        return ResponsesPlan(response(REASONED, {**call, "arguments": json.dumps(LOOKED)}))
    return ChatPlan(completion(None, call_of("look", LOOKED)))


class Driven:
    """A client at work for a person."""

    def __init__(self, client: Client, program: Program, spender: Spender) -> None:
        self.client, self.program, self.spender = client, program, spender

    async def call(
        self, name: str, model: str = ECHO, *, stream: bool = False, fresh: bool = True, **changes: Any
    ) -> Any:
        """What a call gives; `fresh`: in an empty window. Raises Failed."""
        job = {"client": self.client.name, "call": name, "model": model, "stream": stream, **changes}
        if fresh:
            await self.spender.fresh_window()
        return await self.program.call({"base": self.spender.base_url, "token": self.spender.token, **job})

    async def fill_window(self) -> None:
        """Makes as many calls as the person may make in a minute; together they are charged once."""
        await self.spender.fresh_window()
        for _ in range(20):
            assert (await self.spender.ask(question(model=ECHO), key="k")).code == 200

    async def paid(self, name: str, model: str, *, stream: bool) -> Data:
        """The same; asserts that the ledger has the cost of the tokens that the client saw."""
        before = len(await self.spender.charged())
        made: Data = await self.call(name, model, stream=stream)
        charges = (await self.spender.charged())[before:]
        seen = [TokenCounts(one["input"], one["output"], one["cached"]) for one in made["usage"]]
        assert [CACHED.cost(tokens) for tokens in seen] == charges
        assert all(one.get("charged", charge) == charge for one, charge in zip(made["usage"], charges, strict=True))
        assert all(tokens.cache_read for tokens in seen)
        return made


async def drive(client: Client, program: Program, service: Service) -> Driven:
    """The client with a person who has credits."""
    return Driven(client, program, await Spender.make(service))


async def test_answers_whole_and_streamed(
    service: Service, upstream: ScriptedUpstream, program: Program, client: Client
) -> None:
    driven = await drive(client, program, service)
    for model in MODELS:
        for stream in (False, True):
            upstream.plan = says(client, model, TEXT)
            made = await driven.paid("ask", model, stream=stream)
            assert made["text"] == TEXT
            assert made["model"] == model
    if client.official:
        assert await driven.call("models") == [ECHO, CLAUDE, GPT]


async def test_tools_and_thinking_go_round(
    service: Service, upstream: ScriptedUpstream, program: Program, client: Client
) -> None:
    driven = await drive(client, program, service)
    for model in MODELS:
        for name in ("tools", "think"):
            for stream in (False, True):
                upstream.script(looks(client, model), says(client, model, TEXT))
                made = await driven.paid(name, model, stream=stream)
                assert made["called"] == LOOKED
                assert made["text"] == TEXT
                sent = upstream.calls[-1].question
                assert "It is warm." in json.dumps(sent)
                if name == "think":
                    assert_thinking_came_back(client, model, sent)


def assert_thinking_came_back(client: Client, model: str, sent: Data) -> None:
    """What the model's server gets of its thinking in the second turn: all of it, unless the dialect has no place."""
    if model == CLAUDE:
        assert thoughts_at_messages(sent) == ([] if client.door == CHAT else [THOUGHT])
    elif client.door == RESPONSES:
        [found] = [item for item in sent["input"] if item.get("type") == "reasoning"]
        assert found["encrypted_content"] == REASONED["encrypted_content"]


async def test_answers_by_a_json_schema(
    service: Service, upstream: ScriptedUpstream, program: Program, client: Client
) -> None:
    driven = await drive(client, program, service)
    for model in MODELS:
        upstream.plan = says(client, model, json.dumps(CITY))
        assert (await driven.paid("schema", model, stream=False))["object"] == CITY
        assert "people" in json.dumps(upstream.calls[-1].question)
