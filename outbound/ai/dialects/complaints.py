"""What an app may read of the complaint of a Messages server about a request. The server's own text may name accounts,
addresses and keys, so only known sentences go on, with their numbers, and the place in the request."""

from __future__ import annotations

import re

from outbound.ai.dialects.messages_same import FIELDS

MAX_TEXT = 2_000
UNKNOWN = "The model's server refused the request."
_NAMES = (
    *("role", "content", "type", "text", "source", "data", "media_type", "url", "base64", "title", "context", "name"),
    *("description", "input", "input_schema", "id", "tool_use_id", "is_error", "cache_control", "ttl", "signature"),
    *("budget_tokens", "display", "edits", "trigger", "keep", "user_id", "format", "effort", "schema", "citations"),
    *("custom", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "search_result"),
    *("disable_parallel_tool_use", "properties", "enabled", "user", "assistant", "system", "str", "value"),
)
"""Steps on the way to a place in a request."""
_STEP = rf"(?:[0-9]{{1,5}}|{'|'.join(_NAMES)})"
_PLACE = re.compile(rf"({'|'.join(map(re.escape, FIELDS))}|max_tokens|stream)((?:\.{_STEP}){{0,12}})(?=: |$)(?:: )?")
_NUMBER = r"[0-9]{1,10}"
_KIND = r"`?(?:text|image|document|thinking|redacted_thinking|tool_use|tool_result)`?"
# Agents act on some of these: they shorten a conversation that is too long.
_KNOWN = tuple(
    re.compile(pattern)
    for pattern in (
        rf"prompt is too long: {_NUMBER} tokens > {_NUMBER} maximum",
        rf"input length and `max_tokens` exceed context limit: {_NUMBER} \+ {_NUMBER} > {_NUMBER}",
        rf"{_NUMBER} > {_NUMBER}, which is the maximum allowed number of output tokens",
        r"`max_tokens` must be greater than `thinking\.budget_tokens`",
        r"[Ff]ield required",
        r"Extra inputs are not permitted",
        r"Input should be an? valid (?:string|integer|number|boolean|list|dictionary|array|object)",
        rf"Input should be (?:greater|less) than(?: or equal to)? {_NUMBER}",
        r"at least one message is required",
        r"text content blocks must be non-empty",
        r"text content blocks must contain non-whitespace text",
        r"all messages must have non-empty content except for the optional final assistant message",
        r"final assistant content cannot end with trailing whitespace",
        r"first message must use the \"user\" role",
        r"roles must alternate between \"user\" and \"assistant\", but found multiple \"(?:user|assistant)\" roles",
        r"`tool_use` ids were found without `tool_result` blocks immediately after",
        r"unexpected `tool_use_id` found in `tool_result` blocks",
        r"each tool_use must have a single result",
        r"`tool_use` ids must be unique",
        r"[Tt]ool names must be unique",
        rf"Expected {_KIND}(?: or {_KIND})?, but found {_KIND}",
        r"Invalid `?signature`? in `?thinking`? block",
        r"JSON schema is invalid",
        r"String should match pattern",
        rf"String should have at (?:least|most) {_NUMBER} characters?",
        rf"List should have at (?:least|most) {_NUMBER} items?",
        rf"image exceeds {_NUMBER} MB maximum",
        r"Could not process image",
        r"image dimensions exceed max allowed size",
        rf"[Aa] maximum of {_NUMBER} blocks with cache_control may be provided",
        r"Request exceeds the maximum size",
    )
)


def complaint(message: str) -> str:
    """The part of a complaint that an app may read: the place, and the sentence if it is a known one."""
    text = message[:MAX_TEXT]
    place = _PLACE.match(text)
    rest = text[place.end() :] if place else text
    said = next((found[0] for known in _KNOWN if (found := known.match(rest))), "")
    where = place[1] + place[2] if place else ""
    if said:
        return f"{where}: {said}" if where else said
    return f"{UNKNOWN[:-1]}: {where}." if where else UNKNOWN
