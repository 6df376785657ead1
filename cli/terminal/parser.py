"""The command line for people: help in sections with examples, and suggestions for mistyped words.

Colours come from rich: at a terminal, unless NO_COLOR is set. Only help imports rich.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from rich_argparse import RichHelpFormatter

from cli.terminal.argparse_private import (
    ChoosingParser,
    actions_of,
    commands_of,
    flags_of,
    groups_of,
    is_commands,
    listed_commands,
    narrow,
)

WIDEST = 100
"""The widest help, in columns: longer lines are hard to read."""

SETTINGS = "settings"
"""The title of the section with the most used settings."""


class UsageError(Exception):
    """The command line is invalid."""


class NoCommand(UsageError):
    """The command line has no command. `parser` knows the possible ones."""

    def __init__(self, message: str, parser: Parser) -> None:
        super().__init__(message)
        self.parser = parser


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]


class HelpFormatter(RichHelpFormatter):
    """Rich's formatter, which keeps texts unchanged and limits the width."""

    group_name_formatter = staticmethod(_capital)  # type: ignore[assignment]  # str.title misleads its type
    # Settings have the name of their environment variable in brackets.
    help_markup = False
    text_markup = False

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **options)
        self.width = narrow(self, WIDEST, 30)
        """The columns of a line."""

    def add_lines(self, lines: Iterable[str]) -> None:
        """Adds lines unchanged."""
        from rich.text import Text

        self.add_renderable(Text("\n".join(lines), "argparse.syntax", no_wrap=True, overflow="ignore"))


class Parser(ChoosingParser):
    """`examples` are command lines without the program's name, which is `typed`. Of the settings, whose groups
    are titled `aside`, help shows the actions with a dest of `brief` alone, until it is asked for all."""

    def __init__(
        self,
        *,
        examples: Sequence[str] = (),
        aside: Iterable[str] = (),
        brief: Iterable[str] = (),
        typed: str = "",
        **options: Any,
    ) -> None:
        self.examples = tuple(examples)
        self._aside, self._brief = frozenset(aside), frozenset(brief)
        self._words: tuple[str, ...] = ()
        self.sections: dict[str, list[str]] = {}
        """The sections of commands in help: the names by title."""
        super().__init__(**{"allow_abbrev": False, "formatter_class": HelpFormatter, **options})
        typed = typed or self.prog
        self._typed = f"python {typed}" if typed.partition(" ")[0].endswith(".py") else typed

    def add_help_settings(self) -> None:
        """Adds `--help-settings`, if settings are left out of help."""
        self.add_argument(
            "--help-settings", action=_HelpSettings, nargs=0, default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )

    @property
    def commands(self) -> dict[str, Parser]:
        """The parsers of the words that come next."""
        return commands_of(self)

    def leaves(self) -> Iterator[Parser]:
        """The parsers of complete commands."""
        for parser in self.commands.values():
            yield from parser.leaves() if parser.commands else (parser,)

    # Suggestions.

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse's. Reports an unknown flag before a missing argument. Raises UsageError."""
        if args is not None and not self.commands:
            for word in _flags(args):
                if word not in flags_of(self):
                    self.error(f"there is no flag {word}{self._near_flag(word)}")
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse's. Raises UsageError."""
        found, left = self.parse_known_args(args, namespace)
        if left:
            what = f"there is no flag {left[0]}" if left[0].startswith("-") else f"too many words: {' '.join(left)}"
            self.error(what + self._near_flag(left[0]))
        return found

    def _near_flag(self, word: str) -> str:
        if not word.startswith("--"):
            return ""
        name = word.partition("=")[0]
        shown = [flag for flag, action in flags_of(self).items() if action.help != argparse.SUPPRESS]
        return meant(name, shown)

    def check_choice(self, action: argparse.Action, value: Any) -> None:
        """Says what was meant. Raises argparse.ArgumentError."""
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        # A verb without its noun: `create` for `app create`.
        whole = [f"{noun} {value}" for noun, one in self.commands.items() if value in one.commands]
        hint = f": did you mean {' or '.join(whole)}?" if whole else meant(str(value), known)
        hint = hint or f": choose from {', '.join(known)}"
        raise argparse.ArgumentError(None if self.commands else action, f"invalid choice: {value!r}{hint}")

    def error(self, message: str) -> NoReturn:
        """Ends the program with a one-line error and status 2."""
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help explains)\n")

    # Help.

    def print_usage(self, file: object = None) -> None:
        """Prints nothing: an error needs no list of everything that would be valid."""

    def format_help(self) -> str:
        """Usage, description, the command's own flags, the most used settings, and examples."""
        return self._help(everything=False)

    def format_settings(self) -> str:
        """Like `format_help`, with all settings."""
        return self._help(everything=True)

    def _help(self, everything: bool) -> str:
        formatter = HelpFormatter(self.prog)
        formatter.add_usage(self._usage(formatter.width), [], [])
        formatter.add_text(self.description)
        self._add_commands(formatter)
        for title, description, actions in self._grouped():
            if title not in self._aside or everything:
                _add_section(formatter, title, description, actions)
        if self._aside and not everything:
            named = [
                f"{flags[0]} {one.metavar}"
                for one in actions_of(self)
                if (flags := one.option_strings) and one.dest in self._brief
            ]
            formatter.start_section(SETTINGS)
            formatter.add_text(
                f"{', '.join(named)} and more, which the environment and a file can say as well; `--help-settings` "
                "explains them."
            )
            formatter.end_section()
        if self.examples:
            formatter.start_section("examples")
            words = [[*self._typed.split(), *shlex.split(example)] for example in self.examples]
            formatter.add_lines(line for one in words for line in folded(one, formatter.width - 2))
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help().rstrip("\n") + "\n"

    def _grouped(self) -> Iterator[tuple[str, str | None, list[argparse.Action]]]:
        """What help shows: titles, words about them, flags. What must be given comes first."""
        shown = [one for one in actions_of(self) if one.help != argparse.SUPPRESS and not self.useless(one)]
        needed = [
            *(one for one in shown if not one.option_strings and not is_commands(one)),
            *(one for one in shown if one.option_strings and one.required),
        ]
        yield "required", None, needed
        for title, description, actions, is_rest in groups_of(self):
            free = [one for one in actions if one in shown and one not in needed and one.option_strings]
            if is_rest and self._aside:
                # The flags of every command come after the command's own.
                everywhere = [one for one in free if one.dest in ("help", "json")]
                free = [one for one in free if one not in everywhere and one.dest not in self._brief] + everywhere
            yield title or "", description, free

    def useless(self, action: argparse.Action) -> bool:
        """Whether help leaves a flag out, because the command refuses it. A subclass knows such flags."""
        return False

    def _usage(self, width: int) -> str:
        """The required arguments. All others are `[options]`."""
        words = [self.prog]
        if self.commands:
            words += ["COMMAND", "[ACTION]"] if self.sections else ["ACTION"]
        else:
            for action in actions_of(self):
                if action.required and action.option_strings:
                    words.append(f"{action.option_strings[0]} {action.metavar or action.dest.upper()}")
            words += [str(action.metavar or action.dest) for action in actions_of(self) if not action.option_strings]
        words.append("[options]")
        # Leave room for "Usage: ". A flag and its value stay together.
        lines = _wrapped(words, max(width - 7, 20))
        return "\n         ".join(lines).replace("%", "%%")

    def _add_commands(self, formatter: HelpFormatter) -> None:
        for action in filter(is_commands, actions_of(self)):
            shown = listed_commands(action)
            for title, names in (self.sections or {"actions": list(shown)}).items():
                formatter.start_section(title)
                formatter.add_arguments(shown[name] for name in names)
                formatter.end_section()


