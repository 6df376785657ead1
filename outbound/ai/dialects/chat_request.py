"""Requests of chat/completions, for a server of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects import tools
from outbound.ai.dialects.content import PDF, Arguments, data_url, image_block
from outbound.ai.dialects.conversation import Conversation, Thinking, set_thinking
from outbound.ai.dialects.rules import (
    IGNORED,
    READ,
    Table,
    Untranslatable,
    an_object,
    apply,
    copied,
    is_whole,
    number,
    objects,
    only,
    text,
)

FIELDS: Table = {
    "model": READ,
    "messages": READ,
    "stream": READ,
    "stream_options": READ,
    "max_tokens": READ,
    "max_completion_tokens": READ,
    "temperature": copied("temperature", number(0, 1)),
    "top_p": copied("top_p", number(0, 1)),
    "stop": READ,
    "tools": READ,
    "tool_choice": READ,
    "parallel_tool_calls": READ,
    "response_format": READ,
    "reasoning_effort": READ,
    "user": READ,
    "safety_identifier": READ,
    # Hints to caches and notes of the app that change no answer.
    "prompt_cache_key": IGNORED,
    "prompt_cache_retention": IGNORED,
    "prompt_cache_options": IGNORED,
    "metadata": IGNORED,
    "store": only(False, True),  # nothing is kept here, whatever it says
    # Fields without a counterpart, with the value that changes nothing.
    "n": only(1),
    "frequency_penalty": only(0, 0.0),
    "presence_penalty": only(0, 0.0),
    "logit_bias": only({}),
    "logprobs": only(False),
    "top_logprobs": only(0),
    "modalities": only(["text"]),
    "service_tier": only("auto", "default"),
    "verbosity": only("medium"),
}
MESSAGE: Table = {
    "role": READ,
    "content": READ,
    "tool_calls": READ,
    "tool_call_id": READ,
    "refusal": READ,
    "name": IGNORED,
    "annotations": IGNORED,
    # What some servers show of their thinking. It has no signature, so nobody can check it.
    "reasoning": IGNORED,
    "reasoning_content": IGNORED,
}
CALL: Table = {"id": READ, "type": only("function"), "function": READ, "index": IGNORED}
FUNCTION: Table = {"name": READ, "arguments": READ}
FORMAT: Table = {"type": READ, "json_schema": READ}


def to_messages(body: Mapping[str, Any], most_output: int, thinking: Thinking = "adaptive") -> dict[str, Any]:
    """The request for the Messages API, without model and stream. Without an output limit in `body` it has
    `most_output` tokens. Raises Untranslatable."""
    result = apply(FIELDS, body)
    turns, arguments = Conversation(), Arguments()
    for index, message in enumerate(objects(body.get("messages"), "messages")):
        _add(turns, message, f"messages[{index}]", arguments)
    result = {"max_tokens": output_limit(body, most_output), **turns.request("messages"), **result}
    result.update(tools.from_openai(body, nested=True))
    if stop := stop_sequences(body.get("stop")):
        result["stop_sequences"] = stop
    if schema := _schema(an_object(body.get("response_format"), "response_format")):
        result["output_config"] = {"format": schema}
    if person := body.get("safety_identifier") or body.get("user"):
        result["metadata"] = {"user_id": text(person, "user")}
    set_thinking(result, {"effort": body.get("reasoning_effort")}, thinking, "reasoning_effort")
    return result


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Whether a stream ends with a report of its tokens. Raises Untranslatable."""
    return an_object(body.get("stream_options"), "stream_options").get("include_usage") is True


def output_limit(body: Mapping[str, Any], most_output: int) -> int:
    """The tokens that the model may write. Raises Untranslatable."""
    for name in ("max_completion_tokens", "max_tokens"):
        limit = body.get(name)
        if limit is not None:
            if not is_whole(limit) or limit < 1:
                raise Untranslatable(name, f"{name} must be a whole number above 0.")
            return min(limit, most_output)
    return most_output


def stop_sequences(stop: object) -> list[str]:
    """The texts that end an answer. Raises Untranslatable."""
    found = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise Untranslatable("stop", "stop must be text or a list of texts.")
    return found


