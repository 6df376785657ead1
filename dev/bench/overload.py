"""Sends twice as much as the server can handle for a minute: measures accepted and refused requests, and recovery.

python -m dev.bench.overload [--seconds N] [--times N] [--people N] [--json FILE] [--page FILE]

The sustainable load is what one process serves on its core in a closed loop (document reads over 64 connections). Then
the load is a multiple of that in an open loop: requests are due at random times, whatever happened to earlier ones. The
same is measured once more without the bound.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from dev.bench.cores import Cores
from dev.bench.measure import ROOT, Unexpected, percentile, progress, table
from dev.bench.parts import results
from dev.bench.parts.latchkey import Latchkey
from dev.bench.parts.options import RESULTS, count, end_on_sigterm
from dev.bench.parts.probe import Probe, Seen
from dev.bench.parts.wrk import Burst, Unanswered, burst, check_installed
from dev.lab.processes import Process
from runtime import event_loop

ENDPOINT = "document GET"
QUIET = 200.0
"""Requests per second before and after the load."""
BEFORE, AFTER = 5.0, 10.0
"""Seconds before and after the load."""
FOLLOWED = 3
"""Seconds of each burst that determines the sustainable load."""
BURSTS, MOST_BURSTS = 4, 12
"""How many bursts determine it, and how many there may be with those that end before their first answer."""
CALM = 20
"""Consecutive requests with normal answers that end the recovery."""
TIMES_SLOWER = 2.0
"""A normal answer takes at most this many times the 99th percentile before the load."""
TEXT = Path(__file__).resolve().parent / "texts" / "overload.md"
PAGE = ROOT / "docs" / "overload.md"
BOUND, UNBOUND = "with its default bounds", "without a bound of requests"
LOADS = {BOUND: (), UNBOUND: ("--requests", "100000")}


def split(seen: Sequence[Seen], begun: float, ended: float) -> tuple[list[Seen], list[Seen], list[Seen]]:
    """Requests before, during and after the load."""
    return (
        [one for one in seen if one.at < begun],
        [one for one in seen if begun <= one.at < ended],
        [one for one in seen if one.at >= ended],
    )


def recovery(before: Sequence[Seen], after: Sequence[Seen], ended: float) -> float | None:
    """Seconds from the end of the load until answers are normal; None if they never are."""
    usual = TIMES_SLOWER * percentile([one.took for one in before], 99)
    calm: list[Seen] = []
    for one in sorted(after):
        calm = [*calm, one] if one.status == 200 and one.took <= usual else []
        if len(calm) == CALM:
            return max(0.0, calm[0].at - ended)
    return None


def figures(seen: Sequence[Seen], begun: float, ended: float, unsent: int = 0) -> dict[str, Any]:
    """The results, times in ms; `unsent` requests found no free connection."""
    before, during, after = split(seen, begun, ended)
    accepted = [1000 * one.took for one in during if one.status == 200]
    refused = [1000 * one.took for one in during if one.status == 503]
    seconds = ended - begun
    return {
        "offered": (len(during) + unsent) / seconds,
        "accepted": len(accepted) / seconds,
        "refused": len(refused) / seconds,
        "unsent": unsent / seconds,
        "before": _spread([1000 * one.took for one in before]),
        "during": _spread(accepted),
        "away": _spread(refused),
        "other": sum(one.status not in (200, 503) for one in during),
        "recovery": recovery(before, after, ended),
    }


def _spread(times: Sequence[float]) -> dict[str, float] | None:
    if not times:
        return None
    return {"p50": percentile(times, 50), "p99": percentile(times, 99), "most": max(times), "number": len(times)}


async def _load(process: Process, requests: Sequence[bytes], rate: float, seconds: int) -> dict[str, Any]:
    async with Probe(process.port, requests, QUIET) as probe:
        await asyncio.sleep(BEFORE)
        begun, probe.rate = perf_counter(), rate
        await asyncio.sleep(seconds)
        ended, probe.rate = perf_counter(), QUIET
        await asyncio.sleep(AFTER)
    return figures(probe.seen, begun, ended, probe.unsent)


@contextlib.contextmanager
def undisturbing(core: int) -> Iterator[None]:
    """Pins this process to one core and turns off garbage collection, which would look like a slow answer."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        os.sched_setaffinity(0, usable)


