"""Options that several measurements share."""

from __future__ import annotations

import argparse
import signal
import sys
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


def end_on_sigterm() -> None:
    """Makes sure that stores and servers end with the measurement."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
