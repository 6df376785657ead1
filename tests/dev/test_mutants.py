"""The list of single mistakes fits the tree, and planting tells caught mistakes from missed ones."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from dev.mutants.__main__ import main, plant
from dev.mutants.catalogue import Mutant, Unfit, complaints, load, of_the_day
from tests.repo.test_layers import ROOT

TEST = "test_sum.py::test_sum"


def mutant(find: str = "a + b", replace: str = "a - b", *tests: str, file: str = "sums.py") -> Mutant:
    return Mutant(file, "The sum is none.", find, replace, tests or (TEST,))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project whose test covers a sum, but not the sum of nothing."""
    (tmp_path / "setup.cfg").write_text("[tool:pytest]\naddopts = -p no:schemathesis -p no:latchkey\n")
    (tmp_path / "sums.py").write_text("def total(a, b):\n    return a + b if a or b else 0\n")
    (tmp_path / "test_sum.py").write_text("from sums import total\n\ndef test_sum():\n    assert total(3, 4) == 7\n")
    return tmp_path


def test_every_mistake_of_the_list_fits_the_tree() -> None:
    mutants = load()
    assert complaints(mutants, ROOT) == []
    assert len({(one.file, one.find, one.replace) for one in mutants}) == len(mutants)
    for one in mutants:
        assert one.why.endswith("."), one.why
        assert "\n" not in one.why, one.why


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        pytest.param(mutant("a * b"), "found 0 times", id="a text that is gone"),
        pytest.param(mutant("b"), "found 3 times", id="a text that is there often"),
        pytest.param(mutant("a + b", "a + b"), "changes nothing", id="no change"),
        pytest.param(mutant(file="gone.py"), "no such file", id="a file that is gone"),
        pytest.param(mutant("a + b", "a - b", "test_sum.py::test_gone"), "no test test_sum.py::test_gone", id="a test"),
        pytest.param(mutant("a + b", "a - b", "gone.py::test_sum"), "no test gone.py::test_sum", id="a file of tests"),
    ],
)
def test_mistakes_that_do_not_fit_are_named(tree: Path, wrong: Mutant, said: str) -> None:
    (complaint,) = complaints([wrong], tree)
    assert said in complaint
    assert complaints([mutant()], tree) == []


def test_a_mistake_counts_as_noticed_where_its_test_runs_and_fails(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (tree / "sums.py").read_text()
    assert plant([mutant(), mutant("else 0", "else 1"), mutant("def total", "def sum_of")], tree) == 1
    said = capsys.readouterr().out
    noticed, missed, why, no_import, *_, last = said.splitlines()
    assert "noticed  sums.py" in noticed
    assert "MISSED   sums.py" in missed
    assert why == f"    not noticed by {TEST}"
    assert "MISSED   sums.py" in no_import
    assert "did not run to their end" in said
    assert last.startswith("1 of 3 noticed")
    assert (tree / "sums.py").read_text() == before


def test_tests_that_fail_by_themselves_show_nothing(tree: Path) -> None:
    (tree / "sums.py").write_text("def total(a, b):\n    return a + b + 1\n")
    with pytest.raises(Unfit, match="fail without any mistake"):
        plant([mutant()], tree)


@pytest.mark.parametrize(("total", "number"), [(60, 10), (61, 10), (7, 3), (3, 10)])
def test_by_date_every_mistake_has_its_turn(total: int, number: int) -> None:
    mutants = [mutant(str(place)) for place in range(total)]
    first = datetime.date(2026, 12, 28)
    days = [of_the_day(mutants, number, first + datetime.timedelta(days)) for days in range(-(-total // number) + 1)]
    assert {len({one.find for one in chosen}) for chosen in days} == {min(number, total)}
    assert {one.find for chosen in days for one in chosen} == {one.find for one in mutants}


def test_the_command_checks_and_says_what_it_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert f"{len(load())} mistakes fit the tree" in capsys.readouterr().out
    assert main(["no such word"]) == 2
    assert "no mistake is about no such word" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--some", "0"])
    assert "a number from 1 on" in capsys.readouterr().err
