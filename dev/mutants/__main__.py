"""Plants single mistakes in a copy of the tree, one by one, and runs the tests that must catch each.

    python -m dev.mutants [--check] [--some N [--by-date]] [WORD ...]

`dev/mutants/mutants.toml` lists the mistakes. Exit status 1: a mistake was missed. 2: the list does not fit the tree,
or its tests fail without a mistake.
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dev.mutants.catalogue import Mutant, Unfit, complaints, load, of_the_day
from dev.mutants.trial import Trial

ROOT = Path(__file__).resolve().parents[2]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    given = _options().parse_args(argv)
    try:
        mutants = load()
        if found := complaints(mutants, ROOT):
            raise Unfit("\n".join(found))
        if given.check:
            print(f"{len(mutants)} mistakes fit the tree")
            return 0
        return plant(_chosen(mutants, given), ROOT)
    except Unfit as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2


def plant(mutants: Sequence[Mutant], root: Path) -> int:
    """Plants each mistake in turn and prints the result. Returns the exit status. Raises Unfit."""
    began = time.monotonic()
    missed = 0
    with Trial.of(root) as trial:
        trial.check(mutants)
        for number, mutant in enumerate(mutants, 1):
            since = time.monotonic()
            why = trial.missed(mutant)
            missed += bool(why)
            took = f"{time.monotonic() - since:5.1f} s"
            print(f"{number:3d}/{len(mutants)} {took}  {'MISSED ' if why else 'noticed'}  {mutant.file}: {mutant.why}")
            if why:
                print(f"    {why}")
            sys.stdout.flush()
    print(f"{len(mutants) - missed} of {len(mutants)} noticed in {time.monotonic() - began:.0f} s")
    return 1 if missed else 0


def _chosen(mutants: list[Mutant], given: argparse.Namespace) -> list[Mutant]:
    """The mistakes that the command line selects. Raises Unfit if there are none."""
    mutants = [one for one in mutants if not given.words or any(word in one.file + one.why for word in given.words)]
    if not mutants:
        raise Unfit(f"no mistake is about {' or '.join(given.words)}")
    if given.some is None:
        return mutants
    if given.by_date:
        return of_the_day(mutants, given.some, datetime.datetime.now(datetime.UTC).date())
    return random.sample(mutants, min(given.some, len(mutants)))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dev.mutants", allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="only check that the list fits the tree")
    parser.add_argument("--some", type=_number, metavar="N", help="plant N at random")
    parser.add_argument("--by-date", action="store_true", help="select by the date (UTC): different ones each day")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only mistakes with this in their file or line")
    return parser


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError("a number from 1 on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
