"""The list of models and prices, in our own format and in that of the SDKs."""

from __future__ import annotations

from typing import Any

from handlers.ai.base import AIHandler
from handlers.ai.errors import openai_envelope
from handlers.ai.messages import SdkHandler
from handlers.core.format import iso
from outbound.ai.models import Model
from store.credits.credits import CURRENCY, SCALE
from store.credits.prices import Price
from store.credits.records import SHOWN_KINDS
from store.refused import Refused


class ModelsHandler(AIHandler):
    """The models and their prices."""

    async def get(self) -> None:
        """Answers with all models. Prices are in micro-dollars per million tokens."""
        self.write_window(await self.store.calls.check(await self.caller(), self.needed))
        models = []
        for model in self.site.models.all():
            price = model.price()
            assert price is not None
            prices = {"version": price.version, **prices_of(price)}
            models.append(
                {
                    "id": model.model_id,
                    "displayName": model.display_name,
                    "maxInputTokens": model.max_input,
                    "maxOutputTokens": model.max_output,
                    "pricePerMillionTokens": {**prices, "currency": CURRENCY, "scale": SCALE},
                    **({"pricePerCall": calls} if (calls := call_prices_of(price)) else {}),
                }
            )
        self.write_json({"models": models})


class SharedHandler(SdkHandler):
    """An address that the SDKs of both APIs use. Errors are in the envelope of the Messages API for a request with the
    header that this API requires, and else in that of the OpenAI API."""

    def error_of(self, refusal: Refused) -> dict[str, Any]:
        """The error in the envelope of the caller's API."""
        if self.request.headers.get_list("Anthropic-Version"):
            return self.error_body(refusal, self.request_id)
        return openai_envelope(refusal)


class SdkModelsHandler(SharedHandler):
    """The models in the SDKs' format."""

    async def get(self) -> None:
        """Answers with all models on one page."""
        self.write_window(await self.store.calls.check(await self.caller(), self.needed))
        models = [described(model) for model in self.site.models.all()]
        ids = [model["id"] for model in models]
        page = {
            "object": "list",
            "first_id": ids[0] if ids else None,
            "last_id": ids[-1] if ids else None,
            "has_more": False,
        }
        self.write_json({"data": models, **page})


class SdkModelHandler(SharedHandler):
    """One model in the SDKs' format."""

    async def get(self, model_id: str) -> None:
        """Answers with the model."""
        self.write_window(await self.store.calls.check(await self.caller(), self.needed))
        self.write_json(described(self.model(model_id)))


def described(model: Model) -> dict[str, Any]:
    """A model in the formats of the Messages API and of the OpenAI API, with its prices."""
    price = model.price()
    assert price is not None
    return {
        "type": "model",
        "id": model.model_id,
        "display_name": model.display_name,
        "created_at": iso(model.created_at),
        "object": "model",
        "owned_by": "latchkey",
        "created": int(model.created_at.timestamp()),
        **prices_of(price),
        **call_prices_of(price),
    }


def prices_of(price: Price) -> dict[str, int]:
    """The price of each kind of tokens, in micro-dollars per million."""
    return {shown: price.of(kind) for kind, shown in SHOWN_KINDS.items()}


def call_prices_of(price: Price) -> dict[str, int]:
    """The price of each call of a server's tool, in micro-dollars. Without a price, the tool is not offered."""
    return {} if price.web_search is None else {"webSearch": price.web_search}
