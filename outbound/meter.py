"""What a call has used, from what its server reports and from what was delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.events import compact
from outbound.tokens import count, count_request

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_ALL = (*_INPUT, "output_tokens")
_DELTAS = ("text", "partial_json", "thinking")


class Meter:
    """Watches the reply to a request. Tokens read from and written to a cache count as input. What the server does not
    report is counted by us."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self._reported: dict[str, int] = {}
        self._delivered = 0
        self.has_output = False
        """Whether the reply holds anything at all. The stop sequence that it ended with is an answer, too."""

    def see_reply(self, reply: Mapping[str, Any]) -> None:
        """A whole reply, delivered at once."""
        self._report(reply.get("usage"), _ALL)
        self._stop(reply)
        content = reply.get("content")
        for block in content if isinstance(content, list) else ():
            self._deliver(block)

    def see_event(self, data: Mapping[str, Any]) -> None:
        """What an event reports; it is not delivered yet."""
        if data.get("type") == "message_start" and isinstance(data.get("message"), dict):
            # What it says of the output here it says before there is any.
            self._report(data["message"].get("usage"), _INPUT)
        elif data.get("type") == "message_delta":
            self._report(data.get("usage"), _ALL)
            self._stop(data.get("delta"))

    def delivered(self, data: Mapping[str, Any]) -> None:
        """An event that has gone out."""
        if data.get("type") == "content_block_start":
            self._deliver(data.get("content_block"))
        elif data.get("type") == "content_block_delta":
            self._deliver(data.get("delta"))

    def used(self) -> tuple[int, int]:
        """Input and output tokens of a call that ran to its end."""
        if not self.has_output:
            return 0, 0
        return self._input(), self._reported.get("output_tokens", self._delivered)

    def used_so_far(self) -> tuple[int, int]:
        """The same for one that was cut off: the last report may be far behind what went out."""
        if not self.has_output:
            return 0, 0
        return self._input(), self._delivered

    def _input(self) -> int:
        if "input_tokens" not in self._reported:
            return count_request(self._request)
        return sum(self._reported.get(name, 0) for name in _INPUT)

    def _report(self, usage: object, names: tuple[str, ...]) -> None:
        if not isinstance(usage, dict):
            return
        for name in names:
            number = usage.get(name)
            if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
                self._reported[name] = number

    def _stop(self, ending: object) -> None:
        if isinstance(ending, Mapping) and isinstance(ending.get("stop_sequence"), str):
            self.has_output = True

    def _deliver(self, block: object) -> None:
        if not isinstance(block, dict):
            return
        said = [block[name] for name in _DELTAS if isinstance(block.get(name), str)]
        tokens = sum(count(text) for text in said)
        if block.get("type") == "tool_use":
            tokens += 1 + (count(compact(block["input"])) if block.get("input") else 0)
        self._delivered += tokens
        self.has_output = self.has_output or tokens > 0 or block.get("type") == "redacted_thinking"
