"""The mistakes listed in `mutants.toml`, and a check that the list fits the tree."""

from __future__ import annotations

import ast
import datetime
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

LIST = Path(__file__).parent / "mutants.toml"
_FIELDS = {"file", "why", "find", "replace", "tests"}


class Unfit(Exception):
    """The list is unusable; the message says why."""


@dataclass(frozen=True)
class Mutant:
    """One mistake: `replace` takes the place of `find` in `file`, and each of `tests` must fail. `why` says in a line
    what goes wrong."""

    file: str
    why: str
    find: str
    replace: str
    tests: tuple[str, ...]

    def apply(self, text: str) -> str:
        """The content of the file with the mistake."""
        return text.replace(self.find, self.replace)


def load(file: Path = LIST) -> list[Mutant]:
    """The mistakes of a list. Raises Unfit."""
    try:
        rows: list[dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))["mutant"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise Unfit(f"{file.name}: {error}") from None
    for number, row in enumerate(rows, 1):
        if set(row) != _FIELDS:
            raise Unfit(f"{file.name}: mutant {number} has the fields {sorted(row)}, not {sorted(_FIELDS)}")
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def complaints(mutants: Sequence[Mutant], root: Path) -> list[str]:
    """Complaints about the list: texts not found exactly once in the tree at `root`, tests that do not exist."""
    return [f"{mutant.file}: {said}" for mutant in mutants for said in _complaints(mutant, root)]


def _complaints(mutant: Mutant, root: Path) -> list[str]:
    found = []
    try:
        times = (root / mutant.file).read_text("utf-8").count(mutant.find)
    except OSError:
        return ["there is no such file"]
    if times != 1:
        found.append(f"found {times} times instead of once: {mutant.find!r}")
    if mutant.find == mutant.replace:
        found.append(f"changes nothing: {mutant.find!r}")
    if not mutant.tests:
        found.append(f"no test is named for: {mutant.find!r}")
    found += [f"there is no test {test}" for test in mutant.tests if not _exists(test, root)]
    return found


def _exists(test: str, root: Path) -> bool:
    path, *names = test.partition("[")[0].split("::")
    return "::".join(names) in _tests_of(root / path)


@cache
def _tests_of(path: Path) -> frozenset[str]:
    """The test functions of a file, and the methods of its classes."""
    if not path.is_file():
        return frozenset()
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            found |= {f"{node.name}::{name}" for name in methods}
    return frozenset(found)


def of_the_day(mutants: Sequence[Mutant], number: int, day: datetime.date) -> list[Mutant]:
    """Selects some mistakes, spread over the list. Each day selects others, until each has had its turn."""
    number = min(number, len(mutants))
    step = len(mutants) // number
    return [mutants[(day.toordinal() + place * step) % len(mutants)] for place in range(number)]
