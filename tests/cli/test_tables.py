"""The output of commands for people: plain in a pipe, fitted and coloured in a terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from cli.terminal.outcome import CommandResult
from cli.terminal.tables import in_words, show
from tests.support.processes.operator_commands import Home, at_terminal
from tests.support.processes.store_owners import ROOT

SUB = "0123456789abcdef" * 2
COLUMNS = ("email", "sub", "status", "name")
ROWS: list[dict[str, Any]] = [
    {"email": "ada@example.com", "sub": SUB, "status": "active", "name": "Ada King, Countess of Lovelace"},
    {"email": "bob@example.com", "sub": SUB[::-1], "status": "disabled", "name": "Bob \x1b[31m"},
]
PEOPLE = CommandResult({"users": ROWS}, COLUMNS)
PLAIN = f"""\
email            sub                               status    name
ada@example.com  {SUB}  active    Ada King, Countess of Lovelace
bob@example.com  {SUB[::-1]}  disabled  Bob ?[31m
"""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(outcome: CommandResult, columns: int, monkeypatch: pytest.MonkeyPatch, **environ: str) -> str:
    for name, value in {"COLUMNS": str(columns), "TERM": "xterm-256color", **environ}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    show(outcome, terminal)
    return terminal.getvalue()


def test_a_pipe_gets_one_plain_line_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    pipe = io.StringIO()
    show(PEOPLE, pipe)
    assert pipe.getvalue() == PLAIN == in_words(PEOPLE) + "\n"


def test_a_wide_terminal_gets_one_coloured_line_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(PEOPLE, 120, monkeypatch)
    assert [line.rstrip() for line in COLOUR.sub("", said).splitlines()] == PLAIN.splitlines()
    assert "\x1b[32mactive" in said
    assert "\x1b[33mdisabled" in said
    assert "\x1b[31m" not in said


@pytest.mark.parametrize("columns", [80, 79, 78])
def test_text_wraps_and_ids_do_not(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = COLOUR.sub("", shown(PEOPLE, columns, monkeypatch)).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[1].split()[:4] == ["ada@example.com", SUB, "active", "Ada"]
    assert " ".join(lines[1:-1]).split()[3:] == ["Ada", "King,", "Countess", "of", "Lovelace"]
    assert lines[-1].rstrip() == PLAIN.splitlines()[2]


def test_a_narrow_terminal_gets_rows_as_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = COLOUR.sub("", shown(PEOPLE, 60, monkeypatch)).splitlines()
    assert lines == [
        *("email   ada@example.com", f"sub     {SUB}", "status  active", "name    Ada King, Countess of Lovelace"),
        *("", "email   bob@example.com", f"sub     {SUB[::-1]}", "status  disabled", "name    Bob ?[31m"),
    ]


def test_no_color_turns_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(COLOUR.findall(shown(PEOPLE, 120, monkeypatch, NO_COLOR="1"))) <= {"\x1b[1m", "\x1b[0m"}


def test_fields_rows_and_note(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = CommandResult({"id": "x" * 90, "empty": "", "on": True, "entries": []}, ("at",), note="Keep it.")
    said = COLOUR.sub("", shown(whole, 40, monkeypatch))
    # In one piece, which the terminal breaks, so that it can be copied.
    assert said == f"id     {'x' * 90}\non     yes\n\nno entries\n\nKeep it.\n"
    assert in_words(whole) + "\n" == said


def test_numbers_are_right_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"day": "2026-11-22", "calls": 7}, {"day": "2026-11-21", "calls": 12345}]
    said = COLOUR.sub("", shown(CommandResult({"days": rows}, ("day", "calls")), 80, monkeypatch))
    assert [line.rstrip() for line in said.splitlines()] == [
        "day         calls",
        "2026-11-22      7",
        "2026-11-21  12345",
    ]


def test_empty_columns_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"at": "now", "client_id": "", "reason": "a gift"}]
    gift = CommandResult({"entries": rows}, ("at", "client_id", "reason"))
    said = COLOUR.sub("", shown(gift, 80, monkeypatch))
    assert [line.split() for line in said.splitlines()] == [["at", "reason"], ["now", "a", "gift"]]
    assert in_words(gift).split("\n")[0] == "at   client_id  reason"


def test_markup_in_data_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"name": "[bold]x[/] :smile: `y`"}]
    assert "[bold]x[/] :smile: `y`" in shown(CommandResult({"apps": rows}, ("name",), note="[red]"), 80, monkeypatch)


def test_a_command_at_a_terminal(home: Home) -> None:
    home.app("web")
    seen = at_terminal(ROOT / "manage.py", "--data-dir", str(home.data_dir), "app", "list", columns=60)
    assert (seen.status, [line.split() for line in seen.lines]) == (
        0,
        [["client_id", "name", "status", "scopes"], ["web", "Web", "active", "profile", "data:read"]],
    )
    assert "\x1b[32mactive" in seen.raw
    assert home.words("app", "list").out.splitlines()[0] == "client_id  name  status  scopes"


def test_a_missing_value_is_empty_in_fields_and_in_tables() -> None:
    rows = CommandResult({"jwks": None, "name": "Ada", "keys": [{"kid": "k1", "until": None}]}, ("kid", "until"))
    assert in_words(rows).splitlines() == ["name  Ada", "", "kid  until", "k1"]
