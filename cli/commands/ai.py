"""`ai check`: calls each model at each of its servers once."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from collections.abc import AsyncIterator
from typing import Any

from cli.terminal.outcome import CommandResult
from outbound.ai.config import load_models
from outbound.ai.models import Model, Models
from outbound.ai.probe import ProbeResult, probe
from settings.declared import Settings
from store.credits.credits import CURRENCY, SCALE, exact_dollars
from store.credits.prices import KINDS
from store.refused import Refused

AT_ONCE = 4
"""Calls in progress. More could run into a limit of a server."""
COLUMNS = ("model", "server", "result", "inputTokens", "outputTokens", "cost", "time", "detail")


def check_models(settings: Settings, args: Namespace) -> CommandResult:
    """Calls the models, those of `--model` alone if given. The exit status is 1 if a call failed. Raises ConfigError,
    Refused("not_found")."""
    return asyncio.run(_check(load_models(settings.ai_config), args))


async def _check(models: Models, args: Namespace) -> CommandResult:
    as_json, rows, failed = getattr(args, "json", False), [], 0
    try:
        wanted = [model for model in models.every() if args.model in (None, model.model_id)]
        if not wanted:
            raise Refused("not_found", "There is no model of this name in the file of --ai-config.")
        async for answer in _answers([one for model in wanted for one in model.candidates]):
            failed += bool(answer.error)
            if as_json:
                print(json.dumps(_record(answer)), flush=True)
            else:
                rows.append(_row(answer))
    finally:
        await models.close()
    total = len(rows)
    note = f"{failed} of {total} calls failed." if failed else ""
    return CommandResult({"calls": rows} if rows else {}, COLUMNS, note=note, status=1 if failed else 0)


async def _answers(candidates: list[Model]) -> AsyncIterator[ProbeResult]:
    """The answers in the order of the file, each as soon as those before it are there."""
    places = asyncio.Semaphore(AT_ONCE)

    async def ask(model: Model) -> ProbeResult:
        async with places:
            return await probe(model)

    asked = [asyncio.ensure_future(ask(model)) for model in candidates]
    try:
        for one in asked:
            yield await one
    finally:
        for one in asked:
            one.cancel()


def _record(answer: ProbeResult) -> dict[str, Any]:
    """A call for programs. `cost` is in micro-dollars, `ms` the time in milliseconds."""
    model = answer.model
    record: dict[str, Any] = {
        "model": model.model_id,
        "server": model.upstream.name,
        "upstreamId": model.upstream_id,
        "ok": not answer.error,
        "ms": round(answer.seconds * 1000),
    }
    if answer.error:
        return {**record, "error": answer.error, "detail": answer.detail}
    tokens = {kind: getattr(answer.tokens, kind) for kind in KINDS}
    price = model.price()
    version = None if price is None else price.version
    money = {"cost": answer.cost, "priceVersion": version, "currency": CURRENCY, "scale": SCALE}
    return {**record, "tokens": tokens, **money}


def _row(answer: ProbeResult) -> dict[str, Any]:
    """A call for people."""
    cost = "no price yet" if answer.cost is None else f"{exact_dollars(answer.cost)} {CURRENCY}"
    return {
        "model": answer.model.model_id,
        "server": answer.model.upstream.name,
        "result": answer.error or "ok",
        "inputTokens": "" if answer.error else answer.tokens.prompt,
        "outputTokens": "" if answer.error else answer.tokens.output,
        "cost": "" if answer.error else cost,
        "time": f"{answer.seconds:.2f} s",
        "detail": answer.detail,
    }
