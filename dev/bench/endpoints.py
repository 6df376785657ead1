"""Measures every endpoint and its ceilings: requests/s, latency, CPU time per request at the server and the store.

python -m dev.bench.endpoints [--rounds N] [--burst N] [--connections N,N…] [--people N] [--http FRONT]
    [--calls NAME;NAME…] [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dev.bench.measure import progress, table
from dev.bench.parts import results
from dev.bench.parts.latchkey import CALLS, CEILING, EVALSHA, SYSTEM, Latchkey
from dev.bench.parts.measuring import measuring
from dev.bench.parts.options import add_calls, add_rounds, with_calls
from dev.bench.parts.rounds import Found, Key, Rounds

HEADER = ("endpoint", "requests/s", "p50, ms", "p99, ms", "server, ms", "store, ms", "of the ceiling")


def endpoint_table(found: Found, connections: int) -> str:
    """The table of all rows with this many connections. The ceiling is the bare handler with one EVALSHA."""
    ceiling = Key(CEILING, EVALSHA, connections)
    rows = []
    for key in found.samples:
        if key.connections == connections:
            figures = (found.figure(key, name) for name in ("rate", "p50", "p99", "server", "store"))
            rate, p50, p99, server, store = figures
            share = f"{100 * found.ratio(key, ceiling):.0f} %"
            cells = (f"{rate:,.0f}", f"{p50:.2f}", f"{p99:.2f}", f"{server:.3f}", f"{store:.3f}", share)
            rows.append((key.endpoint, *cells))
    return table(HEADER, rows, words=1)


def tables(found: Found) -> str:
    """A table for each number of connections."""
    numbers = list(dict.fromkeys(key.connections for key in found.samples))
    return "\n\n".join(
        f"{number} connection{'s' * (number > 1)}:\n\n{endpoint_table(found, number)}" for number in numbers
    )


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.endpoints", allow_abbrev=False)
    add_rounds(parser, connections=[1, 4, 32], json="endpoints.json")
    add_calls(parser)
    return with_calls(parser, argv, CALLS)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the tables in Markdown, and writes all samples as JSON. Raises Unexpected."""
    options = parse(argv)
    with measuring() as (stack, directory, cores):
        ours = Latchkey(stack, directory / "ours", options.people, cores, options.http)
        server, ceiling = ours.serve(), ours.serve_ceiling()
        rows = [row for row in ours.rows(server) if row.endpoint in (options.calls or CALLS)]
        calls = {row.endpoint: ours.calls(row) for row in rows}
        progress(f"commands that the store receives for a request: {calls}")
        found = Rounds(
            [*ours.ceilings(ceiling), *rows], options.connections, options.burst, cores, patience=options.patience
        ).run(options.rounds)
        found.calls = calls
    print(tables(found), found.disturbance(), sep="\n\n")
    results.write(options.json, found.dump(), rounds=options.rounds, seconds=options.burst, system=SYSTEM)
    return 0


if __name__ == "__main__":
    sys.exit(main())
