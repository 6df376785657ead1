"""Measures whether the time of an answer reveals what the answer hides.

python -m dev.timing [--pairs N] [--people N] [--json FILE] [--page FILE]

Exits with 1 if two kinds of requests that must take the same time do not, or if that is uncertain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dev.bench.measure import ROOT, progress, table
from dev.bench.parts import results
from dev.bench.parts.options import count, end_on_sigterm
from dev.timing.judging import Judged, judge
from dev.timing.pairs import pairs_of
from dev.timing.stage import PEOPLE, staged

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "contributing" / "timing.md"
FORM_USES = 4
"""Times an hour that a form is sent for one address: the windows allow 5."""


def measured(directory: Path, number: int, people: int) -> list[dict[str, Any]]:
    """Measures every pair and returns the rows for JSON."""
    rows = []
    with staged(directory, people) as stage:
        for pair in pairs_of(stage):
            pair.measure(stage, 20)  # loads scripts, opens connections
            found = judge(pair.measure(stage, number))
            rows.append({"what": pair.what, "bound": pair.bound, **asdict(found)})
            progress(f"{pair.what}: {found.difference:+.1f} µs, {found.low:+.1f} to {found.high:+.1f}")
    return rows


def passed(row: dict[str, Any]) -> bool:
    """Whether a pair has the required result."""
    found = Judged(**{name: row[name] for name in Judged.__slots__})
    return found.differs if row["bound"] is None else found.within(row["bound"])


def rows_as_table(rows: Sequence[dict[str, Any]]) -> str:
    """The table of all pairs."""
    shown = [
        (
            row["what"],
            f"{row['pairs']:,}",
            f"{row['first']:,.0f}",
            f"{row['second']:,.0f}",
            f"{row['difference']:+.1f}",
            f"{row['low']:+.1f} … {row['high']:+.1f}",
            f"{row['chance']:.2g}",
            "must differ" if row["bound"] is None else f"± {row['bound']:.0f}",
            "yes" if passed(row) else "**no**",
        )
        for row in rows
    ]
    head = (
        "pair",
        "pairs",
        "first, µs",
        "second, µs",
        "difference",
        "99.9 % interval",
        "p of the ranks",
        "bound",
        "kept",
    )
    return table(head, shown, words=1)


def page(found: dict[str, Any]) -> str:
    """docs/contributing/timing.md."""
    text = (HERE / "page.md").read_text("utf-8")
    return text.format(day=found["day"], machine=found["machine"], rows=rows_as_table(found["rows"]))


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, writes the page and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m dev.timing", allow_abbrev=False)
    parser.add_argument("--pairs", type=count, default=1900, metavar="N", help="samples of each (default 1900)")
    parser.add_argument("--people", type=count, default=PEOPLE, metavar="N", help=f"accounts (default {PEOPLE})")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="where the figures go")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="where the page goes")
    options = parser.parse_args(argv)
    if options.pairs + 20 > FORM_USES * options.people:
        parser.error(f"argument --people: a form is sent {FORM_USES} times for each, and for {options.pairs} + 20")
    end_on_sigterm()
    with TemporaryDirectory(prefix="timing-", dir="/tmp") as directory:
        rows = measured(Path(directory), options.pairs, options.people)
    results.write(options.json, {"rows": rows}, pairs=options.pairs, people=options.people)
    found = results.read(options.json)
    options.page.write_text(page(found), "utf-8")
    print(rows_as_table(found["rows"]))
    return 0 if all(map(passed, found["rows"])) else 1


if __name__ == "__main__":
    sys.exit(main())
