"""The results of a run, as tables in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dev.bench.measure import table
from dev.proof.faults import KINDS
from dev.proof.history import OUTCOMES, History
from dev.proof.people import TELEVISION
from dev.proof.verdict import Verdict

SHOWN = 5
"""Violations of one promise to quote."""


def heading(history: History) -> str:
    """The title of a run."""
    run = history.run
    waits = f", `--wait-replicas {run['wait_replicas']}`" if run["wait_replicas"] else ""
    return f"## {run['title'][0].upper()}{run['title'][1:]}{waits}"


def summary(history: History, verdicts: Sequence[Verdict]) -> str:
    """The summary of a run."""
    run = history.run
    counts = Counter(op.outcome for op in history.ops)
    said = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES)
    recovery = max((seconds for _, seconds in recoveries(history)), default=0.0)
    broken = [verdict for verdict in verdicts if verdict.broken]
    lost = {op.number for verdict in verdicts for op in verdict.lost}
    facts = [
        f"{run['workers']} clients on {run['servers']} server processes for {run['seconds']:g} s (seed {run['seed']}), "
        f"{len(history.ops):,} operations, {said}.",
        f"{len(history.faults)} faults. Once one was mended, no client waited longer for its next certain answer "
        f"than {recovery:.1f} s.",
        f"Promises broken: {len(broken)} of {len(verdicts)}."
        + (f" Operations that were acknowledged and that asynchronous replication lost: {len(lost)}." if lost else ""),
    ]
    return "\n\n".join([heading(history), *facts, faults(history), promises(verdicts), *evidence(verdicts)])


def faults(history: History) -> str:
    """How often each operation was done, and how long clients waited."""
    after: dict[str, list[float]] = {}
    for name, seconds in recoveries(history):
        after.setdefault(name, []).append(seconds)
    rows = []
    for name, kind in KINDS.items():
        done = [fault for fault in history.faults if fault.name == name]
        if done:
            longest = max(fault.end - fault.begin for fault in done)
            moved = str(sum(bool(fault.moved) for fault in done)) if any(fault.moved for fault in done) else ""
            rows.append([kind.title, str(len(done)), moved, f"{longest:.1f}", f"{max(after[name]):.1f}"])
    header = ["fault", "times", "a replica took over", "longest, s", "next answer after, s"]
    return table(header, rows, words=1)


def recoveries(history: History) -> list[tuple[str, float]]:
    """For each fault, the longest time in seconds that a worker waited, after the fault was mended, for a certain
    answer to a new request: an acknowledgement or a refusal. Devices don't count: they wait between two polls."""
    found = []
    for fault in history.faults:
        waited: dict[str, float] = {}
        for op in history.ops:
            if op.client == TELEVISION.client_id:
                continue
            if op.start >= fault.end and not op.unknown and op.sent and op.worker not in waited:
                waited[op.worker] = op.end - fault.end
        found.append((fault.name, max(waited.values(), default=0.0)))
    return found


def promises(verdicts: Sequence[Verdict]) -> str:
    """The verdict on each promise."""
    rows = []
    for verdict in verdicts:
        word = "held" if verdict.held else "**broken**" if verdict.broken else "not looked at"
        if verdict.allowed:
            word += f"; {len(verdict.lost)} lost to asynchronous replication"
        rows.append([verdict.invariant.sentence, f"{verdict.checked:,} {verdict.invariant.counted}", word])
    return table(["promise", "looked at", "verdict"], rows, words=3)


def evidence(verdicts: Sequence[Verdict]) -> list[str]:
    """Some of the violations."""
    parts = []
    for verdict in verdicts:
        for title, found in (("Broken", verdict.broken), ("Lost to asynchronous replication", verdict.allowed)):
            if found:
                lines = [f"- {one.person}: {one.text}" for one in found[:SHOWN]]
                more = [f"- and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
                parts.append("\n".join([f"{title}: {verdict.invariant.sentence}", "", *lines, *more]))
    return parts


def overview(runs: Sequence[tuple[History, Sequence[Verdict]]]) -> str:
    """All runs, a row each."""
    rows = []
    for history, verdicts in runs:
        counts = Counter(op.outcome for op in history.ops)
        recovery = max((seconds for _, seconds in recoveries(history)), default=0.0)
        lost = {op.number for verdict in verdicts for op in verdict.lost}
        waits = f", wait for {history.run['wait_replicas']}" if history.run["wait_replicas"] else ""
        rows.append(
            [
                f"{history.run['title']}{waits}",
                *(f"{counts[outcome]:,}" for outcome in OUTCOMES),
                str(len(history.faults)),
                f"{recovery:.1f}",
                str(sum(bool(verdict.broken) for verdict in verdicts)),
                str(len(lost)),
            ]
        )
    header = ["store", *OUTCOMES, "faults", "longest wait, s", "promises broken", "lost to replication"]
    return table(header, rows, words=1)
