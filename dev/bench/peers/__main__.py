"""Measures Latchkey and its peers in one run: each on one core, with the same load generator, bursts in turn.

    python -m dev.bench.peers [--rounds N] [--burst N] [--connections N,N…] [--only NAME;NAME…] [--calls NAME;NAME…]
        [--json FILE]

Installs missing peers first. If a peer can't be installed or run, the table shows the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from dev.bench.aims import STUB_SYSTEM
from dev.bench.measure import HOST, Unexpected, progress
from dev.bench.parts import results
from dev.bench.parts.latchkey import CEILING, QUESTION, RELAY, Latchkey
from dev.bench.parts.measuring import measuring
from dev.bench.parts.options import add_calls, add_rounds, names, with_calls
from dev.bench.parts.rounds import Rounds
from dev.bench.parts.rows import Replayed, Row, http
from dev.bench.peers.install import NotInstalled
from dev.bench.peers.setups import SETUPS
from dev.bench.peers.stage import Stage
from dev.bench.peers.tables import COMPARED, counterpart, tables

STUB_MODEL = "20x0"
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


def started(stage: Stage, systems: Sequence[str]) -> tuple[list[Row], dict[str, str]]:
    """The rows of the peers that run here, and the reason for each that does not."""
    rows: list[Row] = []
    missing: dict[str, str] = {}
    for name in systems:
        progress(f"starting {name}")
        try:
            rows += SETUPS[name](stage)
        except (NotInstalled, Unexpected, OSError) as error:
            missing[name] = str(error)
            progress(f"{name} is left out: {error}")
    return rows, missing


def ours(stage: Stage, directory: Path, people: int, http: str) -> list[Row]:
    """The ceilings and Latchkey's rows; its AI calls go to the stub."""
    latchkey = Latchkey(stage.stack, directory, people, stage.cores, http)
    flags: list[str] = []
    wanted = set(COMPARED)
    if stage.stub is None:
        wanted.remove("AI call")
    else:
        config = directory / "ai.toml"
        config.write_text(_CONFIG.format(host=HOST, port=stage.stub.port, model=STUB_MODEL))
        flags = ["--ai-config", str(config)]
    rows = latchkey.rows(latchkey.serve(*flags), STUB_MODEL)
    ceiling = latchkey.serve_ceiling(f"http://{HOST}:{stage.stub.port}" if stage.stub else "")
    relayed = [Row(CEILING, RELAY, ceiling, _question(stage, "/relay"), b"end_turn")] if stage.stub else []
    return [*latchkey.ceilings(ceiling), *relayed, *(row for row in rows if row.endpoint in wanted)]


def stub_row(stage: Stage) -> list[Row]:
    """The stub itself, the baseline for added latency."""
    if stage.stub is None:
        return []
    return [Row(STUB_SYSTEM, "AI call", stage.stub, _question(stage, "/v1/messages"), b"end_turn")]


def _question(stage: Stage, path: str) -> Replayed:
    question = json.dumps({**QUESTION, "model": STUB_MODEL})
    request = http("POST", path, {"Content-Type": "application/json"}, question)
    return Replayed(stage.file(path.rpartition("/")[2]), [request])


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.peers", allow_abbrev=False)
    add_rounds(parser, connections=[1, 32], json="peers.json")
    add_calls(parser)
    parser.add_argument(
        "--only", type=_names, default=list(SETUPS), metavar="NAME;NAME…", help=f"of {'; '.join(SETUPS)}"
    )
    return with_calls(parser, argv, COMPARED)


def _names(text: str) -> list[str]:
    found = names(text)
    if not set(found) <= set(SETUPS):
        raise ValueError
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the tables in Markdown, and writes all samples as JSON. Raises Unexpected if Latchkey itself
    cannot be measured."""
    options = parse(argv)
    with measuring() as (stack, directory, cores):
        stage = Stage.build(stack, directory / "peers", cores)
        peers, missing = started(stage, options.only)
        rows = [*ours(stage, directory / "ours", options.people, options.http), *stub_row(stage), *peers]
        calls = {*options.calls} or {*COMPARED}
        rows = [row for row in rows if row.system == CEILING or counterpart(row.endpoint) in calls]
        found = Rounds(rows, options.connections, options.burst, cores, patience=options.patience, lenient=SETUPS).run(
            options.rounds
        )
        found.missing |= missing
    print(tables(found), found.disturbance(), sep="\n\n")
    results.write(options.json, found.dump(), rounds=options.rounds, seconds=options.burst)
    return 0


if __name__ == "__main__":
    sys.exit(main())
