"""Rounds: short bursts go to all rows in turn, so that other work on the machine affects all alike."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from operator import truediv
from statistics import median
from typing import Any, NamedTuple

import psutil

from dev.bench.cores import Cores
from dev.bench.measure import Unexpected, progress
from dev.bench.parts.rows import Row
from dev.bench.parts.wrk import burst

FIRST_RATE = 25_000
"""More requests per second than any server here handles: the first burst prepares this many."""
_SPARE = 1.5
LEAST_RATE = 12_500
"""Later bursts prepare at least this many: a disturbance may have lowered the measured rate."""
QUIET = 0.05
"""Share of the server's core: a burst during which other work took more is repeated, within `patience`."""
_SHRUNK = 0.7


@dataclass(frozen=True, slots=True)
class Sample:
    """One burst: requests/s, percentiles in ms, core ms per request at the server and at its store, bytes of an answer;
    the load generator's share of its core, and the share of the server's core that other work took."""

    rate: float
    p50: float
    p99: float
    server: float
    store: float
    busy: float
    bytes: float
    others: float


class Key(NamedTuple):
    """The measured endpoint and the number of connections."""

    system: str
    endpoint: str
    connections: int


@dataclass
class Found:
    """The samples of all rows, by round: the same position is the same round. `calls` has the store commands per
    request, by endpoint; `missing` has what could not be measured, and why."""

    samples: dict[Key, list[Sample]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def figure(self, key: Key, name: str) -> float:
        """The median of a figure over the rounds."""
        return median(self._values(key, name))

    def ratio(self, one: Key, other: Key, name: str = "rate") -> float:
        """The median of the ratios of a figure within rounds: a slow round changes no ratio."""
        return float(median(map(truediv, self._values(one, name), self._values(other, name))))

    def _values(self, key: Key, name: str) -> list[float]:
        return [float(getattr(sample, name)) for sample in self.samples[key]]

    def disturbance(self) -> str:
        """Other work on the server's core, in words: more than a few percent spoils rates, though not ratios."""
        others = sorted(sample.others for all in self.samples.values() for sample in all) or [0.0]
        return (
            f"Other work took {median(others):.0%} of the server's core in the median burst, {others[-1]:.0%} at most."
        )

    def dump(self) -> dict[str, Any]:
        """The JSON form."""
        rows = [
            {
                **key._asdict(),
                "samples": [{name: round(value, 4) for name, value in asdict(one).items()} for one in all],
            }
            for key, all in self.samples.items()
        ]
        return {"rows": rows, "calls": self.calls, "missing": self.missing}

    @classmethod
    def load(cls, dumped: dict[str, Any]) -> Found:
        """The inverse of `dump`."""
        samples = {
            Key(row["system"], row["endpoint"], row["connections"]): [Sample(**one) for one in row["samples"]]
            for row in dumped["rows"]
        }
        return cls(samples, dumped["calls"], dumped["missing"])


class Rounds:
    """Measures `rows` over each number of `connections` in bursts of `seconds`, after a burst of `warm_up` seconds. A
    disturbed burst is repeated up to `patience` times, and the least disturbed one counts. If a row of a `lenient`
    system fails, it is dropped; if another row fails, the run ends."""

    def __init__(
        self,
        rows: Sequence[Row],
        connections: Sequence[int],
        seconds: int,
        cores: Cores,
        lenient: Container[str] = (),
        warm_up: int = 2,
        patience: int = 0,
    ) -> None:
        self._rows = deque(rows)
        self._connections = connections
        self._seconds = seconds
        self._cores = cores
        self._lenient = lenient
        self._warm_up = warm_up
        self._patience = patience
        self._best = dict.fromkeys(connections, 0.0)
        self._sizes: dict[str, int] = {}
        self._found = Found()

    def run(self, rounds: int) -> Found:
        """Runs every row in every round; each round starts with another row. A round before the first warms up and does
        not count. Raises Unexpected."""
        for row in tuple(self._rows):
            with self._tolerant(row):
                self._sizes[row.name] = row.look()
                self._burst(row, max(self._connections), self._warm_up)
        for number in range(rounds):
            for connections in self._connections:
                for row in tuple(self._rows):
                    with self._tolerant(row):
                        sample = self._quiet_burst(row, connections)
                        key = Key(row.system, row.endpoint, connections)
                        self._found.samples.setdefault(key, []).append(sample)
            self._rows.rotate(-1)
            progress(f"round {number + 1} of {rounds}")
        return self._found

    @contextlib.contextmanager
    def _tolerant(self, row: Row) -> Iterator[None]:
        try:
            yield
        except (Unexpected, OSError) as error:
            if row.system not in self._lenient:
                raise
            progress(f"left out: {error}")
            self._found.missing[row.name] = str(error)
            self._rows.remove(row)
            for connections in self._connections:
                self._found.samples.pop(Key(row.system, row.endpoint, connections), None)

    def _quiet_burst(self, row: Row, connections: int) -> Sample:
        best = self._burst(row, connections, self._seconds)
        for _ in range(self._patience):
            if best.others <= QUIET:
                break
            best = min(best, self._burst(row, connections, self._seconds), key=lambda one: one.others)
        return best

    def _burst(self, row: Row, connections: int, seconds: int) -> Sample:
        best = self._best[connections]
        most = int((max(_SPARE * best, LEAST_RATE) if best else FIRST_RATE) * seconds)
        kind, file, first = row.source.plan(most)
        server, store = row.process.cpu(), row.store.cpu() if row.store else 0.0
        before = _busy(self._cores.server)
        try:
            seen = burst(
                row.process.port,
                kind,
                file,
                first,
                connections=connections,
                seconds=seconds,
                core=self._cores.load,
            )
        except Unexpected as error:
            raise Unexpected(f"{row.name}, {connections} connections: {error}") from None
        server, store = row.process.cpu() - server, row.store.cpu() - store if row.store else 0.0
        busy = _busy(self._cores.server) - before
        row.source.sent(seen)
        if seen.bytes < _SHRUNK * self._sizes[row.name] * seen.requests:
            raise Unexpected(f"{row.name}: the answers became smaller than the one that was looked at")
        self._best[connections] = max(self._best[connections], seen.rate)
        return Sample(
            seen.rate,
            seen.p50,
            seen.p99,
            1000 * server / seen.requests,
            1000 * store / seen.requests,
            seen.busy,
            seen.bytes / seen.requests,
            max(0.0, busy - server) / seen.seconds,
        )


def _busy(core: int) -> float:
    """Seconds that a core has worked so far."""
    seen = psutil.cpu_times(percpu=True)[core]
    return float(sum(seen) - seen.idle - getattr(seen, "iowait", 0.0))