def _add_section(
    formatter: HelpFormatter, title: str, description: str | None, actions: Sequence[argparse.Action]
) -> None:
    if actions:
        formatter.start_section(title)
        formatter.add_text(description)
        formatter.add_arguments(actions)
        formatter.end_section()


class _HelpSettings(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        assert isinstance(parser, Parser)
        with contextlib.suppress(OSError):  # as argparse prints its help
            sys.stdout.write(parser.format_settings())
        parser.exit()


def meant(word: str, known: Iterable[str]) -> str:
    """A question with the closest known word, or nothing."""
    # Above a third of other letters it would be a guess: --secret-key is not --server.
    near = difflib.get_close_matches(word, list(known), 1, cutoff=0.65)
    return f": did you mean {near[0]}?" if near else ""


def folded(words: Sequence[str], width: int) -> list[str]:
    """A command line for a shell, broken between arguments if it is wider than `width`."""
    quoted = [_quoted(word) for word in words]
    pieces: list[str] = []
    for word in quoted:
        # Keep a value with its flag.
        if pieces and pieces[-1].startswith("--") and " " not in pieces[-1] and not word.startswith("-"):
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    return " \\\n    ".join(_wrapped(pieces, width - 6)).splitlines()


def _quoted(word: str) -> str:
    """The word quoted for a shell, with the quotes that people type."""
    return f'"{word}"' if re.fullmatch(r"[\w.,:;@/ -]+", word) and " " in word else shlex.quote(word)


def _wrapped(words: Sequence[str], width: int) -> list[str]:
    """Lines of whole words."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    return lines


def _flags(args: Sequence[str]) -> Iterator[str]:
    """The words that argparse takes for long flags, without attached values."""
    for word in args:
        if word == "--":
            return
        if word.startswith("--") and " " not in word:
            yield word.partition("=")[0]
