"""What a check finds, and which of it asynchronous replication explains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dev.proof.history import History, Op

UNCONFIRMED = ("put", "delete", "sign_in", "sign_up", "device_begin")
"""Operations that servers answer without waiting for replicas: see docs/replication.md."""
MARGIN = 1.0
"""Seconds before a fault's recorded start, and after its mending, that count as part of it."""


@dataclass(frozen=True, eq=False)
class Violation:
    """A broken promise of one person. `undone` are acknowledged operations, any of which explains the violation if the
    store forgot it. Without them nothing does."""

    text: str
    person: str = ""
    undone: tuple[Op, ...] = ()


@dataclass
class Found:
    """How many things were checked, and the violations."""

    checked: int = 0
    violations: list[Violation] = field(default_factory=list)

    def wrong(self, text: str, person: str = "", *undone: Op) -> None:
        """Adds a violation."""
        self.violations.append(Violation(text, person, undone))


@dataclass(frozen=True)
class Invariant:
    """A promise: its name, a sentence, the unit of its count, and the function that looks for violations."""

    name: str
    sentence: str
    counted: str
    check: Callable[[History], Found]


@dataclass(frozen=True)
class Verdict:
    """The result of a promise in a run. `allowed` are violations that asynchronous replication explains; `lost` are the
    acknowledged operations that it must have lost."""

    invariant: Invariant
    checked: int
    broken: Sequence[Violation]
    allowed: Sequence[Violation]
    lost: Sequence[Op]

    @property
    def held(self) -> bool:
        """Whether the promise was checked and kept."""
        return not self.broken and self.checked > 0


def judge(history: History, invariant: Invariant) -> Verdict:
    """Runs the check, and sets aside what a failover may lose."""
    found = invariant.check(history)
    lost = {one: forgotten(history, one) for one in found.violations}
    allowed = [one for one, op in lost.items() if op is not None]
    broken = [one for one, op in lost.items() if op is None]
    ops = {op.number: op for op in lost.values() if op is not None}
    return Verdict(invariant, found.checked, broken, allowed, list(ops.values()))


def forgotten(history: History, violation: Violation) -> Op | None:
    """The operation that explains a violation: it was acknowledged while a replica took over the person's slots, and
    the servers did not wait for replicas to confirm it."""
    if history.run.get("store") not in ("cluster", "sentinel"):
        return None
    waits = bool(history.run.get("wait_replicas"))
    for op in violation.undone:
        for fault in history.faults:
            within = fault.begin - MARGIN <= op.end <= fault.end + MARGIN
            moved = any(first <= slot <= last for first, last in fault.moved for slot in history.slots(op))
            if within and moved and not (waits and op.kind not in UNCONFIRMED):
                return op
    return None
