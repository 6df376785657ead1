"""Checks three things about imports: there is no circle, packages import nothing, and only the modules that start
`server.py` and `manage.py` import them. import-linter reads packages only, so it cannot read these two.

Every import counts, also within a function and for types alone. If two modules need to know each other, a third module
below both has what they share, or the one that needs the other declares a Protocol.

`python -m dev.checks.imports` prints what is wrong, and fails if anything is.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OTHERS = {"build", "node_modules"}
OFFERED = {"latchkey.testing"}
"""Packages whose names are imported from the package itself: the test kit's."""
STARTS = {"server": {"manage"}, "manage": {"latchkey.command"}}
"""The modules that may import those at the top, apart from tests and tools."""
ABOVE = ("dev.", "tests.", "deploy.")

Graph = Mapping[str, set[str]]
"""What each module imports of ours."""


def sources(root: Path = ROOT) -> dict[str, Path]:
    """Every file of Python in a tree, by the name under which it is imported."""
    found = [*root.glob("*.py")]
    for top in root.iterdir():
        if top.is_dir() and not top.name.startswith(".") and top.name not in OTHERS:
            found += (path for path in top.rglob("*.py") if not OTHERS & {*path.parts})
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in found}


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules of ours that a module imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module in known:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from named & known.keys()
            if named - known.keys():
                yield node.module


def circle(graph: Graph) -> list[str]:
    """Modules of which each imports the next; empty if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return []


def from_below(graph: Graph) -> Iterator[str]:
    """Complaints about imports of the modules at the top."""
    for name, imported in sorted(graph.items()):
        for start in sorted(imported & STARTS.keys()):
            if name not in STARTS[start] and not name.startswith(ABOVE):
                yield f"{name} imports {start}.py"


def complaints(root: Path = ROOT) -> list[str]:
    """Everything that is wrong in a tree."""
    known = sources(root)
    graph = {name: set(imports(path, known)) for name, path in known.items()}
    around = circle(graph)
    found = [f"each of these imports the next: {', '.join(around)}"] if around else []
    packages = (name for name, path in known.items() if path.name == "__init__.py")
    found += [f"{name}: a package that imports" for name in packages if graph[name] and name not in OFFERED]
    return [*found, *from_below(graph)]


def main() -> int:
    """The exit status."""
    found = complaints()
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