def sustainable_rate(follow: Callable[[], Burst]) -> float:
    """The best rate of the bursts after the first, which warms up: other work on the machine only lowers a rate, and
    may leave a burst without any answer. Raises Unexpected if too many have none."""
    rates: list[float] = []
    for _ in range(MOST_BURSTS):
        with contextlib.suppress(Unanswered):
            rates.append(follow().rate)
        if len(rates) == BURSTS:
            return max(rates[1:])
    raise Unexpected(f"of {MOST_BURSTS} bursts, {MOST_BURSTS - len(rates)} ended before their first answer")


def measure(directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measures both servers, one after another, over one store. Raises Unexpected."""
    cores = Cores.choose()
    loads = {}
    with contextlib.ExitStack() as stack:
        ours = Latchkey(stack, directory / "ours", options.people, cores)
        server = ours.serve()
        row = next(row for row in ours.rows(server) if row.endpoint == ENDPOINT)
        requests = [row.source.sample() for _ in range(options.people)]
        file = row.source.plan(0).file
        sustainable = sustainable_rate(
            partial(burst, server.port, "round", file, 0, connections=64, seconds=FOLLOWED, core=cores.load)
        )
        progress(f"sustainable: {sustainable:,.0f} requests/s")
        stack.enter_context(undisturbing(cores.load))
        for name, flags in LOADS.items():
            process = ours.serve(*flags) if flags else server
            rate = options.times * sustainable
            loads[name] = event_loop.run(_load(process, requests, rate, options.seconds))
            progress(f"{name}: {loads[name]}")
    return {"sustainable": sustainable, "loads": loads}


def load_table(found: dict[str, Any]) -> str:
    """A row for each server."""
    rows = []
    for name, one in found["loads"].items():
        during, away = one["during"], one["away"]
        rows.append(
            (
                name,
                f"{one['offered']:,.0f}",
                f"{one['accepted']:,.0f}",
                f"{one['refused']:,.0f}",
                f"{one['unsent']:,.0f}",
                _times(one["before"]),
                _times(during),
                _times(away),
                "not within 10 s" if one["recovery"] is None else f"{one['recovery']:.2f} s",
            )
        )
    columns = ("asked/s", "served/s", "sent away/s", "no connection/s", "before, ms", "served, ms", "sent away, ms")
    head = ("Latchkey", *columns, "as before after")
    return table(head, rows, words=1)


def _times(spread: dict[str, float] | None) -> str:
    return "none" if spread is None else f"{spread['p50']:,.0f} / {spread['p99']:,.0f} / {spread['most']:,.0f}"


def page(found: dict[str, Any]) -> str:
    """docs/overload.md."""
    how = found["how"]
    return TEXT.read_text("utf-8").format(
        day=found["day"],
        machine=found["machine"],
        sustainable=f"{found['sustainable']:,.0f}",
        times=how["times"],
        seconds=how["seconds"],
        rows=load_table(found),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the table, and writes the figures and the page. Raises Unexpected."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.overload", allow_abbrev=False)
    parser.add_argument("--seconds", type=count, default=60, metavar="N", help="how long (default 60)")
    parser.add_argument("--times", type=count, default=2, metavar="N", help="times the sustainable load (default 2)")
    parser.add_argument("--people", type=count, default=10_000, metavar="N", help="people in the store (default 10000)")
    parser.add_argument("--json", type=Path, default=RESULTS / "overload.json", metavar="FILE", help="where figures go")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="where the page goes")
    options = parser.parse_args(argv)
    check_installed()
    end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp") as directory:
        found = measure(Path(directory), options)
    results.write(options.json, found, seconds=options.seconds, times=options.times, people=options.people)
    read = results.read(options.json)
    options.page.write_text(page(read), "utf-8")
    print(load_table(read))
    return 0


if __name__ == "__main__":
    sys.exit(main())
