"""The tokens that a call has used, from the server's reports and from the received output."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from outbound.ai.events import compact
from outbound.ai.salvage import count_bytes, reported_usage
from outbound.ai.tokens import count, count_request

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_ALL = (*_INPUT, "output_tokens")
_SHOWN = ("text", "partial_json")
MOST_REPORTED = 10**9
"""Tokens. A larger report counts as this many, which is more than any hold."""
_SEALED = ("signature", "data")
"""Fields with hidden thinking: the signature of a block, and the data of a redacted one."""


class Meter:
    """Reads the reply to a request. Tokens read from and written to a cache count as input. Counts by itself what the
    server does not report."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self._reported: dict[str, int] = {}
        self._counted: int | None = None
        self._shown = self._thought = self._sealed = 0
        self.begun = False
        """Whether a stream has begun its message. From then on the server has reported the input, or never will."""
        self.shrank = False
        """Whether a later report was lower than an earlier one."""

    def see_reply(self, reply: Mapping[str, Any]) -> None:
        """Reads a whole reply."""
        self._report(reply.get("usage"), _ALL)
        content = reply.get("content")
        if "output_tokens" not in self._reported and isinstance(content, list):
            for block in content:
                self._receive(block)

    def see_bytes(self, raw: bytes | bytearray, enough: int) -> None:
        """Reads a whole reply that can't be parsed: its usage report, or else its bytes, at most `enough` tokens. Slow
        for large replies: call this in a thread."""
        self._report(reported_usage(raw), _ALL)
        if "output_tokens" not in self._reported:
            self._shown += min(count_bytes(raw, enough), enough)

    def see_event(self, data: Mapping[str, Any]) -> None:
        """Reads an event of a stream."""
        kind = data.get("type")
        if kind == "message_start":
            self.begun = True
            # The report of output is only an estimate at this point: there is no output yet.
            message = data.get("message")
            self._report(message.get("usage") if isinstance(message, dict) else None, _INPUT)
        elif kind == "message_delta":
            self._report(data.get("usage"), _ALL)
        elif kind == "content_block_start":
            self._receive(data.get("content_block"))
        elif kind == "content_block_delta":
            self._receive(data.get("delta"))

    async def count_input(self) -> None:
        """Counts the input if the server didn't report it, in a thread: a megabyte takes some 50 ms."""
        if "input_tokens" not in self._reported and self._counted is None:
            self._counted = await asyncio.to_thread(count_request, self._request)

    def used(self) -> tuple[int, int]:
        """Input and output tokens of a complete reply."""
        return self._input(), self._reported.get("output_tokens", self._received())

    def used_so_far(self) -> tuple[int, int]:
        """Input and output tokens of a reply that was cut short. Its last report may be outdated."""
        return self._input(), max(self._reported.get("output_tokens", 0), self._received())

    def _input(self) -> int:
        if "input_tokens" not in self._reported:
            return count_request(self._request) if self._counted is None else self._counted
        return sum(self._reported.get(name, 0) for name in _INPUT)

    def _received(self) -> int:
        # A signature contains the thinking before it: the same tokens, so the larger figure counts.
        return self._shown + max(self._thought, self._sealed)

    def _report(self, usage: object, names: tuple[str, ...]) -> None:
        if not isinstance(usage, dict):
            return
        for name in names:
            number = usage.get(name)
            if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
                number = min(number, MOST_REPORTED)
                # Reports are cumulative, so the highest is the newest one that can be true.
                self.shrank = self.shrank or number < self._reported.get(name, 0)
                self._reported[name] = max(number, self._reported.get(name, 0))

    def _receive(self, block: object) -> None:
        if not isinstance(block, dict):
            return
        self._shown += sum(_count(block, name) for name in _SHOWN)
        self._thought += _count(block, "thinking")
        self._sealed += sum(_count(block, name) for name in _SEALED)
        if block.get("type") == "tool_use":
            self._shown += 1 + (count(compact(block["input"])) if block.get("input") else 0)


def _count(block: Mapping[str, Any], name: str) -> int:
    text = block.get(name)
    return count(text) if isinstance(text, str) else 0
