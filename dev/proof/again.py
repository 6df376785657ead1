"""Judges an earlier history: python -m dev.proof.again build/proof/redis/history.jsonl"""

from __future__ import annotations

import sys
from pathlib import Path

from dev.proof import report
from dev.proof.checker import check, kept
from dev.proof.history import History


def main(argv: list[str]) -> int:
    """Prints the report. Returns 1 if a promise was broken."""
    history = History.load(Path(argv[0]))
    verdicts = check(history)
    print(report.summary(history, verdicts))
    return 0 if kept(verdicts) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
