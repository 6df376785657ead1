"""The cost of Prometheus metrics: calls of the hot path with counting on and off.

    python -m dev.bench.metrics [--rounds N] [--burst N] [--connections N,N…] [--people N] [--http FRONT] [--json FILE]

Both use one process (dev/bench/parts/counting.py), since two processes of one program differ by one or two percent.
Bursts without counting are sent twice; the difference between the two is the noise.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

from dev.bench.measure import table
from dev.bench.parts import counting, results
from dev.bench.parts.latchkey import Latchkey
from dev.bench.parts.measuring import measuring
from dev.bench.parts.options import add_rounds
from dev.bench.parts.rounds import Found, Key, Rounds
from dev.bench.parts.rows import Plan, Row, Source
from dev.bench.parts.wrk import Burst
from dev.lab.processes import Process

CALLS = ("userinfo", "document GET", "refresh")
OFF, ON, OFF_AGAIN = "off", "on", "off, again"
SYSTEMS = {OFF: counting.OFF, ON: counting.ON, OFF_AGAIN: counting.OFF}
"""The signal before each burst."""
HEADER = ("call", "off, ms of CPU", "on, ms of CPU", "on : off", "off : off", "on : off, requests/s")


@dataclass(frozen=True, slots=True)
class Switched:
    """Requests of another source, with a signal before each burst that switches the server's counting on or off."""

    source: Source
    process: Process
    number: signal.Signals

    def sample(self) -> bytes:
        """One request."""
        return self.source.sample()

    def plan(self, most: int) -> Plan:
        """The requests of a burst."""
        os.kill(self.process.pid, self.number)
        return self.source.plan(most)

    def sent(self, burst: Burst) -> None:
        """Notes the requests used."""
        self.source.sent(burst)


def rows_of(ours: Latchkey) -> list[Row]:
    """Each call with counting on and off, so that a disturbance affects both."""
    process = ours.serve("--metrics-port", "0", program=("-m", "dev.bench.parts.counting"))
    found = []
    for system, number in SYSTEMS.items():
        rows = [row for row in ours.rows(process) if row.endpoint in CALLS]
        found += [replace(row, system=system, source=Switched(row.source, process, number)) for row in rows]
    return sorted(found, key=lambda row: CALLS.index(row.endpoint))


def metrics_table(found: Found, connections: int) -> str:
    """The table of the calls with this many connections. A ratio is the median of the rounds' ratios."""
    rows = []
    for call in CALLS:
        off, on, again = (Key(system, call, connections) for system in SYSTEMS)

        def ratio(name: str, on: Key = on, off: Key = off, again: Key = again) -> str:
            return f"{mean((found.ratio(on, off, name), found.ratio(on, again, name))):.3f}"

        figures = (f"{found.figure(key, 'server'):.4f}" for key in (off, on))
        rows.append((call, *figures, ratio("server"), f"{found.ratio(again, off, 'server'):.3f}", ratio("rate")))
    return table(HEADER, rows, words=1)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.metrics", allow_abbrev=False)
    add_rounds(parser, connections=[32], json="metrics.json")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the tables in Markdown, and writes all samples as JSON. Raises Unexpected."""
    options = parse(argv)
    with measuring() as (stack, directory, cores):
        ours = Latchkey(stack, directory / "ours", options.people, cores, options.http)
        found = Rounds(rows_of(ours), options.connections, options.burst, cores, patience=options.patience).run(
            options.rounds
        )
    for number in options.connections:
        print(f"{number} connection{'s' * (number > 1)}:\n\n{metrics_table(found, number)}\n")
    print(found.disturbance())
    results.write(options.json, found.dump(), rounds=options.rounds, seconds=options.burst)
    return 0


if __name__ == "__main__":
    sys.exit(main())
