"""The cost of waiting for a replica: calls of a server that waits and of one that does not, on the same store.

    python -m dev.bench.waiting [--rounds N] [--burst N] [--connections N,N…] [--people N] [--http FRONT] [--json FILE]

The store has one replica on the same machine for both servers: the only difference is the waiting.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dev.bench.measure import HOST, Unexpected, table
from dev.bench.parts import results
from dev.bench.parts.latchkey import Latchkey
from dev.bench.parts.measuring import measuring
from dev.bench.parts.options import add_rounds
from dev.bench.parts.rounds import Found, Key, Rounds
from dev.bench.parts.rows import Row
from dev.bench.parts.stores import IN_MEMORY, running, valkey_binary
from dev.lab.ports import free_port

CALLS = ("refresh", "revoke", "document GET")
SYSTEMS = {"no replica": (), "one replica": ("--wait-replicas", "1")}
"""What an answer waits for, and the server flags for that."""
HEADER = ("call", "waits for", "requests/s", "p50, ms", "p99, ms", "server, ms", "store, ms")
_LINK_MS = 60_000


def replicate(stack: contextlib.ExitStack, ours: Latchkey, directory: Path, core: int) -> None:
    """Gives the store a replica, which ends with `stack`, and waits until it is in sync. Raises Unexpected."""
    port, client = free_port(), ours.filled.client
    client.config_set("repl-diskless-sync-delay", 0)
    client.config_set("bind", HOST)
    client.config_set("port", port)
    stack.enter_context(running(valkey_binary(), directory, {**IN_MEMORY, "replicaof": f"{HOST} {port}"}, core))
    client.set("replicated", "x")
    if client.wait(1, _LINK_MS) != 1:
        raise Unexpected("the replica does not follow")


def rows_of(ours: Latchkey) -> list[Row]:
    """The calls on each server."""
    found = []
    for system, flags in SYSTEMS.items():
        rows = ours.rows(ours.serve(*flags))
        found += [replace(row, system=system) for row in rows if row.endpoint in CALLS]
    return found


def waiting_table(found: Found, connections: int) -> str:
    """The table of the calls, each compared with the one that does not wait."""
    rows = []
    for call in CALLS:
        plain = Key(next(iter(SYSTEMS)), call, connections)
        for system in SYSTEMS:
            key = Key(system, call, connections)

            def cell(name: str, digits: int, key: Key = key, plain: Key = plain) -> str:
                return f"{found.figure(key, name):,.{digits}f} (×{found.ratio(key, plain, name):.2f})"

            figures = (cell("rate", 0), cell("p50", 2), cell("p99", 2), cell("server", 3), cell("store", 3))
            rows.append((call, system, *figures))
    return table(HEADER, rows)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.waiting", allow_abbrev=False)
    add_rounds(parser, connections=[1, 32], json="waiting.json")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the tables in Markdown, and writes all samples as JSON. Raises Unexpected."""
    options = parse(argv)
    with measuring() as (stack, directory, cores):
        ours = Latchkey(stack, directory / "ours", options.people, cores, options.http)
        replicate(stack, ours, directory / "replica", cores.load)
        found = Rounds(rows_of(ours), options.connections, options.burst, cores, patience=options.patience).run(
            options.rounds
        )
    for number in options.connections:
        print(f"{number} connection{'s' * (number > 1)}:\n\n{waiting_table(found, number)}\n")
    print(found.disturbance())
    results.write(options.json, found.dump(), rounds=options.rounds, seconds=options.burst)
    return 0


if __name__ == "__main__":
    sys.exit(main())
