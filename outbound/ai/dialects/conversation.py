"""Builds requests of the Messages API, and decides whether the model may think."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from outbound.ai.dialects.rules import Untranslatable

Thinking = Literal["adaptive", "budget", "none"]
"""How the model's server takes the wish to think: by effort, by a budget of tokens, or not at all."""
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
"""Reasoning effort, by the names of OpenAI's API. `none` turns thinking off."""
BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 32_768, "max": 65_536}
LEAST_BUDGET = 1_024
_BLOCKS = ("thinking", "redacted_thinking")


class Conversation:
    """Messages whose roles take turns, as the Messages API wants them."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.system: list[dict[str, Any]] = []

    def add(self, role: str, blocks: list[dict[str, Any]]) -> None:
        """Adds blocks to the last message, or to a new one if its role is another. Drops empty text, which the API
        refuses."""
        blocks = [block for block in blocks if block["type"] != "text" or block["text"]]
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def instruct(self, blocks: list[dict[str, Any]]) -> None:
        """Adds instructions. The API knows them before the first message only."""
        self.system += [block for block in blocks if block["text"]]

    def request(self, param: str) -> dict[str, Any]:
        """The request so far. Raises Untranslatable if it has no message."""
        if not self.messages:
            raise Untranslatable(param, f"{param} must have a message with something in it.")
        return {**({"system": self.system} if self.system else {}), "messages": self.messages}


def set_thinking(request: dict[str, Any], reasoning: Mapping[str, Any], style: Thinking, place: str) -> None:
    """Sets thinking and effort from `reasoning` (`effort`, `summary`). Thinking is off where the API would refuse it:
    in a turn that follows a tool call without its thinking, and where a tool is forced. Raises Untranslatable."""
    effort = reasoning.get("effort")
    if effort is not None and effort != "none" and (not isinstance(effort, str) or effort not in EFFORTS):
        raise Untranslatable(place, f"{place} must be none, {', '.join(EFFORTS)}.")
    if style == "none":
        return
    wanted = EFFORTS[effort] if effort and effort != "none" else None
    forced = request.get("tool_choice", {}).get("type") in ("any", "tool")
    if effort == "none" or forced or _bare_tool_turn(request["messages"]):
        request["thinking"] = {"type": "disabled"}
    elif wanted and style == "budget":
        budget = min(BUDGETS[wanted], request["max_tokens"] - 1)
        if budget >= LEAST_BUDGET:
            request["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif wanted:
        shown = {"display": "summarized"} if reasoning.get("summary") else {}
        request["thinking"] = {"type": "adaptive", **shown}
    if wanted and style == "adaptive":
        request["output_config"] = {**request.get("output_config", {}), "effort": wanted}


def _bare_tool_turn(messages: list[dict[str, Any]]) -> bool:
    """Whether the last message has a tool's result, and its turn has no thinking."""
    if messages[-1]["role"] != "user" or not _has(messages[-1], ("tool_result",)):
        return False
    for message in reversed(messages):
        if message["role"] == "user" and not _has(message, ("tool_result",)):
            return True
        if message["role"] == "assistant" and _has(message, _BLOCKS):
            return False
    return True


def _has(message: Mapping[str, Any], kinds: tuple[str, ...]) -> bool:
    return any(block["type"] in kinds for block in message["content"])
