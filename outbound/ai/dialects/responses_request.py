"""Requests of responses, for a server of the Messages API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from outbound.ai.dialects import tools
from outbound.ai.dialects.chat_request import document, json_format
from outbound.ai.dialects.content import Arguments, image_block, unseal
from outbound.ai.dialects.conversation import Conversation, Thinking, set_thinking
from outbound.ai.dialects.rules import (
    IGNORED,
    READ,
    REFERENCE,
    Table,
    Untranslatable,
    an_object,
    apply,
    copied,
    is_whole,
    number,
    objects,
    only,
    refers,
    text,
)

FIELDS: Table = {
    "model": READ,
    "input": READ,
    "instructions": READ,
    "stream": READ,
    "stream_options": IGNORED,
    "max_output_tokens": READ,
    "temperature": copied("temperature", number(0, 1)),
    "top_p": copied("top_p", number(0, 1)),
    "tools": READ,
    "tool_choice": READ,
    "parallel_tool_calls": READ,
    "text": READ,
    "reasoning": READ,
    "user": READ,
    "safety_identifier": READ,
    "metadata": READ,
    "include": READ,
    "store": only(False, True),  # nothing is kept here, whatever it says
    "prompt_cache_key": IGNORED,
    "prompt_cache_retention": IGNORED,
    "prompt_cache_options": IGNORED,
    "background": only(False),
    "truncation": only("disabled"),
    "top_logprobs": only(0),
    "service_tier": only("auto", "default"),
}
TEXT: Table = {"format": READ, "verbosity": only("medium")}
REASONING: Table = {
    "effort": READ,
    "summary": READ,
    "generate_summary": READ,
    "context": only("auto", "all_turns"),
    "mode": only("standard"),
}
INCLUDED = ("reasoning.encrypted_content",)
_ITEM: Table = {"type": READ, "id": IGNORED, "status": IGNORED}
MESSAGE: Table = {**_ITEM, "role": READ, "content": READ, "phase": IGNORED}
CALL: Table = {
    **_ITEM,
    **dict.fromkeys(("call_id", "name", "arguments"), READ),
    "caller": only({"type": "direct"}),
    "async": only(False),
}
OUTPUT: Table = {
    **_ITEM,
    **dict.fromkeys(("call_id", "output"), READ),
    "caller": only({"type": "direct"}),
    "name": IGNORED,
}
REASONED: Table = {**_ITEM, "encrypted_content": READ, "summary": IGNORED, "content": IGNORED}


def to_messages(body: Mapping[str, Any], most_output: int, thinking: Thinking = "adaptive") -> dict[str, Any]:
    """The request for the Messages API, without model and stream. Without an output limit in `body` it has
    `most_output` tokens. Raises Untranslatable."""
    copies = apply(FIELDS, body)
    _check_include(body.get("include"))
    turns, arguments = Conversation(), Arguments()
    if body.get("instructions") is not None:
        turns.instruct([{"type": "text", "text": text(body["instructions"], "instructions")}])
    given = body.get("input")
    if isinstance(given, str):
        turns.add("user", [{"type": "text", "text": given}])
    else:
        for index, item in enumerate(objects(given, "input")):
            _add(turns, item, f"input[{index}]", arguments)
    result = {"max_tokens": _output_limit(body, most_output), **turns.request("input"), **copies}
    result.update(tools.from_openai(body, nested=False))
    shape = an_object(body.get("text"), "text")
    apply(TEXT, shape, "text")
    if schema := _schema(an_object(shape.get("format"), "text.format")):
        result["output_config"] = {"format": schema}
    if person := body.get("safety_identifier") or body.get("user"):
        result["metadata"] = {"user_id": text(person, "user")}
    reasoning = an_object(body.get("reasoning"), "reasoning")
    apply(REASONING, reasoning, "reasoning")
    set_thinking(result, {**reasoning, "summary": wants_summary(body)}, thinking, "reasoning.effort")
    return result


def wants_summary(body: Mapping[str, Any]) -> bool:
    """Whether the app wants to read what the model thought."""
    reasoning = body.get("reasoning")
    return isinstance(reasoning, dict) and bool(reasoning.get("summary") or reasoning.get("generate_summary"))


def _check_include(include: object) -> None:
    if include is not None and (not isinstance(include, list) or any(item not in INCLUDED for item in include)):
        raise Untranslatable("include", f"include may have {', '.join(INCLUDED)} for this model.")


def _output_limit(body: Mapping[str, Any], most_output: int) -> int:
    limit = body.get("max_output_tokens")
    if limit is None:
        return most_output
    if not is_whole(limit) or limit < 1:
        raise Untranslatable("max_output_tokens", "max_output_tokens must be a whole number above 0.")
    return min(limit, most_output)


def _schema(form: dict[str, Any]) -> dict[str, Any] | None:
    if form.get("type", "text") == "text":
        return None
    if form["type"] != "json_schema":
        raise Untranslatable("text.format", "text.format must be text or json_schema for this model.")
    return json_format(form.get("schema"), "text.format.schema")


def _message(turns: Conversation, item: dict[str, Any], place: str, arguments: Arguments) -> None:
    apply(MESSAGE, item, place)
    role, content = item.get("role"), _parts(item.get("content"), f"{place}.content")
    if role in ("system", "developer"):
        if any(block["type"] != "text" for block in content):
            raise Untranslatable(f"{place}.content", f"{place}.content must be text.")
        turns.instruct(content)
    elif role in ("user", "assistant"):
        turns.add(role, content)
    else:
        raise Untranslatable(f"{place}.role", f"{place}.role must be system, developer, user or assistant.")


def _call(turns: Conversation, item: dict[str, Any], place: str, arguments: Arguments) -> None:
    apply(CALL, item, place)
    block = {
        "type": "tool_use",
        "id": text(item.get("call_id"), f"{place}.call_id"),
        "name": text(item.get("name"), f"{place}.name"),
        "input": arguments.read(item.get("arguments"), f"{place}.arguments"),
    }
    turns.add("assistant", [block])


def _output(turns: Conversation, item: dict[str, Any], place: str, arguments: Arguments) -> None:
    apply(OUTPUT, item, place)
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": text(item.get("call_id"), f"{place}.call_id")}
    if content := _parts(item.get("output"), f"{place}.output"):
        result["content"] = content
    turns.add("user", [result])


def _reasoning(turns: Conversation, item: dict[str, Any], place: str, arguments: Arguments) -> None:
    apply(REASONED, item, place)
    block = unseal(item.get("encrypted_content"), f"{place}.encrypted_content")
    if block is not None:
        turns.add("assistant", [block])


_ITEMS: Mapping[str, Callable[[Conversation, dict[str, Any], str, Arguments], None]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _output,
    "reasoning": _reasoning,
}


def _add(turns: Conversation, item: dict[str, Any], place: str, arguments: Arguments) -> None:
    kind = item.get("type") or "message"
    add = _ITEMS.get(kind) if isinstance(kind, str) else None
    if kind == REFERENCE:
        raise refers(f"{place}.type")
    if add is None:
        raise Untranslatable(f"{place}.type")
    add(turns, item, place, arguments)


def _parts(content: object, place: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Untranslatable(place, f"{place} must be text or a list of parts.")
    return [_part(part, f"{place}[{index}]") for index, part in enumerate(objects(content, place))]


def _part(part: dict[str, Any], place: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text"):
        return {"type": "text", "text": text(part.get("text"), f"{place}.text")}
    if kind == "refusal":
        return {"type": "text", "text": text(part.get("refusal"), f"{place}.refusal")}
    if kind == "input_image":
        if part.get("file_id") is not None:
            raise Untranslatable(f"{place}.file_id", "Files are not kept here. Send the image itself.")
        return image_block(part.get("image_url"), f"{place}.image_url")
    if kind == "input_file" and part.get("file_url") is None:
        return document(part, place)
    raise Untranslatable(f"{place}.type")
