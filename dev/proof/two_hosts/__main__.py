"""Two hosts behind a proxy: a rolling upgrade and a failover under load, and every promise checked.

    python -m dev.proof.two_hosts [--before COMMIT] [--seconds N] [--workers N] [--seed N] [--plain]

Needs root, iproute2, HAProxy and Redis. Writes the log of requests, history and report into build/two-hosts. Exit
status 1: a request failed, or a promise was broken. 2: the run failed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from dev.bench.measure import ROOT, Unexpected, progress
from dev.bench.parts.options import count, end_on_sigterm
from dev.proof import report
from dev.proof.checker import check, kept
from dev.proof.options import Options
from dev.proof.two_hosts.asked import by_phase, failures
from dev.proof.two_hosts.network import leave_the_network
from dev.proof.two_hosts.run import Outcome, run

BEFORE = "e11d47f6"
"""The last commit with the layout before the present one: see docs/operations.md."""


def main(argv: Sequence[str] | None = None) -> int:
    """One run, and its verdict."""
    parser = argparse.ArgumentParser(prog="python -m dev.proof.two_hosts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT", help=f"the earlier release (default {BEFORE})")
    parser.add_argument("--seconds", type=count, default=15, metavar="N", help="of load around each event (default 15)")
    parser.add_argument("--workers", type=count, default=12, metavar="N", help="apps of people at work (default 12)")
    parser.add_argument("--seed", type=count, default=0, metavar="N", help="of what clients do (default: by chance)")
    parser.add_argument(
        "--plain", action="store_true", help="no tokens handed on, no devices: early releases have neither"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "two-hosts", metavar="DIRECTORY")
    given = parser.parse_args(argv)
    options = Options(
        "sentinel",
        10 * given.seconds,
        given.seed or random.SystemRandom().randrange(1, 1_000_000),
        given.output,
        workers=given.workers,
        servers=2,
        wait_replicas=1,
        planners=0 if given.plain else 2,
        televisions=0 if given.plain else 2,
    )
    leave_the_network()
    outcome = asyncio.run(run(options, given.before, given.seconds))
    said, well = judged(outcome)
    (given.output / "report.md").write_text(said + "\n", "utf-8")
    print(said, flush=True)
    progress("Every promise was kept." if well else "A PROMISE WAS BROKEN; see above.")
    return 0 if well else 1


def judged(outcome: Outcome) -> tuple[str, bool]:
    """The report, and whether all is well."""
    verdicts = check(outcome.history)
    failed = failures(outcome.asked)
    parts = [
        report.heading(outcome.history),
        f"Upgraded from {outcome.history.run['before']}; seed {outcome.history.run['seed']}.",
        by_phase(outcome.asked),
        f"Requests that the proxy sent to the other host, because the first refused the connection: "
        f"{outcome.sent_again}. Whatever clients repeated is in the table as a request of its own.",
        report.promises([verdict for verdict in verdicts if verdict.checked or verdict.broken]),
        *report.evidence(verdicts),
        *(f"FAILED {line}" for line in failed),
        *(f"NOT FOUND by search: {person}" for person in outcome.not_found[:20]),
        *(f"DEFECT {line[:1000]}" for line in outcome.defects[:20]),
    ]
    return "\n\n".join(parts), kept(verdicts) and not (failed or outcome.not_found or outcome.defects)


if __name__ == "__main__":
    end_on_sigterm()
    try:
        sys.exit(main())
    except Unexpected as error:
        progress(f"two hosts: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
