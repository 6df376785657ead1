"""Every private name of argparse that this program uses, each behind a name of ours.

A docstring says after "Relies on" what must hold inside argparse. tests/cli/test_argparse_private.py checks each of
these claims, so a release of Python that changes one fails there and nowhere else.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any


class ChoosingParser(argparse.ArgumentParser):
    """A parser that says itself what is wrong with a word that is no choice."""

    def check_choice(self, action: argparse.Action, value: Any) -> None:
        """Raises argparse.ArgumentError unless the value is one of the action's choices."""
        raise NotImplementedError

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Relies on: each value of an argument, and each command, comes here; ArgumentError becomes `error`."""
        if action.choices is not None:
            self.check_choice(action, value)

    def allow_below_zero(self, pattern: str) -> None:
        """Takes a word of this pattern, which begins with "-", for a value. Relies on: the parser asks
        `_negative_number_matcher` whether a word is a number below zero, and takes such a word for no flag."""
        self._negative_number_matcher = re.compile(pattern)


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """All arguments and flags. Relies on: `_actions` has them, those of groups too, in their order."""
    return parser._actions


def flags_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The action of each flag, by its spellings. Relies on: `_option_string_actions` is that."""
    return parser._option_string_actions


def groups_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str | None, str | None, list[argparse.Action], bool]]:
    """Title, description and actions of each group; whether it is the one of flags that are in no other. Relies on:
    `_action_groups` has all groups, `_optionals` is that one, and `_group_actions` are those of a group."""
    for group in parser._action_groups:
        yield group.title, group.description, group._group_actions, group is parser._optionals


def is_commands(action: argparse.Action) -> bool:
    """Whether it chooses between commands. Relies on: `add_subparsers` makes a `_SubParsersAction`."""
    return isinstance(action, argparse._SubParsersAction)


def commands_of(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """The parser of each command. Relies on: the `choices` of a `_SubParsersAction` are that."""
    return next((dict(one.choices) for one in parser._actions if isinstance(one, argparse._SubParsersAction)), {})


def listed_commands(action: argparse.Action) -> dict[str, argparse.Action]:
    """What help lists for each command. Relies on: `_choices_actions` has one for each that was given a help."""
    assert isinstance(action, argparse._SubParsersAction)
    return {one.dest: one for one in action._choices_actions}


def narrow(formatter: argparse.HelpFormatter, widest: int, most_indent: int) -> int:
    """Bounds the columns of help, and those in front of explanations. Returns the columns of a line. Relies on: a
    formatter reads `_width` and `_max_help_position` when it writes."""
    formatter._width = min(formatter._width, widest)
    formatter._max_help_position = min(most_indent, formatter._width // 2)
    return formatter._width
