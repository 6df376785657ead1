"""What each name in `cli/terminal/argparse_private.py` relies on, tested against this Python's argparse."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from cli.terminal import argparse_private as private
from cli.terminal.argparse_private import ChoosingParser


class Parser(ChoosingParser):
    """Notes the words that it is asked about."""

    checked: list[Any]

    def check_choice(self, action: argparse.Action, value: Any) -> None:
        self.checked.append(value)
        if value == "wrong":
            raise argparse.ArgumentError(action, "not this one")

    def error(self, message: str) -> Any:
        raise SystemExit(message)


@pytest.fixture
def parser() -> Parser:
    made = Parser(prog="x", description="all of it")
    made.checked = []
    group = made.add_argument_group("extra", "and more")
    group.add_argument("--in-group", "-g")
    made.add_argument("--number", type=int, choices=[1, 2])
    commands = made.add_subparsers(metavar="COMMAND")
    for name, words in (("go", "goes"), ("stay", "stays")):
        commands.add_parser(name, help=words).checked = made.checked
    commands.add_parser("hidden").checked = made.checked
    return made


def test_each_choice_and_each_command_is_checked(parser: Parser) -> None:
    parser.parse_args(["--number", "7", "--in-group", "any", "go"])
    assert parser.checked == [7, "go"], "the value as its type made it, and nothing without choices"
    with pytest.raises(SystemExit, match="not this one"):
        parser.parse_args(["wrong"])


def test_a_parser_takes_words_of_a_pattern_for_values() -> None:
    made = Parser(prog="x")
    made.add_argument("amount")
    with pytest.raises(SystemExit, match="required: amount"):
        made.parse_args(["-5usd"])
    made.allow_below_zero(r"-\d+usd$")
    assert made.parse_args(["-5usd"]).amount == "-5usd"


def test_argparse_lists_all_actions_in_order(parser: Parser) -> None:
    assert [one.dest for one in private.actions_of(parser)] == ["help", "in_group", "number", "==SUPPRESS=="]


def test_argparse_knows_all_flags(parser: Parser) -> None:
    flags = private.flags_of(parser)
    assert list(flags) == ["-h", "--help", "--in-group", "-g", "--number"]
    assert flags["-g"] is flags["--in-group"] is private.actions_of(parser)[1]


def test_argparse_groups_have_their_actions(parser: Parser) -> None:
    groups = [
        (title, words, [one.dest for one in some], rest) for title, words, some, rest in private.groups_of(parser)
    ]
    assert groups == [
        ("positional arguments", None, ["==SUPPRESS=="], False),
        ("options", None, ["help", "number"], True),
        ("extra", "and more", ["in_group"], False),
    ]


def test_argparse_lists_commands_and_their_help(parser: Parser) -> None:
    assert list(private.commands_of(parser)) == ["go", "stay", "hidden"]
    assert private.commands_of(parser)["go"].prog == "x go"
    [action] = filter(private.is_commands, private.actions_of(parser))
    assert {name: one.help for name, one in private.listed_commands(action).items()} == {"go": "goes", "stay": "stays"}
    assert private.commands_of(private.commands_of(parser)["go"]) == {}


@pytest.mark.parametrize(("columns", "width"), [(200, 60), (42, 40)])
def test_help_fits_the_requested_width(columns: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    formatter = argparse.HelpFormatter("x")
    assert private.narrow(formatter, 60, 30) == width
    formatter.start_section("flags")
    formatter.add_argument(argparse.Action(["--a-flag-of-some-length"], "dest", help="word " * 40))
    lines = formatter.format_help().splitlines()
    assert max(map(len, lines)) <= width
    assert next(line.index("word") for line in lines if "word" in line) == min(30, width // 2, len(lines[1]) + 2)
