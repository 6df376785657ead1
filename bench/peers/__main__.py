"""Latchkey beside its peers, in one run: each on one core, the same load generator, bursts in turn.

    python -m bench.peers [--rounds N] [--seconds N] [--connections N,N…] [--only NAME;NAME…] [--json FILE]

Installs what is not installed yet. A peer that cannot be installed or run stands in the table with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import results
from bench.cores import Cores
from bench.latchkey import QUESTION, SYSTEM, Latchkey
from bench.measure import HOST, Unexpected, progress, table
from bench.options import add_rounds, end_on_sigterm
from bench.peers.install import NotInstalled
from bench.peers.setups import SETUPS
from bench.peers.stage import Stage
from bench.rounds import Found, Key, Rounds
from bench.rows import Replayed, Row, http
from bench.wrk import check_installed

STUB_MODEL = "20x0"
STUB_SYSTEM = "the stub alone"
COMPARED = ("userinfo", "refresh", "document GET", "document PUT", "AI call")
"""Endpoints that peers have too. What a peer calls otherwise, after a comma or as introspection, is compared with the
first of them that it begins with, and introspection with userinfo."""
HEADER = ("call", "server", "requests/s", "p50, ms", "p99, ms", "server, ms", "store, ms", "Latchkey is", "by CPU")
_CONFIG = """
echo = false
[[upstream]]
name = "stub"
url = "http://{host}:{port}"
key = "none"
connections = 10000
[[upstream.models]]
id = "{model}"
prices = [{{ version = "1", input = 3000000, output = 15000000 }}]
"""


def counterpart(endpoint: str) -> str:
    """The endpoint of Latchkey that does what this one of a peer does."""
    return "userinfo" if endpoint == "introspection" else endpoint.partition(",")[0]


def peer_table(found: Found, connections: int) -> str:
    """All rows over so many connections, by what they do. `Latchkey is` so many times as fast."""
    rows = []
    for call in COMPARED:
        ours = Key(SYSTEM, call, connections)
        for key in found.samples:
            if key.connections != connections or counterpart(key.endpoint) != call:
                continue
            rate, p50, p99, server, store = (
                found.figure(key, name) for name in ("rate", "p50", "p99", "server", "store")
            )
            cells = [key.endpoint, key.system, f"{rate:,.0f}", f"{p50:.2f}", f"{p99:.2f}", f"{server:.3f}"]
            cells.append(f"{store:.3f}" if store else "")
            compared = key.system not in (SYSTEM, STUB_SYSTEM) and ours in found.samples
            cells.append(f"{found.ratio(ours, key):.2f} ×" if compared else "")
            cells.append(f"{found.ratio(key, ours, 'server'):.2f} ×" if compared else "")
            rows.append(cells)
    return table(HEADER, rows)


def absent(found: Found) -> str:
    """What could not be measured, and why: a line for each."""
    return "".join(f"- Not measured: {name}: {' '.join(why.split())[:200]}\n" for name, why in found.missing.items())


def tables(found: Found) -> str:
    """A table for each number of connections, and what is missing."""
    numbers = list(dict.fromkeys(key.connections for key in found.samples))
    made = [f"{number} connection{'s' * (number > 1)}:\n\n{peer_table(found, number)}" for number in numbers]
    return "\n\n".join([*made, absent(found)]).rstrip()


def started(stage: Stage, names: Sequence[str]) -> tuple[list[Row], dict[str, str]]:
    """The rows of the peers that run here, and why the others do not."""
    rows: list[Row] = []
    missing: dict[str, str] = {}
    for name in names:
        progress(f"starting {name}")
        try:
            rows += SETUPS[name](stage)
        except (NotInstalled, Unexpected, OSError) as error:
            missing[name] = str(error)
            progress(f"{name} is left out: {error}")
    return rows, missing


def ours(stage: Stage, directory: Path, people: int, front: str) -> list[Row]:
    """Latchkey's rows; its AI calls go to the stub."""
    latchkey = Latchkey(stage.stack, directory, people, stage.cores, front)
    if stage.stub is None:
        return [
            row for row in latchkey.rows(latchkey.serve()) if row.endpoint in COMPARED and row.endpoint != "AI call"
        ]
    config = directory / "ai.toml"
    config.write_text(_CONFIG.format(host=HOST, port=stage.stub.port, model=STUB_MODEL))
    process = latchkey.serve("--ai-config", str(config))
    return [row for row in latchkey.rows(process, STUB_MODEL) if row.endpoint in COMPARED]


def stub_row(stage: Stage) -> list[Row]:
    """The stub itself: what goes beyond its latency is added."""
    if stage.stub is None:
        return []
    body = f'{{"model": "{STUB_MODEL}", "max_tokens": 100, "messages": {QUESTION["messages"]}}}'.replace("'", '"')
    request = http("POST", "/v1/messages", {"Content-Type": "application/json"}, body)
    return [Row(STUB_SYSTEM, "AI call", stage.stub, Replayed(stage.file("stub"), [request]), b"end_turn")]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for what cannot be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", allow_abbrev=False)
    add_rounds(parser, connections=[1, 32], json="peers.json")
    parser.add_argument(
        "--only", type=_names, default=list(SETUPS), metavar="NAME;NAME…", help=f"of {'; '.join(SETUPS)}"
    )
    return parser.parse_args(argv)


def _names(text: str) -> list[str]:
    names = text.split(";")
    if not set(names) <= set(SETUPS):
        raise ValueError
    return names


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the tables in Markdown, and writes all samples as JSON. Raises Unexpected where Latchkey itself
    cannot be measured."""
    options = parse(argv)
    check_installed()
    end_on_sigterm()
    cores = Cores.choose()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp")))
        stage = Stage.build(stack, directory / "peers", cores)
        peers, missing = started(stage, options.only)
        rows = [*ours(stage, directory / "ours", options.people, options.http), *stub_row(stage), *peers]
        found = Rounds(rows, options.connections, options.seconds, cores, lenient=SETUPS).run(options.rounds)
        found.missing |= missing
    print(tables(found))
    results.write(options.json, found.dump(), rounds=options.rounds, seconds=options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
