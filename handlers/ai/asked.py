"""From the body of an AI call to the exchange with a model, in every dialect. Also runs in a helper process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from handlers.ai.request import read_request
from handlers.core.params import FORM, MOST_VALUES, parse_body
from outbound.ai.dialects.rules import Untranslatable
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.exchange.pairs import from_chat, from_messages, from_responses
from outbound.ai.models import Model, Models
from store.refused import Refused


@dataclass(frozen=True, slots=True)
class Sent:
    """What an app sent: the name of its reader in READERS, the media type of the body, the body, and the values of the
    headers with version and betas."""

    reader: str
    kind: str
    body: bytes
    version: str = ""
    betas: list[str] = field(default_factory=list)


Found = tuple[ModelExchange, Model]


def read_exchange(
    sent: Sent,
    models: Models,
    measure: Callable[[ModelExchange], int] = lambda exchange: exchange.size,
    most_values: int = MOST_VALUES,
) -> tuple[ModelExchange, Model, int]:
    """The request, its model, and an upper bound of its input tokens. `measure` returns the length of the request for
    the server, in bytes. Raises Refused."""
    try:
        exchange, model = READERS[sent.reader](sent, models, most_values)
        size = measure(exchange)
    except Untranslatable as error:
        raise Refused("invalid_request", str(error), param=error.param) from None
    except (ValueError, RecursionError):
        raise Refused("invalid_request", "The body is not valid JSON.") from None
    bound = model.most_input(exchange.request, size)
    if bound > model.max_input:
        raise Refused("invalid_request", f"This model reads at most {model.max_input} tokens.")
    return exchange, model, bound


def find_model(models: Models, model_id: str) -> Model:
    """The model with this id. Raises Refused("not_found")."""
    model = models.find(model_id)
    if model is None:
        raise Refused("not_found", "There is no model of this name; GET /api/v1/ai/models lists them.")
    return model


def _messages(sent: Sent, models: Models, most_values: int) -> Found:
    body = parse_body(sent.kind, sent.body, most_values)
    request = read_request(body, form=sent.kind == FORM, counting=sent.reader == "count")
    model = find_model(models, request.model)
    return from_messages(request.body, model, sent.version, sent.betas, stream=request.stream), model


def _chat(sent: Sent, models: Models, most_values: int) -> Found:
    request, model = _openai(sent, models, most_values)
    return from_chat(request, model, sent.betas), model


def _responses(sent: Sent, models: Models, most_values: int) -> Found:
    request, model = _openai(sent, models, most_values)
    return from_responses(request, model, sent.betas), model


def _openai(sent: Sent, models: Models, most_values: int) -> tuple[dict[str, Any], Model]:
    if sent.kind == FORM:  # no field of this API would have its type
        raise Refused("unsupported_media_type", "Send application/json.")
    request = parse_body(sent.kind, sent.body, most_values).everything()
    if not isinstance(request.get("model"), str):
        raise Refused("invalid_request", "model must be the name of a model.", param="model")
    if not isinstance(request.get("stream"), bool | None):
        raise Refused("invalid_request", "stream must be true or false.", param="stream")
    return request, find_model(models, request["model"])


READERS: Mapping[str, Callable[[Sent, Models, int], Found]] = MappingProxyType(
    {"messages": _messages, "count": _messages, "chat": _chat, "responses": _responses}
)
"""Readers of requests. `count`: a request of the Messages API whose tokens are only counted."""
