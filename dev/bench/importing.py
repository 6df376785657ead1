"""Moving in: people a second of `latchkey import`, processor time and memory; and that an import that is killed at half
and repeated leaves a sound store.

    python -m dev.bench.importing [--people N] [--killed] [--json FILE]

The people have random names and bcrypt hashes. The store is the embedded store's Valkey, with the options of the
embedded store. With `--killed`, SIGKILL ends the import after half of the people; the same command continues, and
`fsck` checks the store.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from dev.bench.directory import Names
from dev.bench.measure import ROOT, Unexpected, progress, table
from dev.bench.parts import results
from dev.bench.parts.options import RESULTS, count, end_on_sigterm
from dev.bench.parts.stores import DURABLE, Store, running, valkey_binary
from store.crypto.keyring import KeyRing

RATE = 5_000
"""The aim: people a second, with the index and the trail, on two free cores."""
FSCK_MS = 0.6
"""The aim: milliseconds of processor time a person, of fsck and the store together."""
LOOK_SECONDS = 0.05
_LETTERS = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class Ran(NamedTuple):
    """A command that ended: its answer, seconds, the processor time of its process and of the store, and the most
    bytes of memory that the process had."""

    answer: dict[str, Any]
    seconds: float
    process_cpu: float
    store_cpu: float
    memory: int


def write_file(file: Path, number: int) -> None:
    """Lines for people whose addresses differ."""
    chance = random.Random(5)
    with file.open("w") as sink:
        for place, one in enumerate(Names(7).people(number)):
            text = "".join(chance.choices(_LETTERS, k=52))
            person = {
                "email": f"{place}.{one.email}",
                "name": one.name,
                "email_verified": True,
                "password_hash": f"$2b$12${text[:21]}u{text[21:]}",
                "created_at": "2024-01-31T08:00:00Z",
            }
            sink.write(json.dumps(person) + "\n")


def run(store: Store, ring: str, words: Sequence[str], kill_at: int = 0) -> Ran:
    """Runs a command. `kill_at`: kills it after so many people, 0 for never; the answer is then empty. Raises
    Unexpected."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
    environment |= {"LATCHKEY_SECRET_KEYS": ring, "LATCHKEY_REDIS_URL": f"unix://{store.socket_path}"}
    served = psutil.Process(store.process.pid)
    before, began = _cpu(served), time.perf_counter()
    command = [sys.executable, "manage.py", "--json", *words]
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as wrong:
        ran = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=wrong)
        own, cpu, memory, name = psutil.Process(ran.pid), 0.0, 0, b""
        while ran.poll() is None:
            try:
                cpu, memory = _cpu(own), max(memory, int(own.memory_info().rss))
            except psutil.Error:
                break
            # Only a store that is almost empty is searched for the key.
            name = name or (position(store) if kill_at else b"")
            if name and int(store.client.hget(name, "created") or 0) >= kill_at:
                ran.kill()
            time.sleep(LOOK_SECONDS)
        status, seconds = ran.wait(), time.perf_counter() - began
        said.seek(0)
        wrong.seek(0)
        lines = said.read().splitlines()
        if not kill_at and (status or not lines):
            raise Unexpected(f"{' '.join(words)}: {status}, {wrong.read()[-2000:].decode()} {lines[:3]}")
    answer: dict[str, Any] = {} if kill_at else json.loads(lines[0])
    return Ran(answer, seconds, cpu, _cpu(served) - before, memory)


def created(store: Store) -> int:
    """The people whom the import in progress has noted."""
    name = position(store)
    return int(store.client.hget(name, "created") or 0) if name else 0


def position(store: Store) -> bytes:
    """The key of the position of the import in progress; empty without one."""
    found = (key for key in store.client.scan_iter("{import:*", count=100_000))
    return next(found, b"")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(number: int, killed: bool) -> dict[str, Any]:
    """The import, and with `killed` its interruption and the check. Raises Unexpected."""
    ring = KeyRing.parse(KeyRing.generate(1)).render()
    with tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp") as directory:
        file = Path(directory) / "people.jsonl"
        write_file(file, number)
        progress(f"{number:,} lines are written")
        with running(valkey_binary(), Path(directory) / "store", DURABLE) as store:
            found: dict[str, Any] = {"people": number, "killed": killed}
            if killed:
                found["first"] = run(store, ring, ["import", str(file)], number // 2)._asdict()
                progress(f"killed after {created(store):,} people")
            last = run(store, ring, ["import", str(file)])
            if last.answer["created"] != number or last.answer["refused"]:
                raise Unexpected(f"created {last.answer['created']:,} of {number:,}")
            found |= {"last": last._asdict(), "store_bytes": store.used_memory()}
            progress(f"imported in {last.seconds:.1f} s")
            if killed:
                checked = run(store, ring, ["fsck"])
                found["fsck"] = checked._asdict()
                if not checked.answer["clean"] or checked.answer["people"] != number:
                    raise Unexpected(f"fsck: {checked.answer}")
            return found


def report(measured: dict[str, Any]) -> str:
    """The table in Markdown."""
    number, last, first = measured["people"], measured["last"], measured.get("first")
    seconds = last["seconds"] + (first["seconds"] if first else 0)
    process, store = (
        (last[part] + (first[part] if first else 0)) / number * 1000 for part in ("process_cpu", "store_cpu")
    )
    rows = [
        ("people", f"{number:,}", ""),
        ("seconds", f"{seconds:.1f}", ""),
        ("people a second", f"{number / seconds:,.0f}", f"{RATE:,}"),
        ("processor, the command", f"{process:.3f} ms a person", ""),
        ("processor, the store", f"{store:.3f} ms a person", ""),
        ("memory of the command, at most", f"{last['memory'] / 2**20:.0f} MiB", ""),
        ("memory of the store", f"{measured['store_bytes'] / number:,.0f} B a person", ""),
    ]
    if check := measured.get("fsck"):
        answer = check["answer"]
        rows.append(("after a kill at half: fsck", f"{answer['errors']} errors, {answer['notes']} notes", "0 errors"))
        spent = (check["process_cpu"] + check["store_cpu"]) / number * 1000
        rows.append(("processor of fsck, command and store", f"{spent:.3f} ms a person", f"{FSCK_MS}"))
        rows.append(("memory of fsck, at most", f"{check['memory'] / 2**20:.0f} MiB", ""))
    return table(("what", "measured", "aim"), rows, words=1)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the table, and writes the figures as JSON. Raises Unexpected."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.importing", allow_abbrev=False)
    parser.add_argument("--people", type=count, default=100_000, metavar="N", help="people (default 100000)")
    parser.add_argument("--killed", action="store_true", help="kill the import at half, repeat it, and check the store")
    parser.add_argument(
        "--json", type=Path, default=RESULTS / "importing.json", metavar="FILE", help="where figures go"
    )
    options = parser.parse_args(argv)
    end_on_sigterm()
    measured = measure(options.people, options.killed)
    print(report(measured))
    results.write(options.json, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
