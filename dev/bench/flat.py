"""Does a request cost more on a full store? Measures the endpoints on an empty store and a full one, in turn.

    python -m dev.bench.flat [--users N] [--tokens N] [--documents N] [--rounds N] [--burst N] [--connections N,N…]

A million people take about 8 GB of memory, and as much again in the directory for temporary files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dev.bench.measure import progress, table
from dev.bench.parts import results
from dev.bench.parts.latchkey import Filling, Latchkey
from dev.bench.parts.measuring import measuring
from dev.bench.parts.options import add_rounds, count
from dev.bench.parts.rounds import Found, Key, Rounds

EMPTY, FULL = "empty", "full"
HEADER = ("endpoint", "connections", "requests/s, empty", "full", "ratio", "server, ms", "ratio", "store, ms", "ratio")


def flat_table(found: Found) -> str:
    """Every endpoint on the full store, compared with the empty one in the same round."""
    rows = []
    for key in found.samples:
        if key.system != FULL:
            continue
        empty = key._replace(system=EMPTY)
        cells = [key.endpoint, str(key.connections), f"{found.figure(empty, 'rate'):,.0f}"]
        cells.append(f"{found.figure(key, 'rate'):,.0f}")
        cells.append(f"× {found.ratio(key, empty):.2f}")
        for name in ("server", "store"):
            cells += [f"{found.figure(key, name):.3f}", f"× {found.ratio(key, empty, name):.2f}"]
        rows.append(cells)
    return table(HEADER, rows)


def worst(found: Found, name: str) -> tuple[Key, float]:
    """The endpoint where a core of `server` or `store` handles the smallest share of its empty-store rate on the full
    store, and that share."""
    full = [key for key in found.samples if key.system == FULL]
    ratios = {key: found.ratio(key._replace(system=EMPTY), key, name) for key in full}
    key = min(ratios, key=ratios.__getitem__)
    return key, ratios[key]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.flat", allow_abbrev=False)
    for name, usual in (("users", 1_000_000), ("tokens", 5_000_000), ("documents", 1_000_000)):
        parser.add_argument(f"--{name}", type=count, default=usual, metavar="N", help=f"in the store (default {usual})")
    add_rounds(parser, connections=[32], json="flat.json")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the table in Markdown, and writes all samples as JSON. Raises Unexpected."""
    options = parse(argv)
    filling = Filling(options.users, options.tokens, options.documents)
    with measuring() as (stack, directory, cores):
        rows = []
        memory = {}
        for system, more in ((EMPTY, Filling()), (FULL, filling)):
            made = Latchkey(stack, directory / system, options.people, cores, options.http, more, system)
            memory[system] = made.filled.used_memory()
            progress(f"{system}: {memory[system] / 2**20:,.0f} MiB")
            rows.append(made.rows(made.serve()))
        pairs = [row for both in zip(*rows, strict=True) for row in both]
        found = Rounds(pairs, options.connections, options.burst, cores, patience=options.patience).run(options.rounds)
    print(flat_table(found), found.disturbance(), sep="\n\n")
    how = {"rounds": options.rounds, "seconds": options.burst, "people": options.people, **filling._asdict()}
    results.write(options.json, {**found.dump(), "memory": memory}, **how)
    return 0


if __name__ == "__main__":
    sys.exit(main())
