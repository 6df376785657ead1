"""/api/v1/ai/v1/chat/completions and /responses: calls in the dialects of the OpenAI API. SPEC 4.6."""

from __future__ import annotations

from typing import Any

from handlers.ai.base import AIHandler
from handlers.ai.calls import CallHandler
from handlers.ai.errors import openai_envelope
from handlers.core.params import FORM, media_type
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.exchange.pairs import from_chat, from_responses
from outbound.ai.models import Model
from store.refused import Refused


class OpenAIHandler(AIHandler):
    """An address of the OpenAI API. Errors are in the envelope that its SDKs know."""

    @classmethod
    def error_body(cls, refusal: Refused, request_id: str) -> dict[str, Any]:
        """The error in that envelope."""
        return openai_envelope(refusal)


class OpenAICallHandler(OpenAIHandler, CallHandler):
    """Makes a call whose body is JSON: in a form, no field of this API would have its type."""

    @classmethod
    def envelope(cls, refusal: Refused) -> dict[str, Any]:
        """An error in the middle of a stream."""
        return openai_envelope(refusal)

    def asked(self) -> tuple[dict[str, Any], Model, list[str]]:
        """The request, its model, and the values of the `OpenAI-Beta` header. Raises Refused."""
        if media_type(self.request) == FORM:
            raise Refused("unsupported_media_type", "Send application/json.")
        body = self.body().everything()
        if not isinstance(body.get("model"), str):
            raise Refused("invalid_request", "model must be the name of a model.", param="model")
        if not isinstance(body.get("stream"), bool | None):
            raise Refused("invalid_request", "stream must be true or false.", param="stream")
        return body, self.model(body["model"]), self.request.headers.get_list("OpenAI-Beta")


class ChatHandler(OpenAICallHandler):
    """chat/completions."""

    dialect = "chat/completions"

    def exchange(self) -> tuple[ModelExchange, Model]:
        """The request in the body, for its model. Raises Refused and Untranslatable."""
        body, model, betas = self.asked()
        return from_chat(body, model, betas), model


class ResponsesHandler(OpenAICallHandler):
    """responses. Nothing is kept."""

    dialect = "responses"

    def exchange(self) -> tuple[ModelExchange, Model]:
        """The request in the body, for its model. Raises Refused and Untranslatable."""
        body, model, betas = self.asked()
        return from_responses(body, model, betas), model


class ResponseHandler(OpenAIHandler):
    """One response. None is kept, so there is never any."""

    async def get(self, response_id: str) -> None:
        """Always Refused("not_found")."""
        window = await self.store.calls.check(await self.caller(), self.needed)
        raise Refused("not_found", "Responses are not kept here: send the whole conversation.", window=window)

    async def delete(self, response_id: str) -> None:
        """Always Refused("not_found")."""
        await self.get(response_id)
