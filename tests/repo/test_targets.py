"""The `make` targets for tests are complete: each test has one, and `.ci/run` calls all."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from latchkey import __version__
from tests.conftest import ENGINES, ENGINES_ALONE, pytest_ignore_collect, runs_with_other_engines
from tests.support.lists.reading import APART, KNOWN, load_first, must_read, reads

ROOT = Path(__file__).parent.parent.parent
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = ("test", "test-slow", "test-engines", "test-browser", "test-bench")


def expression_of(target: str) -> str:
    """The tests that a target runs: pytest's arguments."""
    (recipe,) = re.findall(rf"^{target}:.*\n\t(.*)", MAKEFILE, re.MULTILINE)
    (found,) = re.findall(r'pytest \$\(PARALLEL\) -m (?:"([^"]+)"|(\w+)) \$\(ARGS\)$', recipe)
    return "".join(found)


def test_each_test_has_exactly_one_target() -> None:
    """Whatever markers of those that the targets know it has."""
    known = {name for target in TARGETS for name in re.findall(r"\w+", expression_of(target))} - {"not", "and", "or"}
    assert known == {*APART, "slow", "engines"}
    for size in (0, 1):
        for markers in combinations(sorted(known), size):
            has = {name: name in markers for name in known}
            # The expressions of pytest are those of Python.
            taken = [target for target in TARGETS if eval(expression_of(target), {}, has)]  # noqa: S307  # our own file
            assert len(taken) == 1, f"{markers}: {taken}"
            rest = eval(expression_of("test-rest"), {}, has)  # noqa: S307  # the same file
            assert rest == (taken != ["test"]), markers


def test_no_test_has_two_target_markers(request: pytest.FixtureRequest) -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        beginnings = sum(path.name.startswith(beginning) for beginning in APART.values())
        assert beginnings + ("pytest.mark.slow" in path.read_text("utf-8")) <= 1, path.name
    for item in request.session.items:
        markers = [name for name in (*APART, "slow", "engines") if item.get_closest_marker(name)]
        assert len(markers) <= 1, f"{item.nodeid}: {markers}"


def test_a_run_reads_every_file_with_its_tests() -> None:
    """conftest.py fails if a test has a marker whose runs leave its file out; this is about whole expressions."""
    expressions = {*re.findall(r"PARALLEL\) -m \"?([\w ]+?)\"? \$\(ARGS\)", MAKEFILE)}
    assert {"wire and not protocol", "protocol", *map(expression_of, (*TARGETS, "test-rest"))} <= expressions
    for path in (ROOT / "tests").rglob("test_*.py"):
        has = {marker: reads(path, marker) for marker in KNOWN}
        elsewhere = has["slow"] or any(has[marker] for marker in APART)
        for expression in expressions:
            config: Any = SimpleNamespace(option=SimpleNamespace(markexpr=expression))
            read = pytest_ignore_collect(path, config) is None
            wanted = [one for one in KNOWN if re.search(rf"(?<!not )\b{one}\b", expression)]
            assert read >= any(has[one] for one in wanted), f"{path.name}: {expression}"
            assert read or wanted or elsewhere, f"{path.name}: {expression}"
    for expression in ("", "http", "spec and not slow", "not (slow or wire)", "slow and (wire or http)"):
        assert must_read(ROOT / "tests" / "oauth" / "test_flow.py", expression), expression


def test_of_a_file_whose_tests_are_partly_slow_the_others_are_read(tmp_path: Path) -> None:
    partly, wholly = tmp_path / "test_partly.py", tmp_path / "test_wholly.py"
    partly.write_text("@pytest.mark.slow\ndef test_one(): ...\n")
    wholly.write_text("pytestmark = [pytest.mark.gen_test(timeout=60),\n    pytest.mark.slow]\n")
    for expression, read in (("not slow", [partly]), ("slow", [partly, wholly]), ("not wire", [partly, wholly])):
        assert [path for path in (partly, wholly) if must_read(path, expression)] == read, expression


def test_the_processes_of_a_run_share_out_what_none_has_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "made_for_loading"
    folder.mkdir()
    for number in range(5):
        (folder / f"test_number_{number}.py").write_text("raise ValueError\n" if number == 2 else "")
    monkeypatch.syspath_prepend(tmp_path)

    def loaded() -> list[str]:
        return sorted(name[-1] for name in sys.modules if name.startswith("made_for_loading.test"))

    load_first(folder, "", 0, 2)
    assert loaded() == ["0", "4"], "a file that fails is left for its collection"
    load_first(folder, "", 1, 2)
    assert loaded() == ["0", "1", "3", "4"]
    for name in [name for name in sys.modules if name.startswith("made_for_loading")]:
        monkeypatch.delitem(sys.modules, name)
    (folder / "__pycache__").mkdir(exist_ok=True)
    for number in (0, 4):
        (folder / "__pycache__" / f"test_number_{number}.cpython-311-pytest-9.2.0.pyc").touch()
    load_first(folder, "", 0, 2)
    assert loaded() == [], "pytest has kept most"


def test_the_store_contract_runs_on_every_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that runs elsewhere on some engines is not about the store."""
    monkeypatch.delenv("LATCHKEY_TEST_ENGINES", raising=False)
    contract, flow = (ROOT / "tests" / name for name in ("engine/keys/test_fsck.py", "oauth/test_grace.py"))
    for engine in ENGINES:
        assert not runs_with_other_engines(contract, engine)
        assert runs_with_other_engines(flow, engine) == (engine in ENGINES_ALONE)
    assert not runs_with_other_engines(flow, None)
    # Where a run names the engines, it has all its tests.
    monkeypatch.setenv("LATCHKEY_TEST_ENGINES", ",".join(ENGINES))
    assert not any(runs_with_other_engines(flow, engine) for engine in ENGINES)


def test_the_required_checks_include_all_targets() -> None:
    called = re.findall(r"^make (\S+)$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert {"test", "test-rest"} <= set(called)
    # Nothing that is set up for all runs of pytest leaves tests out.
    settings = (ROOT / "setup.cfg").read_text("utf-8").split("[tool:pytest]")[1].split("\n[")[0]
    (options,) = re.findall(r"^addopts = (.*)$", settings, re.MULTILINE)
    assert not {"-m", "-k", "--ignore", "--deselect"} & {option.partition("=")[0] for option in options.split()}


def test_markers_match_what_a_file_uses(request: pytest.FixtureRequest) -> None:
    """Chromium is driven in files that say so by their name; so are the programs that measure."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text("utf-8")
        drives = bool(re.search(r"^from tests(?:\.\w+)* import .*\b(?:Foreign)?Chromium\b", text, re.MULTILINE))
        assert drives == path.name.startswith(APART["browser"]), path.name
        names = {
            item.name for item in request.session.items if item.path == path and item.get_closest_marker("browser")
        }
        assert drives or not names


def test_the_command_works_from_an_environment_elsewhere(tmp_path: Path) -> None:
    environment = tmp_path / "another place"
    (environment / "bin").mkdir(parents=True)
    # In the place of the environment's Python, which would take packages to install.
    python = environment / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o700)
    # make takes no blanks in names of files.
    link = tmp_path / "link"
    link.symlink_to(environment)
    subprocess.run(["make", "-s", f"VENV={link}", f"{link}/bin/latchkey"], cwd=ROOT, check=True)
    said = subprocess.run([link / "bin" / "latchkey", "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert (said.stdout, said.stderr) == (f"latchkey {__version__}\n", "")
