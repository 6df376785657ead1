"""The pairs of dialects: which exchange serves an app's request for a model."""

from __future__ import annotations

from typing import Any

from outbound.ai.dialects import messages_same
from outbound.ai.dialects.rules import Untranslatable
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.exchange.chat import ChatOverMessages, SameChat
from outbound.ai.exchange.messages import MessagesOverChat, SameMessages
from outbound.ai.exchange.responses import ResponsesOverMessages, SameResponses
from outbound.ai.models import Model


def from_messages(body: dict[str, Any], model: Model, version: str, betas: list[str], *, stream: bool) -> ModelExchange:
    """The exchange of a request of the Messages API, whose headers have a version and betas. Raises Untranslatable."""
    strict = model.refuses_unknown
    headers = messages_same.forwarded_headers(version, betas, strict=strict)
    found: ModelExchange
    searches = messages_same.searches(body)
    price = model.price() if searches else None
    if searches and (model.upstream.dialect != "anthropic" or price is None or price.web_search is None):
        raise Untranslatable("tools", f"tools: {messages_same.WEB_SEARCH} is not offered for this model.")
    if model.upstream.dialect == "anthropic":
        if strict:
            messages_same.check({name: value for name, value in body.items() if name != "max_tokens"}, strict=True)
        found = SameMessages(body, model)
        found.headers = headers
        found.searches = searches
        found.late = searches > 0  # the first report lacks the tokens of the search results
    else:
        found = MessagesOverChat(body, model, stream=stream)
    found.stream = stream
    return found


def from_chat(body: dict[str, Any], model: Model, betas: list[str]) -> ModelExchange:
    """The exchange of a request of chat/completions. Raises Untranslatable."""
    same = model.upstream.dialect == "openai"
    found = SameChat(body, model, betas) if same else ChatOverMessages(body, model)
    found.stream = body.get("stream") is True
    return found


def from_responses(body: dict[str, Any], model: Model, betas: list[str]) -> ModelExchange:
    """The exchange of a request of responses. Raises Untranslatable."""
    same = model.upstream.dialect == "openai"
    found = SameResponses(body, model, betas) if same else ResponsesOverMessages(body, model)
    found.stream = body.get("stream") is True
    return found
