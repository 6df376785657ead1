"""What clients asked and received, what was broken meanwhile, and the final state: a JSON line each.

A history contains no secrets: tokens, codes and sessions appear under the ids sealed in them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from redis.crc import key_slot

from store import keys
from store.oauth.device_requests import device_key

Outcome = Literal["acknowledged", "refused", "unknown"]
OUTCOMES: tuple[Outcome, ...] = ("acknowledged", "unknown", "refused")

UNREACHABLE = "unreachable"
"""The error of a request that was never sent."""


@dataclass
class Op:
    """One request, or a few that belong together. Times are in seconds from the start of the run; `status` is 0 if
    there was no answer. Acknowledged: it was done. Refused: nothing was done. Unknown: either."""

    number: int
    worker: str
    person: str
    client: str
    kind: str
    start: float
    args: dict[str, Any] = field(default_factory=dict)
    end: float = 0.0
    outcome: Outcome = "unknown"
    status: int = 0
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def acked(self) -> bool:
        return self.outcome == "acknowledged"

    @property
    def unknown(self) -> bool:
        return self.outcome == "unknown"

    @property
    def refused(self) -> bool:
        return self.outcome == "refused"

    @property
    def sent(self) -> bool:
        """Whether a server may have seen the request."""
        return self.error != UNREACHABLE

    @property
    def pair(self) -> tuple[str, str]:
        """The person and the app."""
        return self.person, self.client

    def __str__(self) -> str:
        said = " ".join(f"{name}={value}" for name, value in {**self.args, **self.result}.items())
        return f"#{self.number} {self.kind} {said} at {self.start:.2f}-{self.end:.2f} s: {self.outcome} {self.status}"


@dataclass
class Fault:
    """A fault from `begin` to `end` (s). For the slot ranges in `moved`, a replica took over."""

    name: str
    what: str
    begin: float
    end: float = 0.0
    moved: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Account:
    """A person's credits at the end, in micro-dollars; entries from the oldest to the newest."""

    person: str
    user: str
    paid: int
    held: int
    opening: int
    entries: list[dict[str, Any]]


@dataclass
class Hosted:
    """An app's documents of a person at the end: the reported usage and the list."""

    person: str
    client: str
    usage: dict[str, Any]
    listed: list[dict[str, Any]]


@dataclass
class History:
    """A complete run. `run` is its setup, `fsck` the findings of `manage.py fsck`; None if the run was cut short."""

    run: dict[str, Any] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)
    hosted: list[Hosted] = field(default_factory=list)
    fsck: dict[str, Any] | None = None

    def of(self, *kinds: str) -> list[Op]:
        """The operations of these kinds that were sent, ordered by start."""
        return [op for op in self.ops if op.kind in kinds and op.sent]

    @cached_property
    def families(self) -> dict[str, float]:
        """When each code was requested, or first seen."""
        found: dict[str, float] = {}
        for op in self.of("consent", "exchange"):
            family = op.result.get("family") or op.args.get("family")
            if family:
                found.setdefault(family, op.start)
        return found

    def slots(self, op: Op) -> set[int]:
        """Where in a cluster an operation's changes are: the person's rows, for a new person the address, and
        the request of a device."""
        users = {account.user for account in self.accounts if account.person == op.person}
        users |= {one.result["user"] for one in self.ops if one.person == op.person and one.result.get("user")}
        found = {key_slot(keys.prefix(user).encode()) for user in users}
        if device := op.args.get("device") or op.result.get("device"):
            found.add(key_slot(device_key(device).encode()))
        return found | ({key_slot(keys.email(op.person).encode())} if op.kind == "sign_up" else set())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads a file that a Recorder wrote."""
        history = cls()
        kinds = {"op": (history.ops, Op), "fault": (history.faults, Fault), "account": (history.accounts, Account)}
        for line in path.read_text("utf-8").splitlines():
            ((kind, value),) = json.loads(line).items()
            if kind == "run":
                history.run.update(value)
            elif kind == "fsck":
                history.fsck = value
            elif kind == "hosted":
                history.hosted.append(Hosted(**value))
            else:
                into, made = kinds[kind]
                into.append(made(**value))  # type: ignore[attr-defined]  # lists of their own kinds
        history.ops.sort(key=lambda op: op.start)
        return history


class Recorder:
    """Writes a history while it happens; `recorded` is also in memory."""

    def __init__(self, path: Path) -> None:
        self.recorded = History()
        self._file = path.open("w", encoding="utf-8")
        self._number = 0

    def number(self) -> int:
        """The number of the next operation."""
        self._number += 1
        return self._number

    def run(self, **facts: Any) -> None:
        """Records a fact about the whole run."""
        self.recorded.run.update(facts)
        self._write("run", facts)

    def op(self, op: Op) -> None:
        """Records an operation that has ended."""
        self.recorded.ops.append(op)
        self._write("op", asdict(op))

    def fault(self, fault: Fault) -> None:
        """Records a fault that is mended."""
        self.recorded.faults.append(fault)
        self._write("fault", asdict(fault))

    def account(self, account: Account) -> None:
        self.recorded.accounts.append(account)
        self._write("account", asdict(account))

    def hosted(self, hosted: Hosted) -> None:
        self.recorded.hosted.append(hosted)
        self._write("hosted", asdict(hosted))

    def fsck(self, found: dict[str, Any]) -> None:
        self.recorded.fsck = found
        self._write("fsck", found)

    def close(self) -> History:
        """The history, ordered by start."""
        self._file.close()
        self.recorded.ops.sort(key=lambda op: op.start)
        return self.recorded

    def _write(self, kind: str, value: dict[str, Any]) -> None:
        self._file.write(json.dumps({kind: value}) + "\n")
