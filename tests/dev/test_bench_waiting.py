"""The measurement of waiting for a replica: the store has one, and only the right server waits."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dev.bench.cores import Cores
from dev.bench.parts.latchkey import Latchkey
from dev.bench.parts.rounds import Found, Key, Sample
from dev.bench.parts.rows import Row
from dev.bench.waiting import CALLS, SYSTEMS, replicate, rows_of, waiting_table


def waits(ours: Latchkey, row: Row) -> int:
    """The number of WAIT commands for one request."""
    ours.filled.client.config_resetstat()
    row.look()
    stats: Any = ours.filled.client.info("commandstats")
    return int(stats.get("cmdstat_wait", {}).get("calls", 0))


def test_one_server_waits_for_the_replica_with_what_is_durable_and_the_other_one_does_not() -> None:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="bench-", dir="/tmp")))
        cores = Cores.choose()
        ours = Latchkey(stack, directory / "ours", 20, cores)
        replicate(stack, ours, directory / "replica", cores.load)
        assert ours.filled.client.info("replication")["connected_slaves"] == 1
        rows = rows_of(ours)
        for row in rows:
            row.look()  # the server has started, and the script is loaded
        waited = {(row.system, row.endpoint): waits(ours, row) for row in rows}
    assert waited == {
        (system, call): int(system == "one replica" and call != "document GET") for system in SYSTEMS for call in CALLS
    }


def test_ratios_are_to_the_call_that_waits_for_nothing() -> None:
    samples = {
        Key(system, call, 1): [Sample(1000 / (number + 1), number + 1, 2.0, 0.1, 0.05, 0.3, 500.0, 0.01)]
        for number, system in enumerate(SYSTEMS)
        for call in CALLS
    }
    shown = waiting_table(Found(samples), 1).splitlines()
    assert shown[2].startswith("| refresh | no replica | 1,000 (×1.00) | 1.00 (×1.00) |")
    assert shown[3].startswith("| refresh | one replica | 500 (×0.50) | 2.00 (×2.00) |")
