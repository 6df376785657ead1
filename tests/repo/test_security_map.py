"""docs/security.md: the tests and sections that it names exist, and every required section is covered."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.lists.asvs_requirements import REQUIREMENTS
from tests.support.lists.offenders import Test, each
from tests.support.lists.rfc_sections import ACCOUNTED, SECTIONS
from tests.support.lists.spec_clauses import TRAPS

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docs" / "security.md").read_text("utf-8")
SAFEGUARDS = "\n## Threats and safeguards\n"
LEFT_OUT = "\n## What is left out, and why\n"
KNOWN_MISTAKES = "\n## Mistakes that other servers made\n"
VERIFICATION = "\n## OWASP ASVS 5.0, level 2\n"


def rows_below(heading: str) -> list[list[str]]:
    """The rows of the tables under a heading of the second level, as cells."""
    section = TEXT.partition(heading)[2].partition("\n## ")[0]
    lines = [
        line
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith(("| threat ", "| RFC ", "| ASVS "))
    ]
    return [re.split(r"\s*\|\s*", line[2:].removesuffix("|").rstrip()) for line in lines]


SAFE = rows_below(SAFEGUARDS)
LEFT = rows_below(LEFT_OUT)
VERIFIED = rows_below(VERIFICATION)
MISTAKES = [row for row in rows_below(KNOWN_MISTAKES) if row[0] != "mistake"]


@cache
def functions_in(file: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The test functions of a file."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {
        node.name: node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    }


def named(cell: str) -> list[tuple[str, str]]:
    """The tests in a cell, which has nothing else."""
    tests = [part.strip() for part in cell.split(",")]
    assert all(re.fullmatch(r"`tests/(?:\w+/)*test_\w+\.py::test_\w+`", test) for test in tests), cell
    return [(file, name) for file, _, name in (test.strip("`").partition("::") for test in tests)]


def cited(cell: str) -> Iterator[tuple[str, str]]:
    """The sections in a cell: `6749 4.1.3, 10.5, 9700 2.1.1` are three, of two RFCs."""
    rfc = ""
    for part in filter(None, cell.split(", ")):
        words = part.split(" ")
        if len(words) == 2:
            rfc = words[0]
        assert rfc, f"{cell}: which RFC?"
        yield rfc, words[-1]


def check_rows(rows: list[list[str]]) -> Callable[[Test], Test]:
    return each("row", [pytest.param(row, id=row[0]) for row in rows])


def test_the_page_has_tables() -> None:
    assert len(SAFE) > 100
    assert len(LEFT) > 10
    assert len({row[0] for row in SAFE}) == len(SAFE), "each threat has one row"


@check_rows(SAFE)
def test_every_safeguard_names_existing_code_and_tests(row: list[str]) -> None:
    threat, safeguard, _, code, tests = row
    assert threat
    assert safeguard
    assert all((ROOT / path).exists() for path in re.findall(r"`([\w/.]+)`", code))
    assert re.search(r"`[\w/.]+`", code)
    for file, name in named(tests):
        assert (ROOT / file).is_file(), file
        assert name in functions_in(file), f"{file} has no {name}"


@check_rows(SAFE + LEFT)
def test_cited_sections_exist(row: list[str]) -> None:
    for rfc, section in cited(row[2] if len(row) == 5 else row[0]):
        assert section in SECTIONS[rfc], f"RFC {rfc} {section}"


def within(section: str, chapters: tuple[str, ...]) -> bool:
    return any(section == chapter or section.startswith(f"{chapter}.") for chapter in chapters)


@pytest.mark.parametrize("rfc", ACCOUNTED)
def test_every_section_with_requirements_is_covered(rfc: str) -> None:
    safe = {section for row in SAFE for of, section in cited(row[2]) if of == rfc}
    left = {section for row in LEFT for of, section in cited(row[0]) if of == rfc}
    required = {section for section in SECTIONS[rfc] if within(section, ACCOUNTED[rfc])}
    assert {f"{section} {SECTIONS[rfc][section]}" for section in required - safe - left} == set()
    assert left & safe == set(), "what is left out is not there"


@check_rows(LEFT)
def test_every_omission_has_a_reason(row: list[str]) -> None:
    assert len(row) == 2
    assert len(row[1]) > 30


def test_every_known_mistake_has_its_row() -> None:
    assert {int(number): summary for number, summary, _ in MISTAKES} == {
        number: trap.summary for number, trap in TRAPS.items()
    }


@check_rows(MISTAKES)
def test_tests_of_known_mistakes_are_marked(row: list[str]) -> None:
    number, _, tests = row
    for file, name in named(tests):
        marks = [ast.unparse(mark) for mark in functions_in(file)[name].decorator_list]
        assert f"pytest.mark.trap({number})" in marks, f"{file}::{name}"


def test_every_asvs_requirement_has_its_row_in_order() -> None:
    assert len(REQUIREMENTS) == 253
    assert [row[0] for row in VERIFIED] == list(REQUIREMENTS)


def test_met_requirements_name_tests_and_others_give_a_reason() -> None:
    for requirement, asks, state, words, tests in VERIFIED:
        assert asks, requirement
        assert state in ("met", "not applicable", "not met"), requirement
        if state == "met":
            for file, name in named(tests):
                assert name in functions_in(file), f"{requirement}: {file} has no {name}"
        else:
            assert tests == "", requirement
            assert len(words) > 10, requirement
