"""Every clause of the specification and of the standards, and every known trap, has a test that names it, and no test
names another."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.lists.demands import Demand
from tests.support.lists.fapi_clauses import FAPI
from tests.support.lists.offenders import each
from tests.support.lists.openid_clauses import DEMANDS
from tests.support.lists.reading import WIRE
from tests.support.lists.rfc_device_clauses import DEVICES
from tests.support.lists.rfc_exchange_clauses import EXCHANGES
from tests.support.lists.rfc_metadata_clauses import RESOURCE_METADATA
from tests.support.lists.rfc_proof_clauses import PROOF_CLAUSES
from tests.support.lists.rfc_registration_clauses import REGISTRATION_CLAUSES
from tests.support.lists.rfc_request_clauses import REQUEST_CLAUSES
from tests.support.lists.rfc_token_clauses import TOKEN_CLAUSES
from tests.support.lists.spec_clauses import CLAUSES, TRAPS, Clause

HERE = Path(__file__).parent.parent
RFCS: Mapping[str, Demand] = {
    **TOKEN_CLAUSES,
    **REQUEST_CLAUSES,
    **PROOF_CLAUSES,
    **RESOURCE_METADATA,
    **REGISTRATION_CLAUSES,
    **DEVICES,
    **EXCHANGES,
}
STANDARDS: Mapping[str, Mapping[str, Demand]] = {"openid": DEMANDS, "fapi": FAPI, "rfc": RFCS}
"""Tables of standards, by the marker of their tests."""
MARKERS = ("spec", "trap", *STANDARDS)


def marked() -> Iterator[tuple[str, object, str]]:
    """Each mark of the suite that names a clause or a trap: the marker, the clause and the place."""
    calls = {f"pytest.mark.{marker}" for marker in MARKERS}
    for path in sorted(HERE.rglob("test_*.py")):
        text = path.read_text()
        if not any(f"{call}(" in text for call in calls):  # to parse all would take a second
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in calls:
                where = f"{path.name}:{node.lineno}"
                assert len(node.args) == 1, f"{where}: one clause each"
                assert isinstance(node.args[0], ast.Constant), f"{where}: a literal"
                yield ast.unparse(node.func).rpartition(".")[2], node.args[0].value, where


@pytest.fixture(scope="module")
def places() -> Mapping[str, Mapping[object, list[str]]]:
    """Where the suite names each clause and each trap."""
    found: dict[str, dict[object, list[str]]] = {marker: defaultdict(list) for marker in MARKERS}
    for marker, named, where in marked():
        found[marker][named].append(where)
    return found


def named(clauses: Mapping[str, Clause] | Mapping[int, Clause]) -> list[object]:
    return [pytest.param(name, clause, id=f"{name} {clause.summary}") for name, clause in clauses.items()]


def check(name: object, clause: Clause, places: Mapping[object, list[str]]) -> None:
    if clause.later:
        assert name not in places, f"{name} is tested now: take `later` out of tests/support/lists/spec_clauses.py"
    else:
        assert name in places, f"no test is marked for {name}: {clause.summary}"


@each(("name", "clause"), named(CLAUSES))
def test_a_clause_has_a_test(places: Mapping[str, Mapping[object, list[str]]], name: str, clause: Clause) -> None:
    check(name, clause, places["spec"])


@each(("name", "clause"), named(TRAPS))
def test_a_trap_has_a_test(places: Mapping[str, Mapping[object, list[str]]], name: int, clause: Clause) -> None:
    check(name, clause, places["trap"])


@each(
    ("standard", "name", "demand"),
    [
        pytest.param(standard, name, demand, id=f"{standard} {name}: {demand.summary}")
        for standard, demands in STANDARDS.items()
        for name, demand in demands.items()
    ],
)
def test_a_clause_of_a_standard_has_a_test_or_a_reason(
    places: Mapping[str, Mapping[object, list[str]]], standard: str, name: str, demand: Demand
) -> None:
    if demand.without:
        assert name not in places[standard], f"{name} is tested: take the reason out of the list"
    else:
        assert name in places[standard], "no test is marked for it"


def test_tests_name_only_existing_clauses_and_traps(places: Mapping[str, Mapping[object, list[str]]]) -> None:
    assert {name: where for name, where in places["spec"].items() if name not in CLAUSES} == {}
    assert {name: where for name, where in places["trap"].items() if name not in TRAPS} == {}
    for standard, demands in STANDARDS.items():
        assert {name: where for name, where in places[standard].items() if name not in demands} == {}


def test_every_name_of_tests_that_run_on_both_servers_is_a_file() -> None:
    gone = [
        (folder, name) for folder, names in WIRE.items() for name in names if not [*HERE.rglob(f"{folder}/{name}*")]
    ]
    assert gone == [], "WIRE in tests/support/lists/reading.py names these"
