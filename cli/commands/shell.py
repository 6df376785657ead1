"""What `completion` prints: what a shell needs to complete commands and flags."""

from __future__ import annotations

from argparse import Namespace

from cli.commands_parser import build_parser
from cli.terminal.outcome import CommandResult
from settings.declared import Settings
from settings.reading import add_arguments

INSTALLED = "latchkey"
"""The command that is completed: of `python manage.py`, shells complete the file."""


def completion(settings: Settings, args: Namespace) -> CommandResult:
    """Prints a script for the shell, made of the commands there are."""
    import shtab

    parser = build_parser(INSTALLED)
    add_arguments(parser.commands["serve"], "server")
    for leaf in (parser, *parser.leaves()):
        for action in leaf._actions:
            if isinstance(action.metavar, str) and action.metavar in ("FILE", "DIR"):
                complete = shtab.FILE if action.metavar == "FILE" else shtab.DIRECTORY
                action.complete = complete  # type: ignore[attr-defined]  # how shtab is told
    script = shtab.complete(parser, args.shell)
    print(script)
    return CommandResult({})
