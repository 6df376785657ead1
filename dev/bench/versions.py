"""Compares two versions of the server over one store, with alternate bursts, and reports slower rows.

    python -m dev.bench.versions --before FOLDER [--rounds N] [--burst N] [--connections N,N…] [--calls NAME;NAME…]
        [--json FILE]

FOLDER is a checkout of the version to compare with (`git worktree add FOLDER COMMIT`); it runs in this environment. A
row is slower if the 95 % interval of its median ratio is entirely above 1.03. The exit status is 1 if any row is
slower.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import comb
from operator import truediv
from pathlib import Path
from statistics import median

from dev.bench.measure import table
from dev.bench.parts import results
from dev.bench.parts.latchkey import CALLS, Latchkey
from dev.bench.parts.measuring import measuring
from dev.bench.parts.options import add_calls, add_rounds, with_calls
from dev.bench.parts.rounds import Found, Key, Rounds

BEFORE, NOW = "before", "now"
SLOWER = 1.03
"""A ratio whose interval is above this is a loss."""
LEAST = 6
FIGURES = {"server": "server CPU", "store": "store CPU"}
HEADER = ("call", *(f"{words}, now : before (95 % interval)" for words in FIGURES.values()), "requests/s", "")


def interval(values: Sequence[float]) -> tuple[float, float]:
    """An interval that holds the median with a probability of at least 95 %: two order statistics.

    Fewer than six values have none; the interval is the whole range.
    """
    ordered, number = sorted(values), len(values)
    below, outside = 0, 0.0
    while below < number // 2:
        outside += 2 * comb(number, below) / 2**number
        if outside > 0.05:
            break
        below += 1
    rank = max(below, 1)
    return ordered[rank - 1], ordered[number - rank]


def ratios(found: Found, call: str, connections: int, name: str) -> list[float]:
    """The ratio of a figure, now to before, for each round."""
    now, before = (
        [getattr(sample, name) for sample in found.samples[Key(which, call, connections)]] for which in (NOW, BEFORE)
    )
    return list(map(truediv, now, before))


def slower(values: Sequence[float]) -> bool:
    """Whether these ratios show a loss. Fewer than six have no 95 % interval and show nothing."""
    return len(values) >= LEAST and interval(values)[0] > SLOWER


def versions_table(found: Found, calls: Sequence[str], connections: int) -> tuple[str, list[str]]:
    """The table in Markdown, and the slower calls."""
    rows, lost = [], []
    for call in calls:
        figures = {name: ratios(found, call, connections, name) for name in FIGURES}
        if any(slower(values) for values in figures.values()):
            lost.append(call)
        cells = []
        for values in figures.values():
            low, high = interval(values)
            cells.append(f"{median(values):.3f} ({low:.3f} to {high:.3f})")
        rate = median(ratios(found, call, connections, "rate"))
        rows.append((call, *cells, f"{rate:.3f}", "slower" if call in lost else ""))
    return table(HEADER, rows, words=1), lost


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.versions", allow_abbrev=False)
    parser.add_argument("--before", type=Path, required=True, metavar="FOLDER", help="a checkout of the other version")
    add_rounds(parser, connections=[32], json="versions.json")
    add_calls(parser)
    parser.set_defaults(rounds=10)
    options = with_calls(parser, argv, CALLS)
    if not (options.before / "server.py").is_file():
        parser.error(f"{options.before} has no server.py")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the tables in Markdown, and writes all samples as JSON. Raises Unexpected."""
    options = parse(argv)
    lost: list[str] = []
    with measuring() as (stack, directory, cores):
        ours = Latchkey(stack, directory / "ours", options.people, cores, options.http)
        servers = {BEFORE: ours.serve(program=(str(options.before.resolve() / "server.py"),)), NOW: ours.serve()}
        rows = [replace(row, system=name) for name, process in servers.items() for row in ours.rows(process)]
        rows = [row for row in rows if row.endpoint in (options.calls or CALLS)]
        calls = list(dict.fromkeys(row.endpoint for row in rows))
        rows.sort(key=lambda row: calls.index(row.endpoint))
        found = Rounds(rows, options.connections, options.burst, cores, patience=options.patience).run(options.rounds)
    for number in options.connections:
        shown, slow = versions_table(found, calls, number)
        print(f"{number} connection{'s' * (number > 1)}:\n\n{shown}\n")
        lost += slow
    print(found.disturbance())
    results.write(options.json, found.dump(), rounds=options.rounds, seconds=options.burst)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
