"""The command line of the proof."""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.bench.measure import ROOT
from dev.bench.parts.options import count
from dev.proof.faults import KINDS

STORES = ("redis", "embedded", "cluster", "cluster-wait")
"""The runs; cluster-wait is the cluster with `--wait-replicas`."""


@dataclass(frozen=True)
class Options:
    """One run with `seconds` of load; with 0, every fault once. `hold` is the longest time of an AI call in seconds,
    `redis_timeout` is in seconds, `calm` is the pause between two faults. `planners` hand tokens on, `televisions` are
    devices."""

    store: str
    seconds: float
    seed: int
    directory: Path
    faults: tuple[str, ...] = ()
    workers: int = 20
    servers: int = 3
    wait_replicas: int = 0
    min_replicas: int = 0
    durable: bool = True
    redis_timeout: int = 2
    hold: int = 3
    calm: tuple[float, float] = (1.5, 3.0)
    planners: int = 3
    televisions: int = 2

    @property
    def call_limit(self) -> int:
        """Most AI calls of a person; the window allows 20 a minute."""
        return int(self.seconds / 3) + 60

    @property
    def hold_ends(self) -> float:
        """Seconds after which a hold without a settlement expires: see docs/models.md. A store call takes twice as long
        if it waits for replicas."""
        return self.hold + 2 * self.redis_timeout * (2 if self.wait_replicas else 1) + 5


def parse(argv: Sequence[str] | None = None) -> list[Options]:
    """The requested runs."""
    parser = argparse.ArgumentParser(
        prog="python -m dev.proof", description=__doc__.splitlines()[0] if __doc__ else "", allow_abbrev=False
    )
    parser.add_argument(
        "--store",
        action="append",
        choices=STORES,
        help="may be repeated (default: all of them); cluster-wait is the cluster with --wait-replicas",
    )
    parser.add_argument("--seconds", type=count, default=110, metavar="N", help="of load for each store (default 110)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the order of the faults and of what clients do")
    parser.add_argument(
        "--faults", type=_faults, default=(), metavar="F,F…", help=f"only these, of: {', '.join(KINDS)}; or none"
    )
    parser.add_argument("--workers", type=count, default=20, metavar="N", help="apps of people at work (default 20)")
    parser.add_argument("--servers", type=count, default=3, metavar="N", help="server processes (default 3)")
    parser.add_argument(
        "--wait-replicas", type=count, default=1, metavar="N", help="what cluster-wait tells the servers (default 1)"
    )
    parser.add_argument(
        "--min-replicas", type=int, default=0, metavar="N", help="min-replicas-to-write of the cluster (default 0)"
    )
    parser.add_argument(
        "--forgetful", action="store_true", help="Redis keeps nothing on disk: to see the proof fail (--store redis)"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "proof", metavar="DIRECTORY")
    given = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    return [
        Options(
            store,
            given.seconds,
            seed,
            given.output / store,
            given.faults,
            given.workers,
            given.servers,
            given.wait_replicas if store == "cluster-wait" else 0,
            given.min_replicas,
            not given.forgetful,
        )
        for store in given.store or STORES
    ]


def _faults(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if names != ("none",) and not set(names) <= set(KINDS):
        raise argparse.ArgumentTypeError(f"faults are {', '.join(KINDS)}; or none")
    return names
