"""The command line of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cli.terminal.parser import Parser
from settings.declared import Settings
from settings.reading import add_arguments, from_namespace


def load(argv: Sequence[str], environ: Mapping[str, str], program: str | None = None) -> Settings:
    """Returns the settings of the server from its arguments (without the program's name) and the environment.

    Raises SettingsError for an invalid value, SystemExit for `--help` and for an unknown argument.
    """
    parser = Parser(
        prog=program,
        description="Run the server. Each option can also be set by the environment variable in brackets, or in the "
        "--config file.",
        examples=("--demo", "--config latchkey.toml --workers 4", "--port 0 --data-dir /var/lib/latchkey"),
    )
    add_arguments(parser, "server")
    return from_namespace(parser.parse_args(argv), environ, "server")
