"""The built-in model calls tools and answers with JSON, in every dialect. SPEC 4.6."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from outbound.ai.echo_answer import MOST_TEXT, MOST_VALUES, filled
from tests.ai.openai.kit import CHAT, ECHO, RESPONSES, asks, chat, chunks_in
from tests.ai.openai.kit import site as site
from tests.support.http.driver import Service, json_of
from tests.support.store.ai_spender import SDK, Spender, both_ways, events_in, question

pytestmark = pytest.mark.gen_test(timeout=30)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 3},
        "exact": {"type": "boolean"},
        "unit": {"enum": ["celsius", "kelvin"]},
        "near": {"type": "array", "items": {"$ref": "#/$defs/place"}, "minItems": 2},
        "note": {"type": ["string", "null"]},
        "by": {"anyOf": [{"type": "null"}, {"type": "string"}]},
    },
    "required": ["city", "days", "exact", "unit", "near", "note", "by"],
    "additionalProperties": False,
    "$defs": {"place": {"type": "object", "properties": {"at": {"type": "number"}}, "required": ["at"]}},
}
TOOLS = [
    {"name": "first", "input_schema": {"type": "object", "properties": {}}},
    {"name": "weather", "input_schema": SCHEMA},
]
FUNCTIONS = [{"name": tool["name"], "parameters": tool["input_schema"]} for tool in TOOLS]


def is_of_the_schema(value: Any) -> bool:
    """Whether a value has the schema of the tool."""
    return Draft202012Validator(SCHEMA).is_valid(value)


@both_ways
async def test_a_named_tool_is_called_and_its_result_answered_in_chat(service: Service, stream: bool) -> None:
    spender = await Spender.make(service)
    tools = [{"type": "function", "function": function} for function in FUNCTIONS]
    choice = {"type": "function", "function": {"name": "weather"}}
    body = chat("Will it rain?", ECHO, tools=tools, tool_choice=choice, stream=stream)
    answer = await spender.ask(body, CHAT)
    if stream:
        chunks = chunks_in(answer.body)
        calls = [call for one in chunks for choice in one["choices"] for call in choice["delta"].get("tool_calls", ())]
        call_id, name = calls[0]["id"], calls[0]["function"]["name"]
        arguments = "".join(call["function"]["arguments"] for call in calls)
        reason = chunks[-1]["choices"][0]["finish_reason"]
    else:
        found = json_of(answer)["choices"][0]
        [call], reason = found["message"]["tool_calls"], found["finish_reason"]
        call_id, name, arguments = call["id"], call["function"]["name"], call["function"]["arguments"]
    assert (name, reason) == ("weather", "tool_calls")
    assert is_of_the_schema(json.loads(arguments))
    called = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    body["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": call_id, "content": "Yes, rain."},
    ]
    after = json_of(await spender.ask({**body, "stream": False}, CHAT))["choices"][0]
    assert (after["message"]["content"], after["finish_reason"]) == ("Yes, rain.", "stop")


@both_ways
async def test_the_first_tool_is_called_where_any_is_forced(service: Service, stream: bool) -> None:
    spender = await Spender.make(service)
    tools = [{"type": "function", **function} for function in FUNCTIONS]
    answer = await spender.ask(asks("Go", ECHO, tools=tools, tool_choice="required", stream=stream), RESPONSES)
    reply = events_in(answer.body)[-1]["response"] if stream else json_of(answer)
    [item] = reply["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "first", "{}")
    answer = await spender.ask(question(model=ECHO, tools=TOOLS, tool_choice={"type": "any"}, stream=stream), SDK)
    if stream:
        events = events_in(answer.body)
        assert events[1]["content_block"]["name"] == "first"
        assert events[-2]["delta"]["stop_reason"] == "tool_use"
    else:
        assert json_of(answer)["content"][0]["name"] == "first"


async def test_text_is_repeated_where_no_tool_is_forced(service: Service) -> None:
    spender = await Spender.make(service)
    for choice in (None, {"type": "auto"}, {"type": "none"}):
        body = question("Hello", model=ECHO, tools=TOOLS, tool_choice=choice)
        assert json_of(await spender.ask(body, SDK))["content"] == [{"type": "text", "text": "Hello"}]


async def test_a_schema_is_answered_with_json(service: Service) -> None:
    spender = await Spender.make(service)
    form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
    reply = json_of(await spender.ask(chat("Go", ECHO, response_format=form), CHAT))
    assert is_of_the_schema(json.loads(reply["choices"][0]["message"]["content"]))


async def test_arguments_that_are_cut_off_are_none(service: Service) -> None:
    spender = await Spender.make(service)
    body = question(model=ECHO, tools=TOOLS[1:], tool_choice={"type": "any"}, max_tokens=3)
    reply = json_of(await spender.ask(body, SDK))
    assert (reply["stop_reason"], reply["content"][0]["input"]) == ("max_tokens", {})
    assert reply["usage"]["output_tokens"] == 3


def test_hostile_schemas_are_filled_within_bounds() -> None:
    itself: Any = {"type": "object", "properties": {"x": {"$ref": "#"}, "y": {"$ref": "#"}}}
    wide = {"type": "object", "properties": {str(number): {"type": "string"} for number in range(20_000)}}
    deep: Any = {"type": "string"}
    for _ in range(100):
        deep = {"type": "array", "items": deep, "minItems": 10**9}
    schemas: list[Any] = [itself, wide, deep, None, [], {"$ref": 1}, {"type": 5}, {"enum": []}, {"$ref": "#/$ref"}]
    for schema in schemas:
        assert json.dumps(filled(schema)).count(":") <= MOST_VALUES


@pytest.mark.parametrize(
    "schema",
    [
        {"default": "x" * 60_000},
        {"enum": [[7] * 20_000]},
        {"type": "integer", "minimum": 10**4_000},
        {"properties": {"x" * 60_000: {"type": "string"}}},
    ],
    ids=["default", "enum", "minimum", "name"],
)
def test_a_schema_that_names_one_large_value_many_times_makes_no_larger_answer(schema: dict[str, Any]) -> None:
    """900 references to 60 KB made 54 MB, in the loop of the server."""
    properties = {f"p{number}": {"$ref": "#/large"} for number in range(900)}
    assert len(json.dumps(filled({"properties": properties, "large": schema}))) < 2 * MOST_TEXT
