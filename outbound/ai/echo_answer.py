"""The answers of the built-in model: the last message again, a call of a tool, or JSON of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.events import compact
from outbound.ai.tokens import pieces

MOST_VALUES = 1_000
"""Values that are made from a schema."""
MOST_DEPTH = 16
MOST_TEXT = 2**16
"""Characters of JSON in such a value. A schema may name one long text many times."""
_TEXT, _MOST_ITEMS = "text", 8


def answer(request: Mapping[str, Any]) -> tuple[list[str], str, str]:
    """The tokens of the answer, its stop reason, and the name of the called tool; the tokens are then its arguments."""
    last = request["messages"][-1]
    if last["role"] == "user" and not _has_result(last) and (tool := _forced(request)):
        said, reason, name = compact(filled(tool.get("input_schema"))), "tool_use", str(tool["name"])
    elif schema := _schema(request):
        said, reason, name = compact(filled(schema)), "end_turn", ""
    else:
        user = next((message for message in reversed(request["messages"]) if message["role"] == "user"), None)
        said, reason, name = _text(user["content"]) if user else "", "end_turn", ""
    tokens = pieces(said)
    if len(tokens) > request["max_tokens"]:
        return tokens[: request["max_tokens"]], "max_tokens", name
    return tokens, reason, name


def filled(schema: Any) -> Any:
    """A value of a JSON schema, as simple as its types allow. What the schema asks beyond types, as a pattern, may be
    missing."""
    return _Filling(schema).value(schema, 0)


class _Filling:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = MOST_VALUES
        self._room = MOST_TEXT

    def value(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        schema = self._resolved(schema)
        if self._left < 0 or depth > MOST_DEPTH:
            return None
        for name in ("const", "default"):
            if name in schema:
                return self._fitting(schema[name])
        for name in ("enum", "examples"):
            if isinstance(known := schema.get(name), list) and known:
                return self._fitting(known[0])
        for name in ("anyOf", "oneOf", "allOf"):
            if isinstance(parts := schema.get(name), list) and parts:
                return self.value(parts[0], depth + 1)
        return self._of_type(_type(schema), schema, depth)

    def _fitting(self, value: Any) -> Any:
        """A value of the schema; None once the room is used up."""
        if self._room <= 0:
            return None
        self._room -= len(compact(value))
        return value if self._room >= 0 else None

    def _of_type(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        if kind == "object":
            properties = schema.get("properties")
            properties = properties if isinstance(properties, dict) else {}
            return {
                name: self.value(of, depth + 1)
                for name, of in properties.items()
                if self._left > 0 and self._fitting(name) is not None
            }
        if kind == "array":
            least = schema.get("minItems")
            number = min(least, _MOST_ITEMS) if isinstance(least, int) else 0
            return [self.value(schema.get("items"), depth + 1) for _ in range(number)]
        if kind in ("integer", "number"):
            least = schema.get("minimum")
            return self._fitting(least) if isinstance(least, int) and not isinstance(least, bool) else 1
        return {"boolean": True, "null": None}.get(kind, _TEXT)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        """The schema, or the one in the same document that it refers to."""
        for _ in range(MOST_DEPTH):
            place = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(place, str):
                break
            schema = self._root
            for step in place.removeprefix("#").strip("/").split("/")[:MOST_DEPTH]:
                if step:
                    schema = schema.get(step) if isinstance(schema, dict) else None
        return schema if isinstance(schema, dict) else {}


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    return kind if isinstance(kind, str) else "object" if "properties" in schema else "string"


def _forced(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The tool that the request demands: the one it names, or the first."""
    choice, tools = request.get("tool_choice"), request.get("tools")
    if not isinstance(choice, dict) or not isinstance(tools, list):
        return None
    named = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    if choice.get("type") == "any":
        return next(iter(named), None)
    if choice.get("type") == "tool":
        return next((tool for tool in named if tool["name"] == choice.get("name")), None)
    return None


def _schema(request: Mapping[str, Any]) -> Any:
    config = request.get("output_config")
    form = config.get("format") if isinstance(config, dict) else None
    return form.get("schema") if isinstance(form, dict) and form.get("type") == "json_schema" else None


def _has_result(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)


def _text(content: Any) -> str:
    """The text of content, that of tool results included."""
    if isinstance(content, str):
        return content
    found = []
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            found.append(block["text"])
        elif block.get("type") == "tool_result":
            found.append(_text(block.get("content")))
    return "\n".join(found)
