"""Requests of the Messages API, for a server of chat/completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects import tools
from outbound.ai.dialects.content import url_of
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
from outbound.ai.events import compact

FIELDS: Table = {
    "model": READ,
    "messages": READ,
    "system": READ,
    "max_tokens": READ,
    "stream": READ,
    "tools": READ,
    "tool_choice": READ,
    "thinking": READ,
    "output_config": READ,
    "stop_sequences": READ,
    "metadata": READ,
    "temperature": copied("temperature", number(0, 1)),
    "top_p": copied("top_p", number(0, 1)),
    # Hints to caches and to what the server drops from long conversations. They change no answer of this model.
    "cache_control": IGNORED,
    "context_management": IGNORED,
    "diagnostics": IGNORED,
    "service_tier": only("auto", "standard_only"),
    "speed": only("standard"),
}
MESSAGE: Table = {"role": READ, "content": READ}
CONFIG: Table = {"effort": READ, "format": READ, "task_budget": IGNORED}
RESULT: Table = {
    "type": READ,
    "tool_use_id": READ,
    "content": READ,
    "is_error": READ,
    "cache_control": IGNORED,
}
BUDGETS = ((4_096, "low"), (16_384, "medium"))
"""Budgets of thinking in tokens, up to which an effort is meant; above them it is `high`."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
_THINKING = ("enabled", "adaptive", "between_tools", "disabled")


def to_chat(body: Mapping[str, Any], most_output: int, limit_field: str = "max_completion_tokens") -> dict[str, Any]:
    """The request for chat/completions, without model and stream. The server knows its output limit as `limit_field`.
    Raises Untranslatable."""
    copies = apply(FIELDS, body)
    messages: list[dict[str, Any]] = []
    if body.get("system") is not None:
        messages.append({"role": "system", "content": _text_of(body["system"], "system")})
    for index, message in enumerate(objects(body.get("messages"), "messages")):
        _add(messages, message, f"messages[{index}]")
    if not messages:
        raise Untranslatable("messages", "messages must have a message with something in it.")
    result: dict[str, Any] = {"messages": messages, limit_field: _output_limit(body, most_output), **copies}
    result.update(tools.to_chat(body))
    if stop := body.get("stop_sequences"):
        if not isinstance(stop, list) or not all(isinstance(item, str) for item in stop):
            raise Untranslatable("stop_sequences", "stop_sequences must be a list of texts.")
        result["stop"] = stop
    config = an_object(body.get("output_config"), "output_config")
    apply(CONFIG, config, "output_config")
    if form := an_object(config.get("format"), "output_config.format"):
        if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
            raise Untranslatable("output_config.format")
        named = {"name": "answer", "schema": form["schema"], "strict": True}
        result["response_format"] = {"type": "json_schema", "json_schema": named}
    if effort := _effort(an_object(body.get("thinking"), "thinking"), config.get("effort")):
        result["reasoning_effort"] = effort
    person = an_object(body.get("metadata"), "metadata").get("user_id")
    if person is not None:
        result["user"] = text(person, "metadata.user_id")
    return result


def _output_limit(body: Mapping[str, Any], most_output: int) -> int:
    limit = body.get("max_tokens")
    if not is_whole(limit) or limit < 1:
        raise Untranslatable("max_tokens", "max_tokens must be a whole number above 0.")
    return min(limit, most_output)


def _effort(thinking: Mapping[str, Any], effort: object) -> str | None:
    kind, budget = thinking.get("type", "adaptive"), thinking.get("budget_tokens")
    if kind not in _THINKING:
        raise Untranslatable("thinking.type")
    if effort is not None and effort not in EFFORTS:
        raise Untranslatable("output_config.effort", f"output_config.effort must be {', '.join(EFFORTS)}.")
    if kind == "disabled":
        return None
    if effort is None and kind == "enabled" and is_whole(budget):
        return next((name for most, name in BUDGETS if budget <= most), "high")
    return effort if isinstance(effort, str) else None


