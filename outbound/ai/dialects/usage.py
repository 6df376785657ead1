"""Reports of tokens in the three dialects. Each token counts once: dialects differ in whether input includes what was
read from and written to a cache."""

from __future__ import annotations

from typing import Any

from store.credits.prices import MAX_TOKENS, TokenCounts


def of_messages(usage: object) -> TokenCounts:
    """A report of the Messages API: input, reads and writes are apart. `cache_creation` has the two parts of
    `cache_creation_input_tokens`."""
    if not isinstance(usage, dict):
        return TokenCounts()
    parts = usage.get("cache_creation")
    hour = _count(parts, "ephemeral_1h_input_tokens") if parts else 0
    writes = _count(usage, "cache_creation_input_tokens")
    if not writes and parts:
        writes = min(hour + _count(parts, "ephemeral_5m_input_tokens"), MAX_TOKENS)
    hour = min(hour, writes) if hour else 0
    output = _count(usage, "output_tokens")
    details, tools = usage.get("output_tokens_details"), usage.get("server_tool_use")
    return TokenCounts(
        _count(usage, "input_tokens"),
        output,
        _count(usage, "cache_read_input_tokens"),
        writes - hour,
        hour,
        min(_count(details, "thinking_tokens"), output) if details else 0,
        _count(tools, "web_search_requests") if tools else 0,
    )


def of_chat(usage: object) -> TokenCounts:
    """A report of chat/completions: the prompt includes reads and writes."""
    return _inclusive(usage, "prompt_tokens", "completion_tokens")


def of_responses(usage: object) -> TokenCounts:
    """A report of responses: the input includes reads and writes."""
    return _inclusive(usage, "input_tokens", "output_tokens")


def in_messages(tokens: TokenCounts) -> dict[str, Any]:
    """A report of the Messages API."""
    writes = tokens.cache_write + tokens.cache_write_1h
    usage: dict[str, Any] = {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": writes,
        "cache_read_input_tokens": tokens.cache_read,
        "output_tokens": tokens.output,
    }
    if tokens.reasoning:
        usage["output_tokens_details"] = {"thinking_tokens": tokens.reasoning}
    return usage


def in_chat(tokens: TokenCounts, credits_charged: int | None = None) -> dict[str, Any]:
    """A report of chat/completions. `credits_charged`, in micro-dollars, is its last field."""
    return _inclusively(tokens, ("prompt", "completion"), credits_charged)


def in_responses(tokens: TokenCounts, credits_charged: int | None = None) -> dict[str, Any]:
    """A report of responses. `credits_charged`, in micro-dollars, is its last field."""
    return _inclusively(tokens, ("input", "output"), credits_charged)


def _inclusive(usage: object, whole: str, output: str) -> TokenCounts:
    prompt, written = _count(usage, whole), _count(usage, output)
    details = _part(usage, whole + "_details")
    read = min(_count(details, "cached_tokens"), prompt)
    writes = min(_count(details, "cache_write_tokens"), prompt - read)
    reasoning = min(_count(_part(usage, output + "_details"), "reasoning_tokens"), written)
    return TokenCounts(prompt - read - writes, written, read, writes, 0, reasoning)


def _inclusively(tokens: TokenCounts, names: tuple[str, str], credits_charged: int | None) -> dict[str, Any]:
    whole, output = names
    writes = tokens.cache_write + tokens.cache_write_1h
    usage: dict[str, Any] = {
        f"{whole}_tokens": tokens.prompt,
        f"{whole}_tokens_details": {"cached_tokens": tokens.cache_read, "cache_write_tokens": writes},
        f"{output}_tokens": tokens.output,
        f"{output}_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.output,
    }
    if credits_charged is not None:
        usage["credits_charged"] = credits_charged
    return usage


def _part(usage: object, name: str) -> object:
    return usage.get(name) if isinstance(usage, dict) else None


def _count(usage: object, name: str) -> int:
    number = usage.get(name) if isinstance(usage, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        return 0
    return number if number < MAX_TOKENS else MAX_TOKENS
