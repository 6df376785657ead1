"""`manage.py fsck`: checks the whole store while servers use it, and reports errors."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from cli.terminal.progress import ProgressBar
from store import parsed_keys
from store.fsck.invariants import ERROR, INVARIANTS, NOTE
from store.fsck.walk import Report

COLUMNS = ("invariant", "severity", "found", "mended", "says", "key", "what")


async def check_store(context: Context, args: Namespace) -> CommandResult:
    """Checks every invariant of the store. The exit status is 1 while an error is left; notes don't count. Raises
    StoreError, StoreUnavailable. A repair is complete or not done, so the command may be repeated."""
    report = Report()
    with ProgressBar(sys.stderr) as bar:
        async for report in context.store.fsck.run(deep=args.deep, repair=args.repair, most=args.limit):
            bar.show(
                report.seen / max(report.size, 1),
                f"{report.seen:,} keys, {report.people:,} people, {report.documents:,} documents, "
                f"{report.left(ERROR):,} faults",
            )
    record = _record(report, openly=args.verbose)
    broken = [row for row in record["invariants"] if row["found"]]
    words = {"invariants": broken or "", "findings": record["findings"] or ""}
    return CommandResult(record, COLUMNS, _note(report, args.repair), words, status=0 if report.clean else 1)


def _record(report: Report, *, openly: bool) -> dict[str, Any]:
    tallies = {one: report.tallies[one.name] for one in INVARIANTS}
    return {
        "clean": report.clean,
        "keys": report.seen,
        "people": report.people,
        "apps": report.apps,
        "documents": report.documents,
        "unsettled": report.busy,
        "errors": report.left(ERROR),
        "notes": report.left(NOTE),
        "mended": sum(tally.mended for tally in tallies.values()),
        "invariants": [
            {
                "invariant": one.name,
                "severity": one.severity,
                "found": tally.found,
                "mended": tally.mended,
                "says": one.says,
                "mends": one.mends,
            }
            for one, tally in tallies.items()
        ],
        "findings": [
            {
                "invariant": one.name,
                "severity": one.severity,
                "mended": mended,
                "key": finding.key if openly else parsed_keys.without_input(finding.key),
                "what": finding.what,
            }
            for one, tally in tallies.items()
            for finding, mended in tally.first
        ],
    }


def _note(report: Report, repair: bool) -> str:
    lines = []
    if not any(tally.found for tally in report.tallies.values()):
        lines.append("Every invariant holds.")
    elif report.clean:
        lines.append("No errors are left. Notes are leftovers by design: they expire or do no harm.")
    broken = [one for one in INVARIANTS if report.tallies[one.name].found > report.tallies[one.name].mended]
    if not repair and any(one.mends for one in broken):
        derived = [f"  {one.name}: {one.mends}" for one in broken if one.mends]
        lines += ["--repair would fix:", *derived]
    if kept := [one.name for one in broken if one.severity == ERROR and (repair or not one.mends)]:
        lines.append(f"Needs a manual fix, because the right value is unknown: {', '.join(kept)}.")
    if report.busy:
        lines.append(f"{report.busy} kept changing during the check: run it again when the store is less busy.")
    return "\n".join(lines)
