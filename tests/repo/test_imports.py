"""The checks of imports in `make lint`, and that the tree passes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.checks.imports import complaints, sources


@pytest.mark.slow
def test_the_tree_has_no_wrong_import() -> None:
    """`make lint` asks the same."""
    assert {"server", "store.wiring", "tests.repo.test_imports"} <= sources().keys()
    assert complaints() == []


def write(root: Path, **modules: str) -> None:
    """Writes a package and its modules, by name."""
    (root / "store").mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (root / "store" / f"{name}.py").write_text(text)


def test_a_circle_of_imports_is_reported(tmp_path: Path) -> None:
    write(tmp_path, a="from store import b", b="def late():\n    import store.c", c="from store.a import one")
    (found,) = complaints(tmp_path)
    assert found.startswith("each of these imports the next: ")
    assert {"store.a", "store.b", "store.c"} == {*found.partition(": ")[2].split(", ")}


def test_a_package_that_imports_is_reported(tmp_path: Path) -> None:
    write(tmp_path, __init__="from store.a import one", a="one = 1")
    assert complaints(tmp_path) == ["store: a package that imports"]


def test_only_what_starts_the_server_imports_it(tmp_path: Path) -> None:
    for name, text in {"server": "", "manage": "import server"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    write(tmp_path, a="import server", b="from manage import main")
    assert complaints(tmp_path) == ["store.a imports server.py", "store.b imports manage.py"]