def _add(messages: list[dict[str, Any]], message: dict[str, Any], place: str) -> None:
    apply(MESSAGE, message, place)
    role, content = message.get("role"), message.get("content")
    place += ".content"
    if role == "system":
        messages.append({"role": "system", "content": _text_of(content, place)})
    elif role == "user":
        _add_person(messages, content, place)
    elif role == "assistant":
        _add_model(messages, content, place)
    else:
        raise Untranslatable(place.removesuffix("content") + "role", "A role is user, assistant or system.")


def _add_person(messages: list[dict[str, Any]], content: object, place: str) -> None:
    """Results of tools are messages of their own here, and come first, as the calls that they answer want."""
    said: list[dict[str, Any]] = []
    for index, block in enumerate(_blocks(content, place)):
        here = f"{place}[{index}]"
        if block.get("type") == "tool_result":
            messages.append(_result(block, said, here))
        else:
            said += _part(block, here)
    if said:
        plain = all(part["type"] == "text" for part in said)
        messages.append({"role": "user", "content": _joined(said) if plain and len(said) == 1 else said})


def _result(block: Mapping[str, Any], said: list[dict[str, Any]], place: str) -> dict[str, Any]:
    """The message of a tool. It can only have text, so images follow in the person's message."""
    apply(RESULT, block, place)
    texts: list[dict[str, Any]] = []
    given = block.get("content")
    for index, inner in enumerate([] if given is None else _blocks(given, f"{place}.content")):
        for part in _part(inner, f"{place}.content[{index}]"):
            (texts if part["type"] == "text" else said).append(part)
    answer = "\n".join(part["text"] for part in texts)
    if block.get("is_error") is True:
        answer = f"Error: {answer}"
    return {"role": "tool", "tool_call_id": text(block.get("tool_use_id"), f"{place}.tool_use_id"), "content": answer}


def _add_model(messages: list[dict[str, Any]], content: object, place: str) -> None:
    said: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for index, block in enumerate(_blocks(content, place)):
        here, kind = f"{place}[{index}]", block.get("type")
        if kind == "tool_use":
            function = {
                "name": text(block.get("name"), f"{here}.name"),
                "arguments": compact(an_object(block.get("input"), f"{here}.input")),
            }
            calls.append({"id": text(block.get("id"), f"{here}.id"), "type": "function", "function": function})
        elif kind not in ("thinking", "redacted_thinking"):  # only the model that wrote it can read it
            parts = _part(block, here)
            if any(part["type"] != "text" for part in parts):
                raise Untranslatable(f"{here}.type")
            said += parts
    if said or calls:
        message: dict[str, Any] = {"role": "assistant", "content": _joined(said) if said else None}
        messages.append({**message, "tool_calls": calls} if calls else message)


def _blocks(content: object, place: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Untranslatable(place, f"{place} must be text or a list of blocks.")
    return objects(content, place)


def _part(block: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    kind, source = block.get("type"), block.get("source")
    if kind == "text":
        return [{"type": "text", "text": text(block.get("text"), f"{place}.text")}]
    if kind == "image":
        return [{"type": "image_url", "image_url": {"url": url_of(source, f"{place}.source")}}]
    if kind == "document" and isinstance(source, dict):
        if source.get("type") == "text":
            return [{"type": "text", "text": text(source.get("data"), f"{place}.source.data")}]
        if source.get("type") == "base64":
            name = block.get("title") or "document.pdf"
            url = url_of(source, f"{place}.source")
            return [{"type": "file", "file": {"filename": text(name, f"{place}.title"), "file_data": url}}]
    raise Untranslatable(f"{place}.type")


def _text_of(content: object, place: str) -> str:
    parts = [part for index, block in enumerate(_blocks(content, place)) for part in _part(block, f"{place}[{index}]")]
    if any(part["type"] != "text" for part in parts):
        raise Untranslatable(place, f"{place} must be text.")
    return _joined(parts, "\n\n")


def _joined(parts: list[dict[str, Any]], between: str = "") -> str:
    return between.join(part["text"] for part in parts)
