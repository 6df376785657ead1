"""Amounts of money in text, fields and requests: exact to the micro-dollar, everything else refused."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.core.amounts import DOLLARS_PATTERN, dollars, spend_limit, typed_limit
from handlers.core.format import MINUS, money, money_field, until
from handlers.core.params import Params
from handlers.core.words.languages import shipped
from handlers.core.words.wording import NBSP, Wording
from store.credits.credits import MAX_AMOUNT
from store.refused import Refused
from tests.support.browser.portal_samples import NOW
from tests.support.lists.offenders import each


@each(
    ("micro", "words"),
    [
        (0, "$0.00"),
        (1, "$0.000001"),
        (150, "$0.00015"),
        (10_000, "$0.01"),
        (100_000, "$0.10"),
        (1_230_000, "$1.23"),
        (1_234_000, "$1.234"),
        (4_990_000, "$4.99"),
        (999_999_999, "$999.999999"),
        (1_250_000_000, "$1,250.00"),
        (10**15 - 1, "$999,999,999.999999"),
        (-150, f"{MINUS}$0.00015"),
        (-1_250_000_000, f"{MINUS}$1,250.00"),
    ],
)
def test_amounts_are_formatted_in_dollars(micro: int, words: str) -> None:
    assert money(micro) == words


@each(
    ("micro", "exact", "total"),
    [
        (20_000_000, "20,00", "20,00"),
        (1_250_000_000, "1.250,00", "1.250,00"),
        (27_160_004, "27,160004", "27,16"),
        (20_125_000, "20,1250", "20,12"),
        (226_000, "0,226", "0,22"),
        (150, "0,00015", "0,00015"),
        (-5_000, f"{MINUS}0,005", f"{MINUS}0,01"),
    ],
)
def test_no_amount_on_a_page_reads_as_thousands_and_sums_have_two_decimals(micro: int, exact: str, total: str) -> None:
    german = Wording(shipped().by_code["de"])
    assert german.money(micro) == f"{exact}{NBSP}$"
    assert german.total(micro) == f"{total}{NBSP}$"


@given(st.integers(0, MAX_AMOUNT))
def test_a_shown_amount_parses_to_the_same_value(micro: int) -> None:
    shown = money_field(micro)
    assert dollars(shown) == micro
    assert re.fullmatch(DOLLARS_PATTERN, shown)
    assert money(micro).replace(",", "") in (f"${shown}", f"${shown.removesuffix('0')}")


@each(("micro", "text"), [(1_234_000, "1.2340"), (234_000, "0.234"), (1_234_500, "1.2345"), (1_230_000, "1.23")])
def test_a_field_never_shows_a_point_that_could_divide_thousands(micro: int, text: str) -> None:
    assert money_field(micro) == text
    assert dollars(text) == micro


def test_no_limit_is_an_empty_field() -> None:
    assert money_field(None) == ""


@each(
    ("text", "micro"),
    [
        ("5", 5_000_000),
        ("5.", 5_000_000),
        ("5.00", 5_000_000),
        (" 5.5 ", 5_500_000),
        ("$5", 5_000_000),
        ("$ 5.25", 5_250_000),
        (".5", 500_000),
        ("0", 0),
        ("0.000001", 1),
        ("0.1", 100_000),
        ("0.29", 290_000),
        ("1000000", MAX_AMOUNT),
        ("0005", 5_000_000),
        ("5,00", 5_000_000),
        ("0,5", 500_000),
        (",25", 250_000),
        ("0,125", 125_000),
        ("1250,5", 1_250_500_000),
        ("1,2505", 1_250_500),
        ("1.2500", 1_250_000),
        ("0.125", 125_000),
    ],
)
def test_typed_dollars_are_parsed(text: str, micro: int) -> None:
    assert dollars(text) == micro
    assert re.fullmatch(DOLLARS_PATTERN, text)


@each(
    "text",
    [
        pytest.param("1,250", id="a comma for thousands, or for the point"),
        pytest.param("1.250", id="a point for thousands, or for decimals"),
        pytest.param("$1000.000", id="a point after four digits"),
        pytest.param("1.234,5", id="a point and a comma"),
        pytest.param("1,000", id="thousands"),
        pytest.param("-5", id="below zero"),
        pytest.param("+5", id="a sign"),
        pytest.param("0.0000001", id="a seventh decimal"),
        pytest.param("1000000.000001", id="more than a million"),
        pytest.param("9" * 5000, id="far more"),
        pytest.param("1e3", id="an exponent"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("five", id="a word"),
        pytest.param("NaN", id="no number"),
        pytest.param("Infinity", id="without end"),
        pytest.param(".", id="a point"),
        pytest.param("$", id="a sign of money"),
        pytest.param("5 5", id="two numbers"),
        pytest.param("5.0.0", id="two points"),
        pytest.param("\N{ARABIC-INDIC DIGIT FIVE}", id="digits of another script"),
        pytest.param("5\n6", id="two lines"),
        pytest.param("5€", id="another currency"),
    ],
)
def test_other_text_is_refused_as_an_amount(text: str) -> None:
    with pytest.raises(Refused, match="invalid_request") as refused:
        dollars(text)
    assert "such as 5 or 5.00" in refused.value.description


def test_an_empty_field_means_no_limit_and_a_missing_one_is_an_error() -> None:
    assert typed_limit(Params({"dollars": ""}), "dollars") is None
    assert typed_limit(Params({"dollars": " "}), "dollars") is None
    assert typed_limit(Params({"dollars": "0"}), "dollars") == 0
    for values in ({}, {"dollars": 5}):
        with pytest.raises(Refused, match="invalid_request"):
            typed_limit(Params(values), "dollars")


# `spend_limit` of a program and what it means.
LIMITS: list[tuple[Any, Any]] = [
    (5_000_000, 5_000_000),
    (0, 0),
    ("5000000", 5_000_000),
    ("0", 0),
    (MAX_AMOUNT, MAX_AMOUNT),
    (str(MAX_AMOUNT), MAX_AMOUNT),
    (None, "none"),
    ("", ""),
]
NO_LIMITS = [
    pytest.param(-1, id="below zero"),
    pytest.param("-1", id="below zero as text"),
    pytest.param(MAX_AMOUNT + 1, id="too much"),
    pytest.param(str(MAX_AMOUNT + 1), id="too much as text"),
    pytest.param("9" * 5000, id="far too much"),
    pytest.param(5.0, id="a float"),
    pytest.param(1e3, id="a float with an exponent"),
    pytest.param("5.0", id="a decimal point"),
    pytest.param("1e3", id="an exponent"),
    pytest.param("$5", id="dollars"),
    pytest.param(" 5", id="a space"),
    pytest.param("5\n", id="a line break"),
    pytest.param("0x10", id="hexadecimal"),
    pytest.param("\N{ARABIC-INDIC DIGIT FIVE}", id="digits of another script"),
    pytest.param("none", id="a word"),
    pytest.param(True, id="true"),
    pytest.param(False, id="false"),
    pytest.param([5], id="a list"),
    pytest.param({"amount": 5}, id="an object"),
]


@each(("sent", "meant"), LIMITS)
def test_a_program_sets_a_spend_limit(sent: Any, meant: Any) -> None:
    found = spend_limit(Params({"spend_limit": sent}))
    assert (found, type(found)) == (meant, type(meant))


def test_a_missing_spend_limit_changes_nothing() -> None:
    assert spend_limit(Params({})) == ""


@each("sent", NO_LIMITS)
def test_other_values_are_refused_as_a_spend_limit(sent: Any) -> None:
    with pytest.raises(Refused, match="invalid_request"):
        spend_limit(Params({"spend_limit": sent}))


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (timedelta(minutes=9, seconds=59), "in 9 minutes"),
        (timedelta(seconds=45), "in 1 minute"),
        (timedelta(seconds=44), "in a moment"),
        (-timedelta(minutes=9), "in a moment"),
    ],
)
def test_until(ahead: timedelta, words: str) -> None:
    assert until(NOW + ahead, NOW) == words
