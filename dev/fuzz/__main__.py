"""`python -m dev.fuzz`: fuzzes both HTTP servers in turn for a given time, with new mutants each time."""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from pathlib import Path

from dev.fuzz.api import Api, operations
from dev.fuzz.cost import Watch, weigh_all
from dev.fuzz.hostile import Stage
from dev.fuzz.run import Wire
from dev.fuzz.seals import one_of_each, presented, try_way
from dev.fuzz.target import Target
from dev.fuzz.tokens import Cast

KEEP = Path(__file__).resolve().parent.parent.parent / "build" / "fuzz"
ROUND = 4_000
"""Mutants between two checks of the time."""


def main() -> int:
    """Returns 0 if the time ends without a finding. Raises the first finding; its input is in `build/fuzz`."""
    parser = argparse.ArgumentParser(prog="python -m dev.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long (default: 600)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="begin with this seed")
    parser.add_argument("--http", choices=("fast", "tornado", "both"), default="both")
    parser.add_argument("--only", choices=("wire", "api", "seals", "hostile"), help="run only this fuzzer")
    args = parser.parse_args()
    ends = time.monotonic() + args.seconds
    servers = ("fast", "tornado") if args.http == "both" else (args.http,)
    for seed, http in zip(itertools.count(args.seed), itertools.cycle(servers), strict=False):
        print(f"seed {seed}, {http}", flush=True)
        for name, fuzzer in FUZZERS.items():
            if args.only in (None, name):
                fuzzer(http, seed, ends)
        if time.monotonic() > ends:
            return 0
    raise AssertionError("seeds never end")


def wire(http: str, seed: int, ends: float) -> None:
    """Malformed bytes."""
    with Target(http) as target:
        run = Wire(target, target.run(Cast.make(target)), KEEP)
        run.valid()
        with Watch(target.port) as watch:
            run.mutants(seed, range(ROUND))
            if time.monotonic() < ends:
                run.prefixes(run.messages)
        print(
            f"  wire: {run.sent} connections, answers {dict(sorted(run.statuses.items()))}, {waited(watch)}", flush=True
        )


def api(http: str, seed: int, ends: float) -> None:
    """Requests generated from the OpenAPI description."""
    with Target(http) as target:
        run = Api(target, target.run(Cast.make(target)))
        with Watch(target.port) as watch:
            for name, method, path in operations():
                if time.monotonic() >= ends:
                    break
                run.fuzz(name, method, path, examples=20, seed=seed)
        run.close()
        print(f"  api: answers {dict(sorted(run.statuses.items()))}, {waited(watch)}", flush=True)


def seals(http: str, seed: int, ends: float) -> None:
    """Tampered tokens; the keys, and so the tokens, are new each time."""
    with Target(http, signup="open") as target:
        cast = target.run(Cast.make(target))
        tokens = target.run(one_of_each(cast))
        for kind, way in presented(cast).values():
            if time.monotonic() < ends:
                try_way(target, way, tokens[kind])
        print("  seals: all refused", flush=True)


def hostile(http: str, seed: int, ends: float) -> None:
    """Requests made to cost time."""
    with Target(http, signup="open") as target:
        stage = target.run(Stage.make(target, target.run(Cast.make(target))))
        messages = itertools.takewhile(lambda _: time.monotonic() < ends, stage.all())
        most = weigh_all(target, messages)
        times = (most.loop, most.threads, most.store, most.wait)
        words = "{:.0f} ms of the loop, {:.0f} ms of threads, {:.0f} ms of the store, {:.0f} ms of waiting for /healthz"
        print(f"  hostile: at most {words.format(*(1000 * spent for spent in times))}", flush=True)


def waited(watch: Watch) -> str:
    """How long other clients had to wait."""
    return f"the longest wait of /healthz {1000 * watch.longest:.0f} ms"


FUZZERS = {"wire": wire, "api": api, "seals": seals, "hostile": hostile}

if __name__ == "__main__":
    sys.exit(main())
