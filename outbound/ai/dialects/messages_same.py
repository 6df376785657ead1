"""Requests of the Messages API for a server that speaks it too: what is read, and what is refused because it is billed
by other measures. Everything else goes on as it came."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects.rules import READ, Table, Untranslatable, an_object, apply, is_whole, objects, only, shown

REFUSED = only()
FIELDS: Table = {
    **dict.fromkeys(("messages", "system", "tools", "tool_choice", "thinking", "temperature", "top_p", "top_k"), READ),
    **dict.fromkeys(("stop_sequences", "metadata", "output_config", "cache_control", "context_management"), READ),
    "service_tier": only("auto", "standard_only"),  # other lanes have prices of their own
    "speed": only("standard"),
    "inference_geo": only("global"),
    "container": REFUSED,  # billed by time
    "mcp_servers": only([]),  # the server calls tools and reads what they answer, as often as it likes
}
"""Fields that are read, or that change what a call costs. A field without a row goes on, unless the operator refuses
unknown ones."""
_NOT_ALWAYS = frozenset(name for name, rule in FIELDS.items() if rule is not READ)
NOT_OFFERED = frozenset(
    (
        *("fallbacks", "fallback_credit_token", "billing_policy", "user_profile_id", "workspace_id"),
        *("compaction", "thread"),
    )
)
"""Fields that choose another model or payer, ask the model once more, or continue what the server keeps."""
COUNTED = ("messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control")
"""The fields that a count of tokens takes."""
APP_TOOLS = re.compile(r"custom|(?:bash|text_editor|computer|memory)_[0-9]{8}")
"""Tools that the app runs. A tool that the server runs is billed by the call, or reads as much as it likes."""
WEB_SEARCH = "web_search_20250305"
"""The one tool of the server's that may be used, for models with a price of it. Later versions also run code."""
MAX_SEARCHES = 10
TYPED_TOOL_TOKENS = 2_000
"""What the server says to the model about a tool that it knows by its type, at most."""
MEASURED = ("text", "tool_use", "tool_result", "tool_reference", "search_result", "thinking", "redacted_thinking")
_MEASURED_SOURCES = {"image": ("base64",), "document": ("text", "content")}
_SEARCHES = ("server_tool_use", "web_search_tool_result", "web_search_result", "web_search_tool_result_error")
KNOWN_BLOCKS = (*MEASURED, *_MEASURED_SOURCES, *_SEARCHES)
_PAID_BETAS = re.compile(r"(?:context-1m|fast-mode|compact|code-execution|mcp-client|skills|files-api|advisor)-.*")
_FREE_BETAS = re.compile(
    r"(?:claude-code|interleaved-thinking|fine-grained-tool-streaming|prompt-caching|prompt-caching-scope"
    r"|extended-cache-ttl|context-management|token-efficient-tools|computer-use|structured-outputs|effort"
    r"|max-tokens-3-5-sonnet|output-128k|pdfs|token-counting)-[0-9-]{8,10}"
)
_BETA = re.compile(r"[A-Za-z0-9._-]{1,100}")
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MOST_BETAS = 50


def check(body: Mapping[str, Any], *, strict: bool = False) -> None:
    """Raises Untranslatable for what is billed by other measures. `strict`: and for what is unknown here."""
    for name in body:
        if name in _NOT_ALWAYS:
            apply(FIELDS, {name: body[name]})
        elif name in NOT_OFFERED and body[name] is not None:
            raise Untranslatable(name, f"{name} is not supported here.")
    for index, tool in enumerate(objects(body.get("tools"), "tools")):
        kind = tool.get("type", "custom")
        if kind == WEB_SEARCH:
            uses = tool.get("max_uses")
            if not is_whole(uses) or not 1 <= uses <= MAX_SEARCHES:
                param = f"tools[{index}].max_uses"
                raise Untranslatable(param, f"{param}: must be a whole number from 1 to {MAX_SEARCHES}.")
        elif not isinstance(kind, str) or not APP_TOOLS.fullmatch(kind):
            raise Untranslatable(
                f"tools[{index}].type", f"tools[{index}].type: only tools that the app itself runs are offered here."
            )
    _check_edits(body.get("context_management"))
    for block in _all_blocks(body):
        source = block.get("source")
        if block["type"] == "container_upload" or (isinstance(source, dict) and source.get("type") == "file"):
            raise Untranslatable("messages", "Files by id are not offered here: send the content itself.")
        if (
            block["type"] == "tool_addition"
            and an_object(block.get("tool"), "messages").get("type") != "tool_reference"
        ):
            raise Untranslatable("messages", "Only tools of the field tools may be added.")
        if strict and block["type"] not in KNOWN_BLOCKS:
            raise Untranslatable("messages", f"A block {shown(block['type'])} is not supported here.")
    unknown = next((name for name in body if name not in FIELDS), None) if strict else None
    if unknown is not None:
        raise Untranslatable(shown(unknown), f"{shown(unknown)} is not supported here.")


def searches(body: Mapping[str, Any]) -> int:
    """The most searches that the server may make for a request that `check` has passed."""
    tools = objects(body.get("tools"), "tools")
    return sum(tool["max_uses"] for tool in tools if tool.get("type") == WEB_SEARCH)


def is_measured(body: Mapping[str, Any]) -> bool:
    """Whether the size of a request bounds what the model reads: nothing at an address, no PDF, no unknown block."""
    return all(_is_measured(block) for block in _all_blocks(body))


def typed_tools(body: Mapping[str, Any]) -> int:
    """How many tools the server describes to the model itself."""
    return sum(tool.get("type", "custom") != "custom" for tool in objects(body.get("tools"), "tools"))


def forwarded_headers(version: str, betas: list[str], *, strict: bool = False) -> dict[str, str]:
    """The headers of a request that go on: the version, and betas that don't change what is billed. Raises
    Untranslatable."""
    found = {"anthropic-version": version} if _VERSION.fullmatch(version) else {}
    names = [name.strip() for line in betas for name in line.split(",") if name.strip()]
    if len(names) > MOST_BETAS:
        raise Untranslatable("anthropic-beta", "anthropic-beta has too many names.")
    for name in names:
        if not _BETA.fullmatch(name):
            raise Untranslatable("anthropic-beta", "anthropic-beta is a list of names.")
        if _PAID_BETAS.fullmatch(name) or (strict and not _FREE_BETAS.fullmatch(name)):
            raise Untranslatable("anthropic-beta", f"anthropic-beta: {name} is not offered here.")
    return {**found, "anthropic-beta": ",".join(names)} if names else found


def _check_edits(management: object) -> None:
    edits = management.get("edits") if isinstance(management, dict) else None
    for index, edit in enumerate(objects(edits, "context_management.edits")):
        kind = edit.get("type")
        if not isinstance(kind, str) or not kind.startswith("clear_"):  # others ask the model once more
            param = f"context_management.edits[{index}].type"
            raise Untranslatable(param, f"{param}: only edits that clear something are offered here.")


def _is_measured(block: Mapping[str, Any]) -> bool:
    sources, source = _MEASURED_SOURCES.get(block["type"]), block.get("source")
    if sources is None:
        return block["type"] in MEASURED
    return isinstance(source, dict) and source.get("type") in sources


def _all_blocks(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All blocks with a type, also those inside tool results and documents."""
    waiting = [message.get("content") for message in objects(body.get("messages"), "messages")]
    waiting.append(body.get("system"))
    found: list[Mapping[str, Any]] = []
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            if isinstance(item.get("type"), str):
                found.append(item)
            source = item.get("source")
            waiting += [item.get("content"), source.get("content") if isinstance(source, dict) else None]
    return found
