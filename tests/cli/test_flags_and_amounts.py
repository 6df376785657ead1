"""Common flags are accepted before and after a command, and a negative amount is no flag."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import manage
from cli.commands_parser import DECIMALS, build_parser
from store.credits.credits import SCALE


@pytest.mark.parametrize(
    "words",
    [
        "{} keys list",
        "keys {} list",
        "keys list {}",
    ],
)
@pytest.mark.parametrize("flag", ["--data-dir {home}", "--data-dir={home}"])
def test_settings_are_accepted_anywhere_on_the_command_line(
    words: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "there"
    monkeypatch.chdir(tmp_path)
    assert manage.main(shlex.split(words.format(flag.format(home=home))), {}) == 0
    assert capsys.readouterr().out == "no keys\n"
    assert not (tmp_path / "data").exists()
    assert build_parser().parse_args(shlex.split(words.format(flag.format(home=home)))).data_dir == str(home)


@pytest.mark.parametrize(
    "words", ["--json keys list", "keys --json list", "keys list --json", "--json keys --json list"]
)
def test_json_is_accepted_anywhere_on_the_command_line(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert manage.main(["--data-dir", str(tmp_path), *words.split()], {}) == 0
    assert capsys.readouterr().out == '{"keys": []}\n'


@pytest.mark.parametrize("words", ["--json app sho", "app --json sho", "app sho --json", "app list --xyzzy --json"])
def test_with_json_anywhere_errors_are_json(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert manage.main(words.split(), {}) == 2
    assert capsys.readouterr().err.startswith('{"error": "invalid_request", ')


def test_the_last_of_repeated_flags_wins() -> None:
    parsed = build_parser().parse_args(["--data-dir", "a", "keys", "--data-dir", "b", "list", "--data-dir", "c"])
    assert parsed.data_dir == "c"
    assert build_parser().parse_args(["--data-dir", "a", "keys", "--data-dir", "b", "list"]).data_dir == "b"


@pytest.mark.parametrize(
    "words",
    [
        "ada@example.com -5",
        "ada@example.com -5 --json",
        "--json ada@example.com -5",
        "ada@example.com --reason back -5 --key k",
        "--key k ada@example.com -5",
        "ada@example.com -- -5",
        "-- ada@example.com -5",
    ],
)
@pytest.mark.parametrize("before", ["", "--json", "--data-dir x"])
def test_an_amount_below_zero_is_no_flag(words: str, before: str) -> None:
    parsed = build_parser().parse_args([*before.split(), "credits", "grant", *words.split()])
    assert (parsed.email, parsed.amount) == ("ada@example.com", -5)


@pytest.mark.parametrize(
    ("typed", "micro"),
    [
        ("5000000", 5_000_000),
        ("5usd", 5_000_000),
        ("0.25usd", 250_000),
        ("-0.000001usd", -1),
        ("-1usd", -1_000_000),
        ("1000000.000001usd", 10**12 + 1),
        ("0.1usd", 100_000),
    ],
)
def test_amounts_in_dollars_are_exact_micro_dollars(typed: str, micro: int) -> None:
    assert DECIMALS == SCALE
    assert build_parser().parse_args(["credits", "grant", "ada@example.com", typed]).amount == micro


@pytest.mark.parametrize(
    ("amount", "wanted"),
    [
        ("-5x", "there is no flag -5x|the following arguments are required: AMOUNT"),
        ("-0.5", "argument AMOUNT: an amount such as 5usd"),
        ("--5", "there is no flag --5"),
        ("-" + "9" * 19, "argument AMOUNT: an amount such as 5usd"),
        ("0.0000001usd", "argument AMOUNT: a dollar has 6 decimals at most"),
        ("-0.2500000usd", "argument AMOUNT: a dollar has 6 decimals at most"),
        ("0.25", "argument AMOUNT: an amount such as 5usd"),
        (".5usd", "argument AMOUNT: an amount such as 5usd"),
        ("5.usd", "argument AMOUNT: an amount such as 5usd"),
        ("1,000usd", "argument AMOUNT: an amount such as 5usd"),
        ("5eur", "argument AMOUNT: an amount such as 5usd"),
        ("9" * 13 + "usd", "argument AMOUNT: an amount such as 5usd"),
        ("\u0665usd", "argument AMOUNT: an amount such as 5usd"),
    ],
)
def test_an_invalid_amount_is_refused_with_a_hint(amount: str, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert manage.main(["credits", "grant", "ada@example.com", amount], {}) == 2
    said = capsys.readouterr().err
    assert any(said.startswith(f"manage.py: {one}") for one in wanted.split("|"))
