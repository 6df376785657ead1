"""The built-in model `latchkey-echo`: it answers with what it was told last, so that the whole path runs with no
account anywhere."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from typing import Any

from outbound.ai.events import StreamEvent
from outbound.ai.failure import UpstreamFailed
from outbound.ai.models import NOBODY, Asker, Model, Timeouts
from outbound.ai.tokens import count_request, pieces
from store.credits.calls import Price

ECHO = "latchkey-echo"
# A micro-dollar and five, so that what is charged can be checked by looking.
PRICE = Price("echo-1", 1_000_000, 5_000_000)

MAX_TOKENS = 16_384
"""What it reads, and what it writes: it works in the server's event loop, and nobody may wait for it long."""


class EchoUpstream:
    """Runs in the process. `pause` is the time in seconds between two tokens of a stream."""

    name = "echo"

    def __init__(self, pause: float = 0.0) -> None:
        self.limits = Timeouts()
        self._pause = pause

    async def complete(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> dict[str, Any]:
        """The last message of the user."""
        asker.accept()
        said, reason = _answer(request)
        message = _message(model, request)
        message["content"] = [{"type": "text", "text": "".join(said)}] if said else []
        message["stop_reason"] = reason
        message["usage"]["output_tokens"] = len(said)
        return message

    async def stream(
        self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY
    ) -> AsyncGenerator[StreamEvent]:
        """The same, a token an event."""
        asker.accept()
        said, reason = _answer(request)
        yield _event("message_start", message=_message(model, request))
        if said:
            yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            for token in said:
                if self._pause:
                    await asyncio.sleep(self._pause)
                yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": token})
            yield _event("content_block_stop", index=0)
        usage = {"output_tokens": len(said)}
        yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
        yield _event("message_stop")

    async def count_tokens(self, model: Model, request: Mapping[str, Any]) -> int:
        """The tokens of everything that was said. Raises UpstreamFailed for more than it reads."""
        counted = count_request(request, model.max_input)
        if counted > model.max_input:
            raise UpstreamFailed("invalid_request", "echo: too long", "This is more than the model reads.")
        return counted

    def most_input(self, model: Model, request: Mapping[str, Any], size: int) -> int:
        """Exact, up to what it reads: this model counts as we do."""
        return count_request(request, model.max_input)

    async def close(self) -> None:
        """Has nothing open."""


def echo_model(pause: float = 0.0) -> Model:
    """The model as it is offered."""
    always = datetime(2026, 1, 1, tzinfo=UTC)
    return Model(ECHO, "Latchkey Echo", EchoUpstream(pause), ECHO, MAX_TOKENS, MAX_TOKENS, ((always, PRICE),))


def _answer(request: Mapping[str, Any]) -> tuple[list[str], str]:
    """The tokens of the answer, and why it ends."""
    last = next((message for message in reversed(request["messages"]) if message["role"] == "user"), None)
    content = last["content"] if last else ""
    if isinstance(content, list):
        content = "\n".join(block["text"] for block in content if block.get("type") == "text")
    said = pieces(content)
    if len(said) > request["max_tokens"]:
        return said[: request["max_tokens"]], "max_tokens"
    return said, "end_turn"


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
