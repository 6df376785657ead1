"""Requests of an OpenAI dialect for a server of the same dialect: what is changed, and what is refused because it is
billed by other measures. All other fields go on as they came."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from outbound.ai.dialects.chat_request import output_limit
from outbound.ai.dialects.content import is_sealed
from outbound.ai.dialects.rules import (
    READ,
    REFERENCE,
    Rule,
    Table,
    Untranslatable,
    an_object,
    is_whole,
    objects,
    only,
    refers,
    shown,
)

MOST_CHOICES = 16
ENCRYPTED = "reasoning.encrypted_content"
REFUSED = only()
_LANES = only("auto", "default")  # other lanes have prices of their own
CHAT: Table = {
    **dict.fromkeys(
        ("model", "messages", "n", "stream", "stream_options", "max_tokens", "max_completion_tokens"), READ
    ),
    **dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"), READ),
    **dict.fromkeys(("temperature", "top_p", "stop", "seed", "frequency_penalty", "presence_penalty"), READ),
    **dict.fromkeys(("logit_bias", "logprobs", "top_logprobs", "response_format", "verbosity"), READ),
    **dict.fromkeys(("reasoning_effort", "metadata", "store", "user", "safety_identifier"), READ),
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"), READ),
    "service_tier": _LANES,
    "modalities": only(["text"]),
    "audio": REFUSED,
    "prediction": REFUSED,  # rejected tokens are billed as output, beyond the output limit
    "web_search_options": REFUSED,  # billed by the search
    "moderation": REFUSED,
}
RESPONSES: Table = {
    **dict.fromkeys(("model", "input", "instructions", "stream", "stream_options", "max_output_tokens"), READ),
    **dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls", "max_tool_calls"), READ),
    **dict.fromkeys(("temperature", "top_p", "top_logprobs", "text", "truncation", "image"), READ),
    **dict.fromkeys(("reasoning", "include", "metadata", "store", "user", "safety_identifier"), READ),
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"), READ),
    "service_tier": _LANES,
    "background": only(False),  # nobody would be there to be charged
    "background_options": REFUSED,
    "previous_response_id": REFUSED,  # what the server keeps belongs to the operator's account
    "conversation": REFUSED,
    "prompt": REFUSED,
    "context_management": REFUSED,  # asks the model once more
    "moderation": REFUSED,
    "access_programs": REFUSED,
}
"""All fields that are known. Those that change what a call costs, or where its content stays, have the values that are
taken. A field without a row goes on, unless the operator refuses unknown ones."""
TOOLS = ("function", "custom", "local_shell", "apply_patch")
"""Tools that an app runs. A tool that the server runs is billed by the call."""
_ITEMS = (
    *("additional_tools", "tool_search_call", "tool_search_output", "mcp_list_tools", "mcp_approval_response"),
    *("compaction_trigger", REFERENCE, "program"),
)
"""Items of an input that bring tools of the server, ask the model once more, or belong to the operator's account."""
_ELSEWHERE = (
    *("models", "fallbacks", "route", "provider", "preset", "plugins", "api_base", "base_url", "api_key"),
    *("search_parameters", "enable_search", "best_of", "use_beam_search"),
)
"""Fields of other servers of these dialects: they choose another model, provider or account, or search the web, or
write several answers."""
_THEIRS = {"file_id": "Files of the server are not offered here. Send the content itself."}
_REPLACED = ("store", "max_tokens", "max_completion_tokens")
_SOUND = ("audio", "input_audio")
_DATA_URL = "data:image/"
_UNMEASURED = ("file_url", "file_data")
_ADDRESSES = ("url", "image_url")
_BETA = re.compile(r"[A-Za-z0-9._=-]{1,100}")
MOST_BETAS = 50


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request for the server. `choices` answers are written, each of at most `most_output` tokens, which stands in
    the fields `limits`. `usage`: the app wants the report of a stream."""

    body: dict[str, Any]
    most_output: int
    limits: tuple[str, ...]
    choices: int = 1
    usage: bool = True


def chat(
    body: Mapping[str, Any],
    model: str,
    most_output: int,
    limit_field: str = "max_completion_tokens",
    *,
    strict: bool = False,
) -> Prepared:
    """A request of chat/completions. `model` is the server's name of the model, and `limit_field` the server's name
    of the output limit: a server may ignore the other name, and write without a limit. `strict`: unknown fields are
    refused. Raises Untranslatable."""
    _check(CHAT, body, strict=strict)
    _check_content(body.get("messages"), "messages")
    choices = 1 if body.get("n") is None else body["n"]
    if not is_whole(choices) or not 1 <= choices <= MOST_CHOICES:
        raise Untranslatable("n", f"n must be 1 to {MOST_CHOICES}.")
    _check_tools(body)
    limit = output_limit(body, most_output)
    result = {name: value for name, value in body.items() if value is not None and name not in _REPLACED}
    result |= {"model": model, limit_field: limit}
    options = an_object(body.get("stream_options"), "stream_options")
    if body.get("stream") is True:
        result["stream_options"] = {**options, "include_usage": True}
    return Prepared(result, limit, (limit_field,), choices, options.get("include_usage") is True)


def responses(body: Mapping[str, Any], model: str, most_output: int, *, strict: bool = False) -> Prepared:
    """A request of responses, which the server does not keep. `model` is the server's name of the model. `strict`:
    unknown fields are refused. Raises Untranslatable."""
    _check(RESPONSES, body, strict=strict)
    _check_content(body.get("input"), "input")
    mode = an_object(body.get("reasoning"), "reasoning").get("mode")
    if mode not in (None, "standard"):  # others write several answers
        raise Untranslatable("reasoning.mode", "reasoning.mode is not supported here.")
    _check_tools(body)
    limit = body.get("max_output_tokens")
    if limit is not None and (not is_whole(limit) or limit < 1):
        raise Untranslatable("max_output_tokens", "max_output_tokens must be a whole number above 0.")
    limit = most_output if limit is None else min(limit, most_output)
    result = {name: value for name, value in body.items() if value is not None}
    result |= {"model": model, "max_output_tokens": limit, "store": False}
    if isinstance(body.get("input"), list):
        items = objects(body["input"], "input")
        for index, item in enumerate(items):
            # An item with neither type nor role is a reference.
            kind = item.get("type") or ("message" if "role" in item else REFERENCE)
            if kind in _ITEMS:
                place = f"input[{index}].type"
                if kind == REFERENCE:
                    raise refers(place)
                raise Untranslatable(place, f"{place}: {kind} is not offered here.")
        result["input"] = [item for item in items if not _is_lost(item)]
    if _reasons(body):
        # Without a store, the app has to bring back what the model thought.
        include = body.get("include") or []
        if not isinstance(include, list):
            raise Untranslatable("include", "include must be a list.")
        result["include"] = include if ENCRYPTED in include else [*include, ENCRYPTED]
    return Prepared(result, limit, ("max_output_tokens",))


def forwarded_headers(betas: list[str], *, strict: bool = False) -> dict[str, str]:
    """The headers of a request that go on: names of betas, none of which is known here. Raises Untranslatable."""
    names = [name.strip() for line in betas for name in line.split(",") if name.strip()]
    if len(names) > MOST_BETAS or not all(_BETA.fullmatch(name) for name in names):
        raise Untranslatable("openai-beta", "openai-beta is a list of names.")
    if strict and names:
        raise Untranslatable("openai-beta", f"openai-beta: {names[0]} is not offered here.")
    return {"openai-beta": ",".join(names)} if names else {}


def _check(table: Table, body: Mapping[str, Any], *, strict: bool) -> None:
    unknown = next((name for name in body if name not in table), None) if strict else None
    if unknown is not None:
        raise Untranslatable(shown(unknown), f"{shown(unknown)} is not supported here.")
    for name in _ELSEWHERE:
        if body.get(name) is not None:
            raise Untranslatable(name, f"{name} is not supported here.")
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


def _check_content(content: object, place: str) -> None:
    """Refuses files of the operator's account, and sound, which has a price of its own."""
    for item in _objects_in(content):
        for name, why in _THEIRS.items():
            if item.get(name) is not None:
                raise Untranslatable(place, f"{name}: {why}")
        for name in _SOUND:
            if item.get(name) is not None:
                raise Untranslatable(place, f"{place}: {name} is not offered here.")


def is_measured(content: object) -> bool:
    """Whether the size of content bounds what the model reads: no files, and no images at an address."""
    for item in _objects_in(content):
        if any(item.get(name) is not None for name in _UNMEASURED):
            return False
        if any(isinstance(item.get(name), str) and not item[name].startswith(_DATA_URL) for name in _ADDRESSES):
            return False
    return True


def is_counted(content: object) -> bool:
    """Whether our own count of the input is near the server's. Nobody but the server knows what an image counts."""
    return is_measured(content) and not pictures(content)


def pictures(content: object) -> int:
    """How many images content has, in whatever parts of it."""
    return sum(
        item.get("type") == "image_generation_call"
        or any(isinstance(item.get(name), str) and item[name].startswith(_DATA_URL) for name in _ADDRESSES)
        for item in _objects_in(content)
    )


def _objects_in(content: object) -> Iterator[Mapping[str, Any]]:
    waiting = [content]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            yield item
            waiting += item.values()
