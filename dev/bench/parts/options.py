"""Options that several measurements share."""

from __future__ import annotations

import argparse
import signal
import sys
from argparse import Namespace
from collections.abc import Collection, Sequence
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "results"


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not 1 <= int(text) <= 100_000_000:
        raise ValueError
    return int(text)


def counts(text: str) -> list[int]:
    """Several numbers, separated by commas."""
    return [count(part) for part in text.split(",")]


def add_rounds(parser: argparse.ArgumentParser, *, connections: list[int], json: str) -> None:
    """Options for how long and how hard to measure."""
    shown = ",".join(map(str, connections))
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="rounds that count (default 5)")
    parser.add_argument("--burst", type=count, default=2, metavar="N", help="seconds of a burst (default 2)")
    parser.add_argument(
        "--patience", type=int, default=3, metavar="N", help="times that a disturbed burst is sent again (default 3)"
    )
    parser.add_argument(
        "--connections", type=counts, default=connections, metavar="N,N…", help=f"connections (default {shown})"
    )
    parser.add_argument("--people", type=count, default=10_000, metavar="N", help="people in the store (default 10000)")
    parser.add_argument("--http", default="", metavar="SERVER", help="the HTTP server, where there are several")
    parser.add_argument(
        "--json", type=Path, default=RESULTS / json, metavar="FILE", help=f"where all samples go (default {json})"
    )


def names(text: str) -> list[str]:
    """Several names, separated by semicolons."""
    return text.split(";")


def add_calls(parser: argparse.ArgumentParser) -> None:
    """An option for the calls to measure; ceilings are measured with any of them."""
    parser.add_argument(
        "--calls", type=names, default=[], metavar="NAME;NAME…", help="only these rows; needs --json (default all)"
    )


def with_calls(parser: argparse.ArgumentParser, argv: Sequence[str] | None, known: Collection[str]) -> Namespace:
    """The options. Raises SystemExit if calls are unknown, or if the results of a few calls would replace those of all
    calls."""
    options = parser.parse_args(argv)
    if unknown := [call for call in options.calls if call not in known]:
        parser.error(f"argument --calls: {'; '.join(unknown)} is not one of {'; '.join(known)}")
    if options.calls and options.json.parent == RESULTS:
        parser.error("argument --calls: the results of some calls need a --json file of their own")
    return options


def end_on_sigterm() -> None:
    """Makes sure that stores and servers end with the measurement."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
