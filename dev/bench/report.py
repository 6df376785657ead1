"""Writes docs/benchmarks.md, docs/pictures/benchmarks.svg and docs/capacity.md from the results of the last runs.

python -m dev.bench.report [--results DIRECTORY] [--docs DIRECTORY]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dev.bench import aims, capacity, endpoints, flat, memory, starting
from dev.bench.measure import ROOT
from dev.bench.parts import results
from dev.bench.parts.latchkey import CEILING, EVALSHA, SYSTEM
from dev.bench.parts.options import RESULTS
from dev.bench.parts.rounds import Found, Key
from dev.bench.peers import tables as peers
from dev.bench.plot import Bar, Group, draw

HARD = aims.HARD
TEXTS = Path(__file__).resolve().parent / "texts"


class Results(NamedTuple):
    """The files with results."""

    endpoints: dict[str, Any]
    peers: dict[str, Any]
    flat: dict[str, Any]
    memory: dict[str, Any]
    starting: dict[str, Any]
    openid: dict[str, Any]

    @classmethod
    def read(cls, directory: Path) -> Results:
        """Raises FileNotFoundError for a missing measurement."""
        return cls(*(results.read(directory / f"{name}.json") for name in cls._fields))


def when(measured: Mapping[str, Any]) -> str:
    """The day, the machine and the length of a run."""
    how = measured["how"]
    said = f"{measured['day']}, {measured['machine']}"
    if "rounds" in how:
        said += f"; {how['rounds']} rounds of bursts of {how['seconds']} s"
    return said


def groups(found: Found, compared: Found) -> list[Group]:
    """The bars: the endpoints and their ceilings, and each call next to the same call of the peers."""
    kinds = {SYSTEM: "ours", CEILING: "ceiling"}
    keys = [key for key in found.samples if key.connections == HARD]
    bars = [Bar(key.endpoint, found.figure(key, "rate"), kinds[key.system]) for key in keys]
    made = [Group(f"Latchkey, requests/s on one core, {HARD} connections", bars)]
    for call in peers.COMPARED:
        bars = [
            Bar(
                key.system if key.endpoint == call else f"{key.system}: {key.endpoint}",
                compared.figure(key, "rate"),
                kinds.get(key.system, "peer"),
            )
            for key in compared.samples
            if key.connections == HARD
            and peers.counterpart(key.endpoint) == call
            and key.system not in (CEILING, aims.STUB_SYSTEM)
        ]
        if len(bars) > 1:
            made.append(Group(call, bars))
    return made


def all_aims(read: Results) -> list[aims.Aim]:
    """All aims."""
    of_peers = list(aims.of_peers(Found.load(read.peers)))
    known = {aim.what for aim in of_peers}
    return [
        *aims.of_endpoints(Found.load(read.endpoints)),
        *of_peers,
        # The run of all peers is older, and lacks these rows.
        *(aim for aim in aims.of_peers(Found.load(read.openid)) if aim.what not in known),
        *aims.of_flat(Found.load(read.flat)),
        *aims.of_memory(memory.load(read.memory)),
        *aims.of_starts(read.starting),
    ]


def benchmarks(read: Results) -> str:
    """docs/benchmarks.md."""
    stores = memory.load(read.memory)
    ceiling = Found.load(read.endpoints).figure(Key(CEILING, EVALSHA, HARD), "rate")
    return _text("benchmarks.md").format(
        aims=aims.aim_table(all_aims(read)),
        endpoints_when=when(read.endpoints),
        endpoints_others=Found.load(read.endpoints).disturbance(),
        endpoints=endpoints.tables(Found.load(read.endpoints)),
        ceiling=f"{ceiling:,.0f}",
        peers_when=when(read.peers),
        peers_others=Found.load(read.peers).disturbance(),
        peers=peers.tables(Found.load(read.peers)),
        openid_when=when(read.openid),
        openid_others=Found.load(read.openid).disturbance(),
        openid=peers.tables(Found.load(read.openid)),
        flat_when=when(read.flat),
        flat_others=Found.load(read.flat).disturbance(),
        flat=flat.flat_table(Found.load(read.flat)),
        memory_when=when(read.memory),
        things=memory.thing_table(stores),
        keys=memory.key_table(stores[0]),
        starts_when=when(read.starting),
        starts_number=read.starting["how"]["times"],
        starts=starting.start_table(read.starting),
        people=f"{read.memory['how']['people']:,}",
        shard=memory.SHARD_PEOPLE,
        scopes=" ".join(memory.SCOPES),
        **{name: f"{read.flat['how'][name]:,}" for name in ("users", "tokens", "documents")},
    )


def capacities(read: Results) -> str:
    """docs/capacity.md."""
    found, stores, assumed = Found.load(read.endpoints), memory.load(read.memory), capacity.Assumed()
    predicted, measured = capacity.check(read.flat, stores)
    things = stores[0].things
    return _text("capacity.md").format(
        needs=capacity.need_table(found, things, assumed),
        costs=capacity.cost_table(found),
        person=f"{capacity.bytes_of_person(things, assumed):,.0f}",
        version=stores[0].version,
        other=stores[-1].version,
        when=when(read.endpoints),
        predicted=f"{predicted / 2**20:,.0f}",
        measured=f"{measured / 2**20:,.0f}",
        error=f"{100 * (predicted / measured - 1):+.0f}",
        a=assumed,
        **{name: f"{read.flat['how'][name]:,}" for name in ("users", "tokens", "documents")},
    )


def _text(name: str) -> str:
    return (TEXTS / name).read_text("utf-8")


def render(read: Results) -> dict[str, str]:
    """The contents of the files, by name."""
    plot = draw(
        "Requests per second of Latchkey and its peers", groups(Found.load(read.endpoints), Found.load(read.peers))
    )
    return {"benchmarks.md": benchmarks(read), "pictures/benchmarks.svg": plot, "capacity.md": capacities(read)}


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the files, and prints the aims."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.report", allow_abbrev=False)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIRECTORY")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", metavar="DIRECTORY")
    options = parser.parse_args(argv)
    read = Results.read(options.results)
    for name, content in render(read).items():
        path = options.docs / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, "utf-8")
    print(aims.aim_table(all_aims(read)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
