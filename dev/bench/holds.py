"""The cost of a hold with a delegated token: each token above it is checked, and counts what the call costs.

    python -m dev.bench.holds [--rounds N] [--calls N]

AI calls are held and settled on an embedded store, without a model server: first with the token of a sign-in, then with
tokens that came from it, each with a part of its own. A budget of the person bounds all of them but the first.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import truediv
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, cast

from dev.bench.measure import progress, table
from dev.bench.parts.filling import FilledStore, Pair
from dev.bench.parts.options import count
from store import keys
from store.apps.registration import Registration
from store.credits.calls import CallEstimate, Hold
from store.credits.prices import Price, TokenCounts
from store.lifetimes import AI, MINUTE, Group
from store.oauth.exchange.token_exchange import WantedToken
from store.results import Caller
from store.wiring import Store

DEPTHS = (0, 1, 3, 5)
"""Tokens above the one that calls."""
CREDITS = 10**12
BUDGET = 10**11
PRICE = Price("1", 1_000_000, 1_000_000)
TOKENS = 10
CALLS = ("hold", "settlement")
FEW = 10
"""Holds of a person at the same time."""


@dataclass
class Way:
    """Calls with one token. `scripts` and `waits`: for each call a figure of each round: µs that the script held the
    store, and ms until the answer."""

    name: str
    caller: Caller
    scripts: dict[str, list[float]] = field(default_factory=lambda: {call: [] for call in CALLS})
    waits: dict[str, list[float]] = field(default_factory=lambda: {call: [] for call in CALLS})


async def ways_of(store: Store, app: Registration, pair: Pair) -> list[Way]:
    """The sign-in's token without a budget, and tokens below one with a budget."""
    ways = [Way("a sign-in, without a budget", pair.caller)]
    grant = keys.grant(pair.caller.user, app.client_id)
    await store.client.hset(grant, mapping={"budget:credits": f"{BUDGET} total 1 0 *", "used:credits": "t1 0"})
    token = pair.token
    for depth in range(max(DEPTHS) + 1):
        if depth:
            subject = await store.token_exchange.subject(app, token, "")
            wanted = WantedToken(details=f"credits {BUDGET} total *")
            token = (await store.token_exchange.exchange(app, subject, wanted, None, "")).access_token
        if depth in DEPTHS:
            opened = store.tokens.open_access(token)
            assert opened is not None
            name = f"{depth} token{'s' * (depth != 1)} above it" if depth else "a sign-in, with a budget"
            ways.append(Way(name, Caller.of(opened, app.scopes)))
    return ways


async def one_round(store: Store, filled: FilledStore, way: Way, calls: int) -> None:
    """Some calls, one after another: a few holds, their settlements, and so on. Notes the medians."""
    took: dict[str, list[tuple[float, float]]] = {call: [] for call in CALLS}

    async def few(call: str, works: Sequence[Callable[[], Awaitable[object]]]) -> list[object]:
        (before, spent), start = filled.script_time(), perf_counter()
        answers = [await work() for work in works]
        seconds = perf_counter() - start
        after, spent_after = filled.script_time()
        assert after - before == len(works), "each is one script"
        took[call].append(((spent_after - spent) / len(works), 1000 * seconds / len(works)))
        return answers

    async def hold() -> Hold:
        estimate = CallEstimate("echo", PRICE, TOKENS, TOKENS, 1, 10 * MINUTE)
        held = await store.calls.hold(way.caller, "credits:spend", estimate)
        assert isinstance(held, Hold)
        return held

    used = TokenCounts(TOKENS, TOKENS)
    for _ in range(max(1, calls // FEW)):
        holds = await few("hold", [hold] * FEW)
        await few("settlement", [partial(store.calls.settle, cast(Hold, one), used) for one in holds])
    for call in CALLS:
        scripts, waits = zip(*took[call], strict=True)
        way.scripts[call].append(median(scripts))
        way.waits[call].append(median(waits))


async def measure(filled: FilledStore, rounds: int, calls: int) -> list[Way]:
    """All ways in turn, in each round."""
    (pair,) = await filled.minted(1, CREDITS)
    async with filled.opened() as store:
        store.rates.ai = Group(AI.name, 10**9)
        app = await store.apps.active(pair.caller.client)
        assert app is not None
        plain, *budgeted = await ways_of(store, app, pair)
        fields = [f"{what}:credits" for what in ("budget", "used")]
        grant = keys.grant(pair.caller.user, app.client_id)
        client: Any = store.client
        for number in range(rounds + 1):
            kept: list[bytes] = await client.hmget(grant, fields)
            await client.hdel(grant, *fields)
            await one_round(store, filled, plain, calls)
            await client.hset(grant, mapping=dict(zip(fields, kept, strict=True)))
            for way in budgeted:
                await one_round(store, filled, way, calls)
            if not number:  # scripts and connections are warm now
                for way in (plain, *budgeted):
                    for samples in (*way.scripts.values(), *way.waits.values()):
                        samples.clear()
    return [plain, *budgeted]


def holds_table(ways: Sequence[Way]) -> str:
    """The figures of each way, compared with the first in the same round."""
    rows = []
    for call in CALLS:
        for way in ways:
            cells = []
            for figures, base, digits in (
                (way.scripts[call], ways[0].scripts[call], 0),
                (way.waits[call], ways[0].waits[call], 2),
            ):
                ratio = median(map(truediv, figures, base))
                cells.append(f"{median(figures):,.{digits}f} (×{ratio:.2f})")
            rows.append((call, way.name, *cells))
    return table(("call", "with the token of", "script, µs", "answer, ms"), rows, words=2)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.holds", allow_abbrev=False)
    parser.add_argument("--rounds", type=count, default=20, metavar="N", help="of each kind of token (default 20)")
    parser.add_argument("--calls", type=count, default=500, metavar="N", help="of a round (default 500)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, and prints the table in Markdown."""
    options = parse(argv)
    with TemporaryDirectory(prefix="bench-", dir="/tmp") as directory, FilledStore.started(Path(directory)) as filled:
        ways = asyncio.run(measure(filled, options.rounds, options.calls))
    progress(f"{options.rounds} rounds of {options.calls} calls with {len(ways)} tokens")
    print(holds_table(ways))
    return 0


if __name__ == "__main__":
    sys.exit(main())
