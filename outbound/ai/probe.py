"""Calls a model once, for the operator: whether it answers, its tokens, their price, and the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outbound.ai.exchange.pairs import from_messages
from outbound.ai.failure import UpstreamFailed
from outbound.ai.models import Asker, Model
from outbound.ai.openai_meter import METERS
from store.credits.prices import TokenCounts

QUESTION: Mapping[str, Any] = {"messages": [{"role": "user", "content": "Reply with the word: ok"}]}
MAX_TOKENS = 64
"""The most that an answer may have; some servers refuse fewer than 16."""


NOTHING = TokenCounts()


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One call. `tokens` and `cost` (micro-dollars; None if no price applies) are those of the answer; `seconds` is the
    time until it was complete. `error` is the catalogue's code of a failure, and empty otherwise; `detail` says more
    and contains no key."""

    model: Model
    seconds: float
    tokens: TokenCounts = NOTHING
    cost: int | None = 0
    error: str = ""
    detail: str = ""


async def probe(model: Model) -> ProbeResult:
    """Calls the model at its first server, for at most the total time of a call."""
    began = time.monotonic()
    exchange = from_messages({**QUESTION, "max_tokens": MAX_TOKENS}, model, "", [], stream=False)
    request, asker = exchange.ask(exchange.most_output), Asker()
    asker.dialect = exchange.asks
    try:
        async with asyncio.timeout(model.upstream.limits.total):
            reply = await model.upstream.complete(model, request, asker)
    except UpstreamFailed as failed:
        return ProbeResult(model, time.monotonic() - began, error=failed.code, detail=failed.detail)
    except TimeoutError:
        detail = f"{model.upstream.name}: more than {model.upstream.limits.total:g} s"
        return ProbeResult(model, time.monotonic() - began, error="upstream_timeout", detail=detail)
    seconds = time.monotonic() - began
    meter = METERS[exchange.asks](request)
    meter.see_reply(reply)
    await meter.count_input()
    price, tokens = model.price(), meter.used().bounded
    return ProbeResult(model, seconds, tokens, None if price is None else price.cost(tokens))
