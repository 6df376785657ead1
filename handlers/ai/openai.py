"""/api/v1/ai/v1/chat/completions and /responses: calls in the dialects of the OpenAI API. SPEC 4.6."""

from __future__ import annotations

from typing import Any

from handlers.ai.base import AIHandler
from handlers.ai.calls import CallHandler
from handlers.ai.errors import openai_envelope
from store.refused import Refused


class OpenAIHandler(AIHandler):
    """An address of the OpenAI API. Errors are in the envelope that its SDKs know."""

    @classmethod
    def error_body(cls, refusal: Refused, request_id: str) -> dict[str, Any]:
        """The error in that envelope."""
        return openai_envelope(refusal)


class OpenAICallHandler(OpenAIHandler, CallHandler):
    """Makes a call whose body is JSON."""

    betas = "OpenAI-Beta"

    @classmethod
    def envelope(cls, refusal: Refused) -> dict[str, Any]:
        """An error in the middle of a stream."""
        return openai_envelope(refusal)


class ChatHandler(OpenAICallHandler):
    """chat/completions."""

    dialect, reader = "chat/completions", "chat"


class ResponsesHandler(OpenAICallHandler):
    """responses. Nothing is kept."""

    dialect = reader = "responses"


class ResponseHandler(OpenAIHandler):
    """One response. None is kept, so there is never any."""

    async def get(self, response_id: str) -> None:
        """Always Refused("not_found")."""
        window = await self.store.calls.check(await self.caller(), self.needed)
        raise Refused("not_found", "Responses are not kept here: send the whole conversation.", window=window)

    async def delete(self, response_id: str) -> None:
        """Always Refused("not_found")."""
        await self.get(response_id)
