"""The built-in model `latchkey-echo`, which repeats the last message, so that calls work without any account
elsewhere. It speaks the Messages API; the other dialects are translated."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from typing import Any

from outbound.ai.echo_answer import answer
from outbound.ai.events import StreamEvent, read_json
from outbound.ai.failure import UpstreamFailed
from outbound.ai.health import Health
from outbound.ai.models import NOBODY, Asker, Model, Timeouts
from outbound.ai.tokens import count_request
from store.credits.prices import Price

ECHO = "latchkey-echo"
# Prices of one and five micro-dollars, so that charges are easy to check.
PRICE = Price("echo-1", 1_000_000, 5_000_000)

MAX_TOKENS = 16_384
"""Tokens that it reads or writes. It runs in the server's event loop, which it may not block for long."""


class EchoUpstream:
    """Runs in this process. `pause` is the time in seconds between two tokens of a stream."""

    name = "echo"
    dialect = "anthropic"
    url = ""
    refuses_unknown = False

    def __init__(self, pause: float = 0.0) -> None:
        self.limits = Timeouts()
        self.health = Health()
        self._pause = pause

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in a helper process only judges requests."""
        return EchoUpstream, ()

    async def complete(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> dict[str, Any]:
        """Repeats the last message of the user, or calls a tool."""
        asker.accept()
        tokens, reason, tool = answer(request)
        message = _message(model, request)
        if tool:
            # Arguments that were cut off are none.
            arguments = read_json("".join(tokens).encode()) if reason == "tool_use" else {}
            message["content"] = [{**_block(tool), "input": arguments}]
        elif tokens:
            message["content"] = [{"type": "text", "text": "".join(tokens)}]
        message["stop_reason"] = reason
        message["usage"]["output_tokens"] = len(tokens)
        return message

    async def stream(
        self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY
    ) -> AsyncGenerator[StreamEvent]:
        """The same, with one token an event."""
        asker.accept()
        tokens, reason, tool = answer(request)
        yield _event("message_start", message=_message(model, request))
        if tokens:
            kind, name = ("input_json_delta", "partial_json") if tool else ("text_delta", "text")
            yield _event("content_block_start", index=0, content_block=_block(tool))
            for token in tokens:
                if self._pause:
                    await asyncio.sleep(self._pause)
                yield _event("content_block_delta", index=0, delta={"type": kind, name: token})
            yield _event("content_block_stop", index=0)
        usage = {"output_tokens": len(tokens)}
        yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
        yield _event("message_stop")

    async def count_tokens(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> int:
        """The number of tokens in the request. Raises UpstreamFailed if the model doesn't read as many."""
        counted = count_request(request, model.max_input)
        if counted > model.max_input:
            raise UpstreamFailed("invalid_request", "echo: too long", "This is more than the model reads.")
        return counted

    def most_input(self, model: Model, request: Mapping[str, Any], size: int) -> int:
        """Exact, up to the limit: this model counts tokens as we do."""
        return count_request(request, model.max_input)

    async def close(self) -> None:
        """Does nothing: there are no connections."""


def echo_model(pause: float = 0.0) -> Model:
    """The model for the list of models."""
    always = datetime(2026, 1, 1, tzinfo=UTC)
    return Model(ECHO, "Latchkey Echo", EchoUpstream(pause), ECHO, MAX_TOKENS, MAX_TOKENS, ((always, PRICE),))


def _block(tool: str) -> dict[str, Any]:
    """The beginning of the answer's block: of a call of this tool, or else of text."""
    if tool:
        return {"type": "tool_use", "id": f"toolu_{secrets.token_hex(12)}", "name": tool, "input": {}}
    return {"type": "text", "text": ""}


def _message(model: Model, request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model.model_id,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": count_request(request), "output_tokens": 0},
    }


def _event(name: str, **fields: Any) -> StreamEvent:
    return StreamEvent(name, {"type": name, **fields})
