"""No module imports one that imports it, by whatever way, and importing a package imports nothing more.

Every import counts: within a function and for types alone, too. What two modules have to know of each other is a third
one below both, or a Protocol in the one that needs it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
OTHERS = {"build", "node_modules"}
OFFERED = {"latchkey.testing"}
"""Packages whose names are imported from the package itself: the test kit's."""


def sources() -> dict[str, Path]:
    """Every file of Python here, by the name under which it is imported."""
    found = [*ROOT.glob("*.py")]
    for top in ROOT.iterdir():
        if top.is_dir() and not top.name.startswith(".") and top.name not in OTHERS:
            found += (path for path in top.rglob("*.py") if not OTHERS & {*path.parts})
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in found}


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of ours that a module imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from named & known.keys()
            if named - known.keys():
                yield node.module


@cache
def graph() -> dict[str, set[str]]:
    """What each module imports of ours."""
    known = sources()
    return {name: set(imports(path, known)) for name, path in known.items()}


def test_no_import_is_circular() -> None:
    assert {"server", "store.wiring", "tests.repo.test_imports"} <= graph().keys()
    circle: list[str] = []
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]
    if circle:
        pytest.fail("each of these imports the next: " + ", ".join(circle))


def test_a_package_imports_nothing() -> None:
    packages = [name for name, path in sources().items() if path.name == "__init__.py"]
    assert len(packages) > 10
    assert {name for name in packages if graph()[name]} == OFFERED
