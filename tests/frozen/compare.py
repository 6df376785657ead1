"""Compares what was seen with its snapshot, and says in words what differs and how to accept it."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "snapshots"
ACCEPT = "LATCHKEY_FROZEN"
"""Set to `accept`, snapshots are written instead of compared: `make frozen` does that."""
HOW = """\
A change that only moves or renames code must not change this: find out which name leaked.
Where users are meant to see the change, run `make frozen` and commit the new lines with it."""
# `metric label=VALUE`, `KEY has FIELD`, `logger: FIELD: type`, `type VALUE`, `KEY (type, …)`.
_NAME = re.compile(r"^latchkey_\w+ \w+=(\S+)$| has (\S+)$|: (\w+): \w+$|^(?:reason|type) (\S+)$|^(\S+) \(")
MOST = 40
"""Differences of one kind that a message shows."""


def snapshot(kind: str) -> list[str]:
    """The lines that are kept; none before there is a file."""
    path = FOLDER / f"{kind}.txt"
    return path.read_text("utf-8").splitlines()[1:] if path.exists() else []


def hold(kind: str, about: str, lines: Iterable[str], words: Container[str] = ()) -> str:
    """What differs where `lines` are not those of `snapshots/<kind>.txt`, of which `about` is the first line; else "".

    A line of the file that was not seen counts as seen as long as the name in it is among `words`, those of the code:
    what only a fault or the right moment brings about need not be brought about here.
    """
    path = FOLDER / f"{kind}.txt"
    kept = snapshot(kind)
    seen = {*lines, *(line for line in kept if _known(line, words))}
    if os.environ.get(ACCEPT) == "accept":
        path.write_text("\n".join([f"# {about}", *sorted(seen)]) + "\n", "utf-8")
        return ""
    gone, new = [one for one in kept if one not in seen], sorted(seen - set(kept))
    return difference(path.name, about, gone, new) if gone or new else ""


def agree(*differences: str) -> None:
    """Fails the test with all that differs."""
    found = [one for one in differences if one]
    if found:
        pytest.fail("\n\n".join([*found, HOW]), pytrace=False)


def _known(line: str, words: Container[str]) -> bool:
    """Whether each part of the name that a line is about is among `words`: of a label its value, of a field or a key
    what is no placeholder."""
    found = _NAME.search(line)
    if not found:
        return False
    name = next(filter(None, found.groups()))
    if name.startswith("{") and "<" not in name:
        return name in words
    parts = [part for part in re.split(r"[:{}]", name) if part not in ("", "u") and not part.startswith("<")]
    return all(part in words for part in parts)


def difference(name: str, about: str, gone: list[str], new: list[str]) -> str:
    """What differs in one file, in words."""
    shown = [f"  - {line}" for line in gone[:MOST]] + [f"  + {line}" for line in new[:MOST]]
    left = len(gone) + len(new) - len(shown)
    return "\n".join(
        [
            f"tests/frozen/snapshots/{name} no longer holds. {about}",
            f"{len(gone)} lines are gone (-), {len(new)} are new (+):",
            *shown,
            *([f"  … and {left} more"] if left else []),
        ]
    )
