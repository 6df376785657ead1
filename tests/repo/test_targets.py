"""The `make` targets for tests are complete: each test has one, and `.ci/run` calls all."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import APART, ENGINES, ENGINES_ALONE, pytest_ignore_collect, runs_with_other_engines

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
            rest = eval(expression_of("test-rest"), {}, has)  # noqa: S307
            assert rest == (taken != ["test"]), markers


def test_no_test_has_two_target_markers(request: pytest.FixtureRequest) -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        beginnings = sum(path.name.startswith(beginning) for beginning in APART.values())
        assert beginnings + ("pytest.mark.slow" in path.read_text("utf-8")) <= 1, path.name
    for item in request.session.items:
        markers = [name for name in (*APART, "slow", "engines") if item.get_closest_marker(name)]
        assert len(markers) <= 1, f"{item.nodeid}: {markers}"


def test_a_run_of_one_marker_collects_every_file_with_it() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        has = {marker: path.name.startswith(beginnings) for marker, beginnings in APART.items()}
        has["slow"] = bool(re.search(r"\bmark\.slow\b", path.read_text("utf-8")))
        for marker, here in has.items():
            config: Any = SimpleNamespace(option=SimpleNamespace(markexpr=marker))
            assert (pytest_ignore_collect(path, config) is None) >= here, f"{path.name}: {marker}"
    everything: Any = SimpleNamespace(option=SimpleNamespace(markexpr="not slow"))
    assert pytest_ignore_collect(ROOT / "tests" / "oauth" / "test_flow.py", everything) is None


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
