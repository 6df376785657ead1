"""What has no counterpart in the other dialect is refused by name, and nothing a stranger sends takes long."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from outbound.ai.dialects import chat_request, messages_request, messages_same, responses_request, same
from outbound.ai.dialects.content import seal
from outbound.ai.dialects.rules import Untranslatable

Json = dict[str, Any]
ASKED = [{"role": "user", "content": "Hello"}]
CHAT = {"model": "m", "messages": ASKED}
RESPONSES = {"model": "m", "input": "Hello"}
MESSAGES = {"model": "m", "max_tokens": 10, "messages": ASKED}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def refused(translate: Callable[[], object]) -> str:
    """The parameter that the refusal names."""
    with pytest.raises(Untranslatable) as caught:
        translate()
    assert str(caught.value)
    return caught.value.param


def said(**message: Any) -> Json:
    return {"messages": [{"role": "user", **message}]}


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"n": 2}, "n"),
        ({"n": True}, "n"),
        ({"seed": 7}, "seed"),
        ({"audio": {"voice": "a"}}, "audio"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"logprobs": True}, "logprobs"),
        ({"logit_bias": {"50": 1}}, "logit_bias"),
        ({"prediction": {"type": "content"}}, "prediction"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"temperature": 1.5}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"stop": [1]}, "stop"),
        ({"reasoning_effort": "enormous"}, "reasoning_effort"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.schema"),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": 1}}]}, "tools[0].function.name"),
        ({"tools": {}}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
        ({"messages": []}, "messages"),
        ({"messages": "Hello"}, "messages"),
        (said(role="function", name="f", content="x"), "messages[0].role"),
        (said(content=[{"type": "input_audio", "input_audio": {}}]), "messages[0].content[0].type"),
        (
            said(content=[{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]),
            IMAGE := "messages[0].content[0].image_url.url",
        ),
        (said(content=[{"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,AA"}}]), IMAGE),
        (said(content=[{"type": "file", "file": {"file_id": "f"}}]), "messages[0].content[0].file.file_id"),
        (said(role="assistant", audio={"id": "a"}), "messages[0].audio"),
        (
            said(role="assistant", tool_calls=[{**CALL, "function": {"name": "f", "arguments": "{"}}]),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (said(role="assistant", tool_calls=[{**CALL, "id": None}]), "messages[0].tool_calls[0].id"),
        (said(role="tool", content="x"), "messages[0].tool_call_id"),
        ({"new\nfield": 1}, "new?field"),
    ],
)
def test_chat_refuses_by_name(change: Json, param: str) -> None:
    assert refused(lambda: chat_request.to_messages({**CHAT, **change}, 100)) == param


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"truncation": "auto"}, "truncation"),
        ({"max_tool_calls": 3}, "max_tool_calls"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"context_management": [{"type": "compaction"}]}, "context_management"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"reasoning": {"effort": "x"}}, "reasoning.effort"),
        ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input[0].content[0].file_id",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "https://x.example"}]}]},
            "input[0].content[0].type",
        ),
        ({"input": [{"type": "reasoning", "encrypted_content": "lkr1.AAAA"}]}, "input[0].encrypted_content"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_responses_refuse_by_name(change: Json, param: str) -> None:
    assert refused(lambda: responses_request.to_messages({**RESPONSES, **change}, 100)) == param


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"top_k": 5}, "top_k"),
        ({"max_tokens": None}, "max_tokens"),
        ({"mcp_servers": []}, "mcp_servers"),
        ({"container": "c"}, "container"),
        ({"speed": "fast"}, "speed"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"thinking": {"type": "x"}}, "thinking.type"),
        ({"output_config": {"effort": "x"}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "x"}}}, "output_config.format"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "x"}, "tools": [{"name": "f", "input_schema": {}}]}, "tool_choice"),
        (said(role="tool", content="x"), "messages[0].role"),
        (said(content=[{"type": "search_result"}]), "messages[0].content[0].type"),
        (
            said(content=[{"type": "image", "source": {"type": "file", "file_id": "f"}}]),
            "messages[0].content[0].source",
        ),
        (said(content=[{"type": "tool_result", "content": "x"}]), "messages[0].content[0].tool_use_id"),
    ],
)
def test_messages_refuse_by_name(change: Json, param: str) -> None:
    assert refused(lambda: messages_request.to_chat({**MESSAGES, **change}, 100)) == param


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"n": 17}, "n"),
        ({"prediction": {"type": "content", "content": "x"}}, "prediction"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"audio": {}}, "audio"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"models": ["dearer/model"]}, "models"),
        ({"plugins": [{"id": "web"}]}, "plugins"),
        ({"search_parameters": {"mode": "on"}}, "search_parameters"),
    ],
)
def test_chat_to_its_own_dialect_refuses_what_is_billed_by_other_measures(change: Json, param: str) -> None:
    assert refused(lambda: same.chat({**CHAT, **change}, "vendor", 100)) == param


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"tools": [{"type": "function", "name": "f"}, {"type": "mcp"}]}, "tools[1].type"),
        ({"input": [{"type": "tool_search_output", "tools": [{"type": "web_search"}]}]}, "input[0].type"),
        ({"input": [{"id": "msg_of_another_account"}]}, "input[0].type"),
        ({"input": [{"id": "msg_of_another_account", "type": None}]}, "input[0].type"),
        ({"fallbacks": ["dearer"]}, "fallbacks"),
    ],
)
def test_responses_to_their_own_dialect_refuse_what_is_kept_or_billed_otherwise(change: Json, param: str) -> None:
    assert refused(lambda: same.responses({**RESPONSES, **change}, "vendor", 100)) == param


def test_null_counts_as_missing() -> None:
    nothing = dict.fromkeys(("n", "seed", "audio", "stop", "tools", "tool_choice", "user", "stream", "max_tokens"))
    assert chat_request.to_messages({**CHAT, **nothing}, 9) == chat_request.to_messages(CHAT, 9)


def test_chat_to_its_own_dialect_changes_model_limit_and_stream_options_alone() -> None:
    body = {**CHAT, "max_tokens": 500, "stream": True, "n": 3, "seed": 7, "brand_new": {"x": [1]}, "store": True}
    prepared = same.chat(body, "vendor", 100)
    assert prepared.body == {
        **{name: value for name, value in body.items() if name not in ("store", "max_tokens")},
        "model": "vendor",
        "max_completion_tokens": 100,
        "stream_options": {"include_usage": True},
    }
    assert (prepared.most_output, prepared.limits) == (100, ("max_completion_tokens",))
    assert (prepared.choices, prepared.usage) == (3, False)


@pytest.mark.parametrize("known", ["max_tokens", "max_completion_tokens"])
def test_the_output_limit_has_the_name_that_the_server_knows_whichever_name_the_app_sends(known: str) -> None:
    """A server that ignores the other name wrote as much as it liked, and the hold paid for one token of it."""
    for sent in ({"max_tokens": 1}, {"max_completion_tokens": 1}, {"max_completion_tokens": 1, "max_tokens": 50}):
        body = same.chat({**CHAT, **sent}, "vendor", 100, known).body
        assert {name: body[name] for name in body if name.startswith("max_")} == {known: 1}


def test_responses_to_their_own_dialect_are_not_kept_and_bring_their_thinking_back() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "theirs"}
    ours = {**thought, "encrypted_content": seal({"type": "redacted_thinking", "data": "x"})}
    lost = {**thought, "encrypted_content": None}
    body = {**RESPONSES, "input": [thought, ours, lost], "reasoning": {"effort": "low"}, "brand_new": 1}
    prepared = same.responses(body, "vendor", 100).body
    assert prepared["input"] == [thought]
    assert (prepared["store"], prepared["include"], prepared["brand_new"]) == (False, [same.ENCRYPTED], 1)
    assert (prepared["model"], prepared["max_output_tokens"]) == ("vendor", 100)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
        {"type": "input_image", "image_url": "https://x.example/a.png"},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA"}},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA"},
    ],
)
def test_input_whose_size_bounds_nothing_is_not_measured(part: Json) -> None:
    body = same.chat({**CHAT, **said(content=[part])}, "vendor", 100).body
    assert not same.is_measured(body["messages"])


def hostile() -> list[Any]:
    """Requests that could take long, or break a parser."""
    schema: Json = {"type": "object"}
    for _ in range(190):
        schema = {"type": "object", "properties": {"x": schema}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    deep = "[" * 100_000
    wide = "{" + '"x":[' + "[]," * 300_000 + "1]}"
    many = json.dumps(dict.fromkeys(map(str, range(60_000)), 0))
    calls = [{**CALL, "function": {"name": "f", "arguments": many}}] * 4
    bomb = "lkr1." + base64.urlsafe_b64encode(b"[" + b"{}," * 10**6 + b"{}]").decode()
    return [
        pytest.param({"tools": [tool] * 500}, True, id="deep schemas"),
        pytest.param(
            said(role="assistant", tool_calls=[{**CALL, "function": {"name": "f", "arguments": deep}}]),
            False,
            id="deep arguments",
        ),
        pytest.param(
            said(role="assistant", tool_calls=[{**CALL, "function": {"name": "f", "arguments": wide}}]),
            False,
            id="wide arguments",
        ),
        pytest.param(said(role="assistant", tool_calls=calls), False, id="arguments of many calls"),
        pytest.param({"messages": ASKED * 100_000}, True, id="many messages"),
        pytest.param(said(content=[{"type": "text", "text": "x"}] * 100_000), True, id="many parts"),
        pytest.param({"input": [{"type": "reasoning", "encrypted_content": bomb}]}, False, id="a seal with a bomb"),
        pytest.param(
            {"input": [{"type": "reasoning", "encrypted_content": "lkr1." + "A" * 10**7}]}, False, id="a long seal"
        ),
        pytest.param({"x" * 10**7: 1}, False, id="a long name"),
    ]


@pytest.mark.parametrize(("change", "taken"), hostile())
def test_hostile_requests_end_soon(change: Json, taken: bool) -> None:
    began = time.process_time()
    translate = responses_request.to_messages if "input" in change else chat_request.to_messages
    body = {**(RESPONSES if "input" in change else CHAT), **change}
    if taken:
        assert translate(body, 100)["messages"]
    else:
        assert len(refused(lambda: translate(body, 100))) <= 200
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"fallbacks": [{"model": "dearer"}]}, "fallbacks"),
        ({"thread": {"type": "continue", "previous_message_id": "msg_of_another_person"}}, "thread"),
        ({"billing_policy": {"type": "billing_policy", "bill_to": "user_profile"}}, "billing_policy"),
        ({"compaction": {}}, "compaction"),
        (
            said(content=[{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"type": "x"}}}]),
            "messages",
        ),
    ],
)
def test_messages_to_their_own_dialect_refuse_what_is_billed_otherwise(change: Json, param: str) -> None:
    assert refused(lambda: messages_same.check({**MESSAGES, **change})) == param


def test_every_field_of_the_messages_api_is_reviewed() -> None:
    """A new version of the SDK may bring new fields. Somebody must review whether each changes the bill."""
    from anthropic.types.beta.message_create_params import MessageCreateParamsBase

    reviewed = {*messages_same.FIELDS, *messages_same.NOT_OFFERED, "model", "max_tokens", "betas", "diagnostics"}
    assert MessageCreateParamsBase.__annotations__.keys() <= reviewed
