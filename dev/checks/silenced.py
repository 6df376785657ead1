"""Checks that every mark that silences mypy or ruff gives its reason, such as `# type: ignore[…]` or `# noqa: …`.

`python -m dev.checks.silenced` prints each mark without one, a line each, and fails if there is any.
"""

from __future__ import annotations

import re
import sys
import tokenize
from collections.abc import Iterator
from io import StringIO

from dev.checks.house import ROOT, tracked

MARK = re.compile(
    r"#\s*(?:type:\s*ignore\s*(?:\[[^\]]*\])?|(?:(?:ruff|flake8):\s*)?noqa\s*(?::\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?"
    r"|mypy:\s*[\w-]+(?:\s*=\s*[\w, \"-]+)?|ruff:\s*disable\s*(?:\[[^\]]*\])?)",
    re.IGNORECASE,
)
OTHER = re.compile(r"#\s*pragma:[\w ]*")
"""A mark for the measuring of coverage, which is no reason."""
REASON = re.compile(r"[^\W\d_]{2}")
"""Two letters in what is left of a comment without its marks."""
ADVICE = (
    "this mark has no reason. Give the code a type that needs no mark, or write the reason after the mark: "
    "`# type: ignore[arg-type]  # wrong on purpose`"
)


def marks(text: str) -> Iterator[tuple[int, str]]:
    """The line and the comment of each mark in Python code; a string that shows one is none."""
    if not MARK.search(text):
        return
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT and MARK.search(token.string):
            yield token.start[0], token.string


def unexplained(text: str) -> list[int]:
    """The lines of Python code whose marks have no reason."""
    return [line for line, comment in marks(text) if not REASON.search(MARK.sub("", OTHER.sub("", comment)))]


def complaints() -> list[str]:
    """Every mark without a reason in the tree."""
    names = (name for name in tracked() if name.endswith(".py"))
    return [f"{name}:{line}: {ADVICE}" for name in names for line in unexplained((ROOT / name).read_text("utf-8"))]


def main() -> int:
    """The exit status."""
    found = complaints()
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
