"""Tools and the choice among them, between the dialects. Only an app's own functions have a counterpart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects.rules import (
    IGNORED,
    READ,
    Table,
    Untranslatable,
    an_object,
    apply,
    copied,
    is_flag,
    is_text,
    objects,
    only,
    text,
)

NEUTRAL: Mapping[str, Any] = {"type": "object", "properties": {}}
"""The schema of a tool without arguments."""
_FUNCTION: Table = {
    "name": copied("name", is_text),
    "description": copied("description", is_text),
    "parameters": READ,
    "strict": READ,
}
CHAT_TOOL: Table = {"type": only("function"), "function": READ}
RESPONSES_TOOL: Table = {
    **_FUNCTION,
    "type": only("function"),
    "defer_loading": only(False),
    "async": only(False),
    "allowed_callers": only(["direct"]),
    "output_schema": IGNORED,
}
MESSAGES_TOOL: Table = {
    "type": only("custom"),
    "name": copied("name", is_text),
    "description": copied("description", is_text),
    "input_schema": READ,
    "strict": copied("strict", is_flag),
    "cache_control": IGNORED,
    "eager_input_streaming": IGNORED,
    "input_examples": IGNORED,
    "defer_loading": only(False),
    "allowed_callers": only(["direct"]),
}
_CHOICES = {"none": "none", "auto": "auto", "required": "any"}
_OTHER_CHOICES = {"none": "none", "auto": "auto", "any": "required"}


def from_openai(body: Mapping[str, Any], *, nested: bool) -> dict[str, Any]:
    """`tools` and `tool_choice` for the Messages API. In chat/completions a function is `nested`. Raises
    Untranslatable."""
    found = []
    for index, tool in enumerate(objects(body.get("tools"), "tools")):
        place = f"tools[{index}]"
        if tool.get("type") != "function":
            raise Untranslatable(f"{place}.type", f"{place}.type must be function for this model.")
        if nested:
            apply(CHAT_TOOL, tool, place)
            place += ".function"
            tool = an_object(tool.get("function"), place)
        found.append(_tool(tool, place, _FUNCTION if nested else RESPONSES_TOOL))
    choice = _choice(body.get("tool_choice"), nested)
    parallel = body.get("parallel_tool_calls")
    if parallel is not None and not is_flag(parallel):
        raise Untranslatable("parallel_tool_calls", "parallel_tool_calls must be true or false.")
    if not found:
        if choice["type"] in ("any", "tool"):
            raise Untranslatable("tool_choice", "tool_choice needs tools.")
        return {}
    if parallel is False and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return {"tools": found} if choice == {"type": "auto"} else {"tools": found, "tool_choice": choice}


def _tool(function: dict[str, Any], place: str, table: Table) -> dict[str, Any]:
    tool = apply(table, function, place)
    text(tool.get("name"), f"{place}.name")
    schema = an_object(function.get("parameters"), f"{place}.parameters") or NEUTRAL
    tool["input_schema"] = schema if "type" in schema else {"type": "object", **schema}
    if function.get("strict") is True:
        tool["strict"] = True
    return tool


def _choice(choice: object, nested: bool) -> dict[str, Any]:
    if choice is None:
        return {"type": "auto"}
    if isinstance(choice, str) and choice in _CHOICES:
        return {"type": _CHOICES[choice]}
    if isinstance(choice, dict) and choice.get("type") == "function":
        named = choice.get("function") if nested else choice
        if isinstance(named, dict) and isinstance(named.get("name"), str):
            return {"type": "tool", "name": named["name"]}
    raise Untranslatable("tool_choice")


def to_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """`tools`, `tool_choice` and `parallel_tool_calls` for chat/completions. Raises Untranslatable."""
    found = []
    for index, tool in enumerate(objects(body.get("tools"), "tools")):
        place = f"tools[{index}]"
        function = apply(MESSAGES_TOOL, tool, place)
        text(function.get("name"), f"{place}.name")
        function["parameters"] = an_object(tool.get("input_schema"), f"{place}.input_schema")
        found.append({"type": "function", "function": function})
    if not found:
        return {}
    result: dict[str, Any] = {"tools": found}
    choice = an_object(body.get("tool_choice"), "tool_choice")
    kind = choice.get("type", "auto")
    if kind == "tool" and isinstance(choice.get("name"), str):
        result["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    elif isinstance(kind, str) and kind in _OTHER_CHOICES:
        if kind != "auto":
            result["tool_choice"] = _OTHER_CHOICES[kind]
    else:
        raise Untranslatable("tool_choice")
    if choice.get("disable_parallel_tool_use") is True:
        result["parallel_tool_calls"] = False
    return result
