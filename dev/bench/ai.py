"""AI calls: the latency that Latchkey adds to a model server, and the calls that one core can relay.

    python -m dev.bench.ai [--seconds N] [--burst N] [--connections N] [--events N] [--long N] [--asked N]
        [--streams N] [--people N] [--only-memory]

A stub takes the place of the model server. Short bursts of the same requests go to it directly and through Latchkey in
turn, so other work on the machine affects both alike.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub, truediv
from pathlib import Path
from statistics import median
from time import monotonic

from dev.bench import open_streams
from dev.bench.measure import in_rounds, progress, table
from dev.bench.parts.calling import CREDITS, Direct, Load, Reply, Through, latchkey, stub
from dev.bench.parts.filling import FilledStore
from store.lifetimes import AI

FEW = (1, 8)  # connections
PAUSE = 1  # ms between two events of a short stream
LONG_PAUSE = 10  # ms between two events of a long stream: each comes alone


@dataclass(frozen=True, slots=True)
class Plan:
    """The loads of a round."""

    whole: Reply
    short: Reply
    alone: Reply
    together: Reply
    connections: int

    @classmethod
    def of(cls, options: argparse.Namespace) -> Plan:
        """The loads that the options request."""
        return cls(
            Reply(options.events, PAUSE, False, options.asked),
            Reply(options.events, PAUSE, True, options.asked),
            Reply(options.long, LONG_PAUSE, True, options.asked),
            Reply(options.long, 0, True, options.asked),
            options.connections,
        )

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All loads."""
        return self.whole, self.short, self.alone, self.together

    def loads(self) -> list[Load]:
        """The loads in the order of a round."""
        few = [Load(reply, number) for reply in (self.whole, self.short) for number in FEW]
        return [*few, *(Load(reply, self.connections) for reply in self.replies)]


async def run_rounds(ways: Sequence[Direct], plan: Plan, seconds: float, burst: float) -> None:
    """Measures every load on every way in every round, at least once; each round starts with another way."""
    turns = deque(ways)
    loads = plan.loads()
    try:
        rounds = await in_rounds(turns, lambda: _round(turns, loads, burst), ways, seconds)
    finally:
        for way in ways:
            way.close()
    progress(f"{rounds} rounds of {len(loads)} loads on {len(ways)} ways, {burst:g} s each")


async def _round(ways: Sequence[Direct], loads: Sequence[Load], burst: float) -> None:
    for load in loads:
        for way in ways:
            await way.measure(load, burst)


def latency_table(direct: Direct, through: Direct, plan: Plan) -> str:
    """The latency of a call on each way, and the difference within the same round."""
    rows = []
    for name, reply, measured in (
        ("whole", plan.whole, "latencies"),
        ("stream: first event", plan.short, "firsts"),
        ("stream: longest pause", plan.short, "pauses"),
        ("stream: end", plan.short, "latencies"),
    ):
        for connections in FEW:
            load = Load(reply, connections)
            cells = []
            for percent in (50, 99):
                near, far = (way.samples[load].percentiles(measured, percent) for way in (direct, through))
                added, ratio = median(map(sub, far, near)), median(map(truediv, far, near))
                cells += [f"{median(near):.2f}", f"{median(far):.2f}", f"{added:+.2f} (×{ratio:.2f})"]
            rows.append((name, str(connections), *cells))
    figures = (f"{what}p{percent}, ms" for percent in (50, 99) for what in ("stub ", "Latchkey ", "added "))
    return table(("call", "connections", *figures), rows)


def load_table(direct: Direct, through: Direct, plan: Plan) -> str:
    """Requests per second with all connections busy, and the cost of one for the process that answers."""
    rows = []
    for name, reply in (("whole", plan.whole), (f"stream of {plan.short.all_events} events", plan.short)):
        load = Load(reply, plan.connections)
        for way in (direct, through):
            mine, other = way.samples[load], direct.samples[load]
            ratio = median(map(truediv, mine.rates, other.rates))
            rows.append(
                (
                    name,
                    way.name,
                    f"{median(mine.rates):,.0f} (×{ratio:.3f})",
                    f"{1000 * mine.cpu_each:.3f}",
                    f"{1 / mine.cpu_each:,.0f} (×{other.cpu_each / mine.cpu_each:.3f})",
                    f"{1e6 * mine.script_each:,.0f}",
                )
            )
    return table(("call", "to", "requests/s", "CPU, ms", "requests/s per core", "scripts, µs"), rows)


def event_table(direct: Direct, through: Direct, plan: Plan) -> str:
    """The cost of an event of a long stream for the process that relays it."""
    rows = []
    for name, reply in ((f"{LONG_PAUSE} ms apart", plan.alone), ("all at once", plan.together)):
        load = Load(reply, plan.connections)
        rates = [reply.all_events * median(way.samples[load].rates) for way in (direct, through)]
        each = through.samples[load].cpu_each / reply.all_events
        cells = (*(f"{rate:,.0f}" for rate in rates), f"{1e6 * each:.1f}", f"{1 / each:,.0f}")
        rows.append((name, f"{reply.all_events:,}", *cells))
    header = ("events", "in a stream", "stub, events/s", "Latchkey, events/s", "CPU, µs", "events/s per core")
    return table(header, rows)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.ai", allow_abbrev=False)
    for name, kind, default, text in (
        ("seconds", _seconds, 120.0, "how long to measure"),
        ("burst", _seconds, 1.0, "how long each burst is"),
        ("connections", _count, 32, "concurrent requests that keep the server busy"),
        ("events", _count, 20, "events of text in a short stream, and tokens of a whole reply"),
        ("long", _count, 400, "events of text in a long stream"),
        ("asked", _bytes, 100, "bytes of text in a request"),
        ("streams", _count, 1_000, "streams to hold open for memory"),
        ("people", _count, 500, "people who call"),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=f"{text} (default {default:g})")
    parser.add_argument("--only-memory", action="store_true", help="measure only the memory of open streams")
    options = parser.parse_args(argv)
    if options.people * AI.limit < options.streams + open_streams.WARM:
        parser.error(f"argument --people: each has {AI.limit} calls a minute, too few for these streams")
    return options


def _count(text: str) -> int:
    if not 1 <= int(text) <= 4_000:
        raise ValueError
    return int(text)


def _bytes(text: str) -> int:
    if not 5 <= int(text) <= 150_000:
        raise ValueError
    return int(text)


def _seconds(text: str) -> float:
    # An access token lives an hour, including the time to fill the store.
    if not 0 < float(text) <= 1800:
        raise ValueError
    return float(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, and prints the figures in Markdown. Raises Unexpected."""
    options = parse(argv)
    plan = Plan.of(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that stores and servers end with this process
    open_streams.room_for(options.streams)
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="latchkey-bench-")))
        store = stack.enter_context(FilledStore.started(directory / "store"))
        upstream = stack.enter_context(stub(directory))
        start = monotonic()
        pairs = store.mint(options.people, CREDITS)
        progress(f"{len(pairs)} people with credits and a token each in {monotonic() - start:.1f} s")
        memory = asyncio.run(
            open_streams.measure(store, pairs, upstream, options.streams, options.asked, directory / "memory")
        )
        progress(f"{options.streams} streams opened")
        if options.only_memory:
            print(memory.printed())
            return 0
        direct = Direct(upstream)
        through = Through(
            stack.enter_context(latchkey(store, upstream, plan.replies, directory / "load")), store, pairs
        )
        asyncio.run(run_rounds((direct, through), plan, options.seconds, options.burst))
        tables = (make(direct, through, plan) for make in (latency_table, load_table, event_table))
        print(*tables, memory.printed(), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
