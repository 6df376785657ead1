"""Hosted documents: does a read or write cost more when there are more, and what does a stored document cost?

    python -m dev.bench.documents [--documents 10,10000,1000000] [--seconds N] [--connections N]

Each number of documents has its own store and server. All stay up while short bursts of requests go to each in turn, so
other work on the machine affects all alike.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dev.bench.measure import Client, compared, in_rounds, percentile, progress, request, serving, table
from dev.bench.parts.filling import PER_PAIR, FilledStore, Footprint, Pair, document, name_of
from store import keys
from store.lifetimes import DATA_READ, DATA_WRITE

CALLS = {"GET": DATA_READ, "PUT": DATA_WRITE}
MOST_PAIRS = 100
LONGEST_BURST = 200  # requests
SIZE = 1024  # bytes
SIZES = (100, 1024, 10 * 1024)  # bytes


class Sample(NamedTuple):
    """One burst: requests/s, latency percentiles in ms, and the µs that a script call held the store."""

    rate: float
    p50: float
    p99: float
    script: float


DIGITS = (0, 2, 2, 0)  # of the figures of a sample, after the point


@dataclass
class Case:
    """A store with `documents` documents and its server."""

    documents: int
    store: FilledStore
    pairs: list[Pair]
    port: int
    samples: dict[str, list[Sample]] = field(default_factory=lambda: {method: [] for method in CALLS})

    async def measure(self, client: Client, method: str, requests: int, people: int) -> None:
        """Samples one burst: spread evenly over `people`, to random documents of theirs. Empties the rate limit windows
        first, so that no request is refused (SPEC 8.1)."""
        chosen = random.sample(self.pairs, people)
        group = CALLS[method].name
        self.store.client.unlink(*(keys.limit(pair.caller.user, group, pair.caller.client) for pair in chosen))
        sent = [_request(method, chosen[number % people]) for number in range(requests)]
        calls, spent = self.store.script_time()
        burst = await client.burst(sent)
        calls_after, spent_after = self.store.script_time()
        p50, p99 = (1000 * percentile(burst.latencies, percent) for percent in (50, 99))
        script = (spent_after - spent) / (calls_after - calls)
        self.samples[method].append(Sample(requests / burst.seconds, p50, p99, script))

    def forget(self) -> None:
        """Drops the samples."""
        self.samples = {method: [] for method in CALLS}


def _request(method: str, pair: Pair) -> bytes:
    path = f"/api/v1/data/{name_of(random.randrange(pair.documents))}"
    return request(method, path, pair.token, document(SIZE) if method == "PUT" else b"")


def started(documents: int, directory: Path, stack: contextlib.ExitStack) -> Case:
    """A case, ready to measure; its store and its server end with `stack`."""
    store = stack.enter_context(FilledStore.started(directory / "store"))
    pairs = store.mint(max(min(documents, MOST_PAIRS), -(-documents // PER_PAIR)))
    seconds = store.fill(pairs, documents, SIZE)
    progress(f"{documents:,} documents for {len(pairs)} people, written in {seconds:.1f} s")
    return Case(documents, store, pairs, stack.enter_context(serving(store.url, store.ring, directory)).port)


async def run_rounds(cases: Sequence[Case], seconds: float, connections: int) -> None:
    """Measures every case in every round, at least once; each round starts with another case. The bursts of all cases
    go to as many people as the smallest case has, and are as long as their windows allow."""
    people = min(len(case.pairs) for case in cases)
    requests = min(LONGEST_BURST, people * min(group.limit for group in CALLS.values()))
    turns = deque([(case, await Client.connect(case.port, connections)) for case in cases])
    try:
        rounds = await in_rounds(turns, lambda: _round(turns, requests, people), cases, seconds)
    finally:
        for _, client in turns:
            client.close()
    progress(f"{rounds} rounds of bursts of {requests} requests for {people} people over {connections} connections")


async def _round(turns: Iterable[tuple[Case, Client]], requests: int, people: int) -> None:
    for case, client in turns:
        for method in CALLS:
            await case.measure(client, method, requests, people)


def speed_table(cases: Sequence[Case]) -> str:
    """The table of the cost of a GET and a PUT in each case, compared with the first."""
    rows = []
    for method in CALLS:
        first = list(zip(*cases[0].samples[method], strict=True))
        for case in cases:
            mine = zip(*case.samples[method], strict=True)
            figures = (
                compared(values, others, digits) for values, others, digits in zip(mine, first, DIGITS, strict=True)
            )
            rows.append((method, f"{case.documents:,}", *figures))
    return table(("call", "documents", "requests/s", "p50, ms", "p99, ms", "script, µs"), rows)


def footprints(directory: Path, documents: int) -> list[Footprint]:
    """Memory for a document of each size, measured with `documents` of them."""
    with FilledStore.started(directory / "store") as store:
        spare, *pairs = store.mint(1 + len(SIZES))
        store.fill([spare], 1, SIZE)  # absorbs one-time allocations, such as those for scripts
        return [Footprint.measure(store, pair, documents, size) for pair, size in zip(pairs, SIZES, strict=True)]


def memory_table(found: Sequence[Footprint]) -> str:
    """The memory of a document in the store, compared with its own bytes."""
    rows = [
        (
            f"{one.size:,} B",
            f"{one.total:,.0f} (×{one.total / one.size:.2f})",
            f"{one.docs:,.0f}",
            f"{one.meta:,.0f}",
            f"{one.index:,.0f}",
        )
        for one in found
    ]
    return table(("document", "in the store, B", "content, encrypted", "metadata", "index"), rows)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.documents", allow_abbrev=False)
    parser.add_argument(
        "--documents", type=_counts, default=[10, 10_000, 1_000_000], metavar="N,N…", help="documents in the stores"
    )
    parser.add_argument("--seconds", type=_seconds, default=60.0, metavar="N", help="how long to measure (default 60)")
    parser.add_argument("--connections", type=_count, default=8, metavar="N", help="requests at a time (default 8)")
    parser.add_argument(
        "--stored", type=_count, default=5_000, metavar="N", help="documents to measure memory with (default 5000)"
    )
    return parser.parse_args(argv)


def _count(text: str) -> int:
    if not 1 <= int(text) <= 100_000_000:
        raise ValueError
    return int(text)


def _counts(text: str) -> list[int]:
    return [_count(part) for part in text.split(",")]


def _seconds(text: str) -> float:
    # An access token lives an hour, including the time to fill the store.
    if not 0 < float(text) <= 1800:
        raise ValueError
    return float(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, and prints the figures in Markdown. Raises Unexpected."""
    options = parse(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that stores and servers end with this process
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="latchkey-bench-")))
        found = footprints(directory / "footprints", options.stored)
        cases = [
            started(documents, directory / str(number), stack) for number, documents in enumerate(options.documents)
        ]
        asyncio.run(run_rounds(cases, options.seconds, options.connections))
        print(speed_table(cases), memory_table(found), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
