"""The tokens that a call has used, from the server's reports and from the received output."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects.text_events import TextEvent
from outbound.ai.dialects.usage import of_messages
from outbound.ai.events import StreamEvent, compact
from outbound.ai.salvage import count_bytes, reported_usage
from outbound.ai.tokens import count, count_aside, count_request
from store.credits.prices import TokenCounts

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_SHOWN = ("text", "partial_json")
MOST_PACKED = 2**18
"""Bytes of a request that are compressed, in a few milliseconds at most; a longer one is not."""
_ZLIB = b"\x78"
_SEALED = ("signature", "data")
"""Fields with hidden thinking: the signature of a block, and the data of a redacted one."""


class Meter:
    """Reads the reply of the Messages API to a request. Counts by itself what the server does not report; that input is
    of the kind `input`."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request: Mapping[str, Any] | None = request
        self._packed = b""
        self._input_report: dict[str, Any] = {}
        self._seen: TokenCounts | None = None
        self._output: int | None = None
        self._reasoning = self._searches = self._searched = 0
        self._counted: int | None = None
        self._shown = self._thought = self._sealed = self._prompt = 0
        self.begun = False
        """Whether a stream has begun its message. From then on the server has reported the input, or never will."""
        self.shrank = False
        """Whether a later report was lower than an earlier one."""

    def see_reply(self, reply: Mapping[str, Any]) -> None:
        """Reads a whole reply."""
        self._report(reply.get("usage"))
        content = reply.get("content")
        if self._output is None and isinstance(content, list):
            for block in content:
                self._receive(block)

    def see_bytes(self, raw: bytes | bytearray, enough: int) -> None:
        """Reads a whole reply that can't be parsed: its usage report, or else its bytes, at most `enough` tokens. Slow
        for large replies: call this in a thread."""
        self._report(reported_usage(raw))
        if self._output is None:
            self._shown += min(count_bytes(raw, enough), enough)

    def see(self, event: StreamEvent) -> None:
        """Reads an event of a stream, and its JSON only if it has more than text."""
        if isinstance(event, TextEvent):
            self._see_text(event, count(event.text))
        else:
            self.see_event(event.data)

    def _see_text(self, event: TextEvent, tokens: int) -> None:
        if event.field == "thinking":
            self._thought += tokens
        else:
            self._shown += tokens

    def see_event(self, data: Mapping[str, Any]) -> None:
        """Reads an event of a stream."""
        kind = data.get("type")
        if kind == "message_start":
            self.begun = True
            # The report of output is only an estimate at this point: there is no output yet.
            message = data.get("message")
            self._report(message.get("usage") if isinstance(message, dict) else None, output=False)
        elif kind == "message_delta":
            self._report(data.get("usage"))
        elif kind == "content_block_start":
            self._receive(data.get("content_block"))
        elif kind == "content_block_delta":
            self._receive(data.get("delta"))

    async def count_input(self) -> None:
        """Counts the input if the server didn't report it, in a thread: a megabyte takes some 50 ms."""
        if self._seen is None and self._counted is None:
            known = self._request
            self._counted = await (asyncio.to_thread(self._count_again) if known is None else count_aside(known))

    def let_go(self, text: bytes) -> None:
        """Frees the request, whose JSON is `text`: a stream may wait for minutes. If the server has not reported the
        input, it may still be counted, so it is kept in little space."""
        self._request = None
        if self._seen is None and self._counted is None:
            self._packed = zlib.compress(text, 1) if len(text) <= MOST_PACKED else text

    def _count_again(self) -> int:
        if self._request is not None:
            return count_request(self._request)
        packed = self._packed
        # Without the bounds for JSON of others: a translated request may be deeper than the app's was.
        return count_request(json.loads(zlib.decompress(packed) if packed.startswith(_ZLIB) else packed))

    def used(self) -> TokenCounts:
        """The tokens of a complete reply."""
        return self._used(self._received() if self._output is None else self._output)

    def used_so_far(self) -> TokenCounts:
        """The tokens of a reply that was cut short. Its last report may be outdated."""
        used = self._used(max(self._output or 0, self._received()))
        return used._replace(web_search=max(self._searches, self._searched))

    def _used(self, output: int) -> TokenCounts:
        seen = self._seen
        if seen is None:
            seen = TokenCounts(self._count_again() if self._counted is None else self._counted)
        searches = self._searched if self._output is None else self._searches
        return seen._replace(output=output, reasoning=min(self._reasoning, output), web_search=searches)

    def _received(self) -> int:
        # A signature contains the thinking before it: the same tokens, so the larger figure counts.
        return self._shown + max(self._thought, self._sealed)

    def _report(self, usage: object, *, output: bool = True) -> None:
        if not isinstance(usage, dict):
            return
        # A report of the input may come in parts, so a later one adds to it.
        found = {name: usage[name] for name in _INPUT if is_count(usage.get(name))}
        if isinstance(usage.get("cache_creation"), dict):
            found["cache_creation"] = usage["cache_creation"]
        own = of_messages(usage)
        # Usually there is one report, and reading it is a good part of the work on a short reply.
        before = self._input_report
        latest = {**before, **found} if before else found
        if self._note_input(of_messages(latest) if before else own, reported="input_tokens" in latest):
            self._input_report = latest
        self._searches = max(own.web_search, self._searches)
        if output and is_count(usage.get("output_tokens")):
            self._note_output(own)

    def _note_input(self, found: TokenCounts, *, reported: bool) -> bool:
        """Takes a report of the input, unless it is lower than one before. Reports are cumulative, so the highest is
        the newest one that can be true. It counts as a whole: a token that is input in one report and read from a cache
        in the next one is one token."""
        shrank = found.prompt < self._prompt
        self.shrank = self.shrank or shrank
        if not shrank:
            self._prompt = found.prompt
            if reported:
                self._seen, self._packed = found, b""
        return not shrank

    def _note_output(self, found: TokenCounts) -> None:
        self.shrank = self.shrank or found.output < (self._output or 0)
        self._output = max(found.output, self._output or 0)
        self._reasoning = max(found.reasoning, self._reasoning)

    def _receive(self, block: object) -> None:
        if not isinstance(block, dict):
            return
        self._shown += sum(count_of(block, name) for name in _SHOWN)
        self._thought += count_of(block, "thinking")
        self._sealed += sum(count_of(block, name) for name in _SEALED)
        self._searched += block.get("type") == "server_tool_use" and block.get("name") == "web_search"
        if block.get("type") == "tool_use":
            self._shown += 1 + (count(compact(block["input"])) if block.get("input") else 0)


def is_count(value: object) -> bool:
    """Whether a value may be a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def count_of(block: Mapping[str, Any], name: str) -> int:
    """The number of tokens in a text of a block; none if there is no such text."""
    text = block.get(name)
    return count(text) if isinstance(text, str) else 0
