"""Tools that list and call AI models. A call is held and settled like any other. SPEC 4.6."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from handlers.ai.call import Call
from handlers.ai.connection import ClientGone, cost_of
from handlers.ai.errors import envelope
from handlers.ai.models import prices_of
from handlers.mcp.tool import NUMBER, TEXT, Tool, ToolAnswer, ToolCall
from outbound.ai.dialects.rules import Untranslatable
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.exchange.pairs import from_messages
from outbound.ai.models import Model
from store.credits.calls import CallEstimate, Hold
from store.credits.credits import CURRENCY, SCALE
from store.errors import StoreUnavailable
from store.refused import Refused

USUAL_TOKENS, MOST_TOKENS = 1024, 1_000_000


async def list_models(call: ToolCall) -> ToolAnswer:
    """The models and their prices."""
    call.request.write_window(await call.request.store.calls.check(call.caller, call.needed))
    models = []
    for model in call.request.site.models.all():
        price = model.price()
        assert price is not None
        names = {"id": model.model_id, "displayName": model.display_name, "maxOutputTokens": model.max_output}
        models.append({**names, "pricePerMillionTokens": prices_of(price)})
    return ToolAnswer({"models": models, "currency": CURRENCY, "scale": SCALE})


async def ask_model(call: ToolCall) -> ToolAnswer:
    """The answer of a model, and its cost."""
    began, site, store = asyncio.get_running_loop().time(), call.request.site, call.request.store
    model = _model(call)
    exchange, input_tokens = _exchange(call, model)
    # As for other calls: a place comes before the hold, and the hold limits each person's calls.
    with site.ai_calls.place():
        price = model.price()
        assert price is not None
        estimate = CallEstimate(
            model=model.model_id,
            price=price,
            input_tokens=input_tokens,
            output_tokens=exchange.most_output * exchange.choices,
            least_output=exchange.least_output,
            lasts=round((model.total + site.hold_margin) * 1000),
        )
        try:
            held = await store.calls.hold(call.caller, call.needed, estimate)
        except StoreUnavailable:
            site.in_background(store.calls.abandon(call.caller, estimate))
            raise
        assert isinstance(held, Hold)  # without a key there is no earlier reply
        call.request.write_window(held.window)
        deadline = began + model.total
        made = Call(store.calls, held, model, exchange, deadline, site.measures, envelope)
        call.request.take_long(made.hang_up, made.stop)
        try:
            stored, charge = await made.reply()
        except ClientGone:
            raise Refused("invalid_request", "The connection was closed.") from None
        cost = cost_of(exchange, charge, reads=held.reads_credits)
    return ToolAnswer(_answer(json.loads(stored.head + cost + stored.tail)))


def _model(call: ToolCall) -> Model:
    models, name = call.request.site.models, call.arguments.optional("model")
    if name is None:
        usual = models.all()
        if not usual:
            raise Refused("not_found", "This server has no AI model.")
        return usual[0]
    model = models.find(name)
    if model is None:
        raise Refused("not_found", "There is no model of this name. The tool list_models lists them.")
    return model


def _exchange(call: ToolCall, model: Model) -> tuple[ModelExchange, int]:
    """The request to the model, and an upper bound of its input tokens. Raises Refused."""
    prompt, system = call.arguments.text("prompt"), call.arguments.optional("system")
    most = min(model.max_output, MOST_TOKENS)
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": call.arguments.whole("max_tokens", min(USUAL_TOKENS, most), most),
        **({"system": system} if system else {}),
    }
    try:
        exchange = from_messages(body, model, "", [], stream=False)
        bound = model.most_input(exchange.request, exchange.size)
    except Untranslatable as error:
        raise Refused("invalid_request", str(error)) from None
    except ValueError:  # half a character
        raise Refused("invalid_request", "prompt and system must be valid text.") from None
    if bound > model.max_input:
        raise Refused("invalid_request", f"This model reads at most {model.max_input} tokens.")
    return exchange, bound


def _answer(reply: dict[str, Any]) -> dict[str, Any]:
    blocks = [block.get("text") for block in reply.get("content") or () if block.get("type") == "text"]
    usage, credits = reply.get("usage") or {}, reply.get("credits") or {}
    return {
        "text": "".join(text for text in blocks if isinstance(text, str)),
        "model": str(reply.get("model") or ""),
        "stopReason": reply.get("stop_reason"),
        "inputTokens": usage.get("input_tokens", 0),
        "outputTokens": usage.get("output_tokens", 0),
        "charged": credits.get("charged", 0),
        "currency": CURRENCY,
        "scale": SCALE,
        **({"remaining": credits["remaining"]} if "remaining" in credits else {}),
    }


TOOLS = (
    Tool(
        "list_models",
        "List AI models",
        "Lists the AI models that you can ask, and their prices for a million tokens. Amounts are whole numbers: "
        "divide by 10 to the power of `scale` to get an amount in the currency.",
        "credits:spend",
        list_models,
        {"models": {"type": "array", "items": {"type": "object"}}, "currency": TEXT, "scale": NUMBER},
        reads=True,
    ),
    Tool(
        "ask_model",
        "Ask an AI model",
        "Sends a question to an AI model and returns its answer. The person pays for it from their credits, within the "
        "limit that they set for this app.",
        "credits:spend",
        ask_model,
        {
            "text": TEXT,
            "model": TEXT,
            "stopReason": {"type": ["string", "null"]},
            "inputTokens": NUMBER,
            "outputTokens": NUMBER,
            "charged": NUMBER,
            "currency": TEXT,
            "scale": NUMBER,
        },
        {
            "prompt": {**TEXT, "description": "The question, or the whole task."},
            "system": {**TEXT, "description": "How the model should behave."},
            "model": {**TEXT, "description": "A model that list_models lists; the first one if left out."},
            "max_tokens": {**NUMBER, "minimum": 1, "description": "The longest answer, in tokens."},
        },
        ("prompt",),
        outside=True,
    ),
)