def json_format(schema: object, place: str) -> dict[str, Any]:
    """The format of an answer in JSON. Raises Untranslatable."""
    if not isinstance(schema, dict):
        raise Untranslatable(place, f"{place} must be a JSON schema.")
    return {"type": "json_schema", "schema": schema}


def _schema(form: dict[str, Any]) -> dict[str, Any] | None:
    apply(FORMAT, form, "response_format")
    if form.get("type", "text") == "text":
        return None
    if form["type"] != "json_schema":
        raise Untranslatable("response_format", "response_format must be text or json_schema for this model.")
    place = "response_format.json_schema"
    return json_format(an_object(form.get("json_schema"), place).get("schema"), f"{place}.schema")


def _add(turns: Conversation, message: dict[str, Any], place: str, arguments: Arguments) -> None:
    apply(MESSAGE, message, place)
    role, content = message.get("role"), message.get("content")
    if role in ("system", "developer"):
        turns.instruct(_texts(content, f"{place}.content"))
    elif role == "user":
        turns.add("user", _parts(content, f"{place}.content"))
    elif role == "assistant":
        turns.add("assistant", _said(message, place))
        turns.add("assistant", _calls(message.get("tool_calls"), f"{place}.tool_calls", arguments))
    elif role == "tool":
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": text(message.get("tool_call_id"), f"{place}.tool_call_id"),
        }
        if content := _parts(message.get("content"), f"{place}.content"):
            result["content"] = content
        turns.add("user", [result])
    else:
        raise Untranslatable(f"{place}.role", f"{place}.role must be system, developer, user, assistant or tool.")


def _said(message: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    content = message.get("content")
    refusal = message.get("refusal")
    if refusal is not None:
        return [{"type": "text", "text": text(refusal, f"{place}.refusal")}]
    return [] if content is None else _texts(content, f"{place}.content")


def _calls(calls: object, place: str, arguments: Arguments) -> list[dict[str, Any]]:
    blocks = []
    for index, call in enumerate(objects(calls, place)):
        here = f"{place}[{index}]"
        apply(CALL, call, here)
        function = an_object(call.get("function"), f"{here}.function")
        apply(FUNCTION, function, f"{here}.function")
        blocks.append(
            {
                "type": "tool_use",
                "id": text(call.get("id"), f"{here}.id"),
                "name": text(function.get("name"), f"{here}.function.name"),
                "input": arguments.read(function.get("arguments"), f"{here}.function.arguments"),
            }
        )
    return blocks


def _texts(content: object, place: str) -> list[dict[str, Any]]:
    """Content that is text only."""
    blocks = _parts(content, place)
    for index, block in enumerate(blocks):
        if block["type"] != "text":
            raise Untranslatable(f"{place}[{index}].type", f"{place} must be text.")
    return blocks


def _parts(content: object, place: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Untranslatable(place, f"{place} must be text or a list of parts.")
    return [_part(part, f"{place}[{index}]") for index, part in enumerate(objects(content, place))]


def _part(part: dict[str, Any], place: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind in ("text", "refusal"):
        return {"type": "text", "text": text(part.get(str(kind)), f"{place}.{kind}")}
    if kind == "image_url":
        image = an_object(part.get("image_url"), f"{place}.image_url")
        return image_block(image.get("url"), f"{place}.image_url.url")
    if kind == "file":
        return document(an_object(part.get("file"), f"{place}.file"), f"{place}.file")
    raise Untranslatable(f"{place}.type")


def document(file: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A PDF that the request contains. Raises Untranslatable."""
    if file.get("file_id") is not None:
        raise Untranslatable(f"{place}.file_id", "Files are not kept here. Send the file itself.")
    kind, data = data_url(file.get("file_data"), f"{place}.file_data")
    if kind != PDF:
        raise Untranslatable(f"{place}.file_data", f"{place}.file_data must be a PDF.")
    block = {"type": "document", "source": {"type": "base64", "media_type": PDF, "data": data}}
    name = file.get("filename")
    return block if name is None else {**block, "title": text(name, f"{place}.filename")}
