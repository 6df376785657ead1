"""Requests of an OpenAI dialect for a server of the same dialect: what is changed, and what is refused because it is
billed by other measures. All other fields go on as they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outbound.ai.dialects.chat_request import output_limit
from outbound.ai.dialects.content import is_sealed
from outbound.ai.dialects.rules import READ, Rule, Table, Untranslatable, an_object, is_whole, objects, only

MOST_CHOICES = 16
ENCRYPTED = "reasoning.encrypted_content"
REFUSED = only()
_LANES = only("auto", "default")
CHAT: Table = {
    "n": READ,
    "messages": READ,
    "tools": READ,
    "functions": READ,
    "store": READ,
    "service_tier": _LANES,
    "modalities": only(["text"]),
    "audio": REFUSED,
    "prediction": REFUSED,
    "web_search_options": REFUSED,
    "moderation": REFUSED,
}
RESPONSES: Table = {
    "input": READ,
    "tools": READ,
    "store": READ,
    "include": READ,
    "service_tier": _LANES,
    "background": only(False),
    "background_options": REFUSED,
    "previous_response_id": REFUSED,
    "conversation": REFUSED,
    "prompt": REFUSED,
    "context_management": REFUSED,
    "moderation": REFUSED,
    "truncation": READ,
}
"""Fields that change what a call costs or where its content stays. A field without a row goes on."""
TOOLS = ("function", "custom")
"""Tools that an app runs. A tool that the server runs is billed by the call."""
_UNMEASURED = ("file_id", "file_url", "file_data", "audio", "input_audio")
_ADDRESSES = ("url", "image_url")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request for the server. `choices` answers are written, each of at most `most_output` tokens; with input that is
    not `measured` by the request's size the model may read as much as it can. `usage`: the app wants the report of a
    stream."""

    body: dict[str, Any]
    most_output: int
    choices: int = 1
    measured: bool = True
    usage: bool = True


def chat(body: Mapping[str, Any], model: str, most_output: int, limit_field: str = "max_completion_tokens") -> Prepared:
    """A request of chat/completions. `model` is the server's name of the model, and `limit_field` the server's name
    of the output limit, where the app sends none. Raises Untranslatable."""
    _check(CHAT, body)
    choices = 1 if body.get("n") is None else body["n"]
    if not is_whole(choices) or not 1 <= choices <= MOST_CHOICES:
        raise Untranslatable("n", f"n must be 1 to {MOST_CHOICES}.")
    _check_tools(body)
    limit = output_limit(body, most_output)
    result = {name: value for name, value in body.items() if value is not None and name != "store"}
    limits: list[str] = [name for name in ("max_tokens", "max_completion_tokens") if name in result] or [limit_field]
    result |= {"model": model, **dict.fromkeys(limits, limit)}
    options = an_object(body.get("stream_options"), "stream_options")
    if body.get("stream") is True:
        result["stream_options"] = {**options, "include_usage": True}
    return Prepared(result, limit, choices, _is_measured(body.get("messages")), options.get("include_usage") is True)


def responses(body: Mapping[str, Any], model: str, most_output: int) -> Prepared:
    """A request of responses, which the server does not keep. `model` is the server's name of the model. Raises
    Untranslatable."""
    _check(RESPONSES, body)
    _check_tools(body)
    limit = body.get("max_output_tokens")
    if limit is not None and (not is_whole(limit) or limit < 1):
        raise Untranslatable("max_output_tokens", "max_output_tokens must be a whole number above 0.")
    limit = most_output if limit is None else min(limit, most_output)
    result = {name: value for name, value in body.items() if value is not None}
    result |= {"model": model, "max_output_tokens": limit, "store": False}
    if isinstance(body.get("input"), list):
        result["input"] = [item for item in objects(body["input"], "input") if not _is_lost(item)]
    if _reasons(body):
        # Without a store, the app has to bring back what the model thought.
        include = body.get("include") or []
        if not isinstance(include, list):
            raise Untranslatable("include", "include must be a list.")
        result["include"] = include if ENCRYPTED in include else [*include, ENCRYPTED]
    return Prepared(result, limit, measured=_is_measured(body.get("input")))


def _check(table: Table, body: Mapping[str, Any]) -> None:
    for name, rule in table.items():
        value = body.get(name)
        if value is not None and rule.kind == "only" and not _is_one_of(value, rule):
            raise Untranslatable(name, f"{name} is not supported here.")


def _is_one_of(value: object, rule: Rule) -> bool:
    return any(type(value) is type(known) and value == known for known in rule.values)


def _check_tools(body: Mapping[str, Any]) -> None:
    for index, tool in enumerate(objects(body.get("tools"), "tools")):
        if tool.get("type") not in TOOLS:
            raise Untranslatable(f"tools[{index}].type", f"tools[{index}].type must be {' or '.join(TOOLS)}.")


def _is_lost(item: Mapping[str, Any]) -> bool:
    """Whether an item is thinking that this server can't read: it kept none, or another model's server wrote it."""
    sealed = item.get("encrypted_content")
    return item.get("type") == "reasoning" and (not sealed or is_sealed(sealed))


def _reasons(body: Mapping[str, Any]) -> bool:
    reasoning = an_object(body.get("reasoning"), "reasoning")
    return bool(reasoning) and reasoning.get("effort") != "none"


def _is_measured(content: object) -> bool:
    """Whether the size of the request bounds what the model reads: no files, and no images at an address."""
    waiting = [content]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            if any(item.get(name) is not None for name in _UNMEASURED):
                return False
            if any(isinstance(item.get(name), str) and not item[name].startswith("data:") for name in _ADDRESSES):
                return False
            waiting += item.values()
    return True
