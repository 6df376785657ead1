"""`completion`: what a shell needs to complete commands and flags."""

from __future__ import annotations

from argparse import Namespace

from cli.commands_parser import build_parser
from cli.terminal.argparse_private import actions_of
from cli.terminal.outcome import CommandResult
from settings.declared import Settings
from settings.reading import add_arguments

INSTALLED = "latchkey"
"""The command that is completed. For `python manage.py`, shells complete the file name."""


def completion(settings: Settings, args: Namespace) -> CommandResult:
    """Prints a completion script for the shell, generated from the commands."""
    import shtab

    parser = build_parser(INSTALLED)
    add_arguments(parser.commands["serve"], "server")
    for leaf in (parser, *parser.leaves()):
        for action in actions_of(leaf):
            if isinstance(action.metavar, str) and action.metavar in ("FILE", "DIR"):
                complete = shtab.FILE if action.metavar == "FILE" else shtab.DIRECTORY
                action.complete = complete  # type: ignore[attr-defined]  # read by shtab
    script = shtab.complete(parser, args.shell)
    print(script)
    return CommandResult({})
