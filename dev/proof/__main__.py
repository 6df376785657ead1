"""Runs real clients on real servers while things break, and checks every promise.

    python -m dev.proof [--store redis|embedded|cluster|cluster-wait] [--seconds N] [--faults F,F] [--seed N]

Writes history, report and plot of each run into build/proof, and prints the tables. Exit status 1: a promise was
broken. 2: the run failed. `python -m dev.proof.again FILE` judges an earlier history.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from dev.bench.measure import Unexpected, progress
from dev.bench.parts.options import end_on_sigterm
from dev.proof import plot, report
from dev.proof.checker import check, kept
from dev.proof.history import History
from dev.proof.options import Options, parse
from dev.proof.run import run
from dev.proof.verdict import Verdict


def main(argv: Sequence[str] | None = None) -> int:
    """Makes all requested runs, one after another."""
    runs = [one(options) for options in parse(argv)]
    if len(runs) > 1:
        print(f"## All runs\n\n{report.overview(runs)}\n", flush=True)
    sound = all(kept(list(verdicts)) for _, verdicts in runs)
    progress("Every promise was kept." if sound else "A PROMISE WAS BROKEN; see above.")
    return 0 if sound else 1


def one(options: Options) -> tuple[History, Sequence[Verdict]]:
    """Makes a run, and prints and writes its tables."""
    history = asyncio.run(run(options))
    verdicts = check(history)
    said = report.summary(history, verdicts)
    (options.directory / "report.md").write_text(said + "\n", "utf-8")
    (options.directory / "plot.svg").write_text(plot.draw(history), "utf-8")
    print(f"{said}\n", flush=True)
    progress(f"history, report and plot are in {options.directory}")
    return history, verdicts


if __name__ == "__main__":
    end_on_sigterm()
    try:
        sys.exit(main())
    except Unexpected as error:
        progress(f"proof: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
