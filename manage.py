"""The operator's command line: apps, people, tokens and secret keys, with or without a running server.

`python manage.py --help` lists the commands; an installed Latchkey calls the program `latchkey`. With `--json` a
command prints one JSON object. Each line of its standard error is a JSON object too, except for questions. Exit status:
0; 1 for a command that was refused or failed and for a check that found faults; 2 for bad arguments or settings; 130
after an interrupt.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from types import FrameType

from cli.commands_parser import PROGRAM, build_parser
from cli.terminal.parser import NoCommand, UsageError
from cli.terminal.streams import reopen
from cli.terminal.tables import coloured, show, word
from settings.reading import from_namespace
from settings.types import SettingsError

__all__ = ["build_parser", "main", "start"]

PATIENCE = 10.0
"""Seconds for closing, in which another SIGTERM changes nothing."""


def start(argv: Sequence[str], program: str = PROGRAM) -> int:
    """Runs one command, or the server, as a process of its own, and returns the exit status."""
    if argv[:1] == ["serve"]:
        import server

        return server.main(argv[1:], f"{program} serve")
    signal.signal(signal.SIGTERM, _end)
    reopen()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # the streams of a command are text
    try:
        return main(argv, program=program)
    finally:
        # At its end Python drops the handlers that it has, and a signal would kill the process.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _end(signum: int, frame: FrameType | None) -> None:
    """Ends the command as Ctrl-C does, so that an embedded store started for it is stopped on the way out."""
    # `timeout` sends the signal to the command and then to its group. The second one must not interrupt the closing.
    signal.signal(signum, partial(_end_now, time.monotonic()))
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):  # asyncio's own cancels what runs; an exception would leave tasks that nobody awaits
        interrupt(signal.SIGINT, frame)
    else:  # `nohup` and background jobs of a shell ignore Ctrl-C
        raise KeyboardInterrupt


def _end_now(first: float, signum: int, frame: FrameType | None) -> None:
    """Ends a command that did not end: the driver swallows a cancellation that arrives while it connects."""
    if time.monotonic() - first > PATIENCE:
        raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ, *, program: str = PROGRAM) -> int:
    """Runs one command and returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    as_json = "--json" in argv
    try:
        args = build_parser(program).parse_args(argv)
        if not args.run:
            raise UsageError(f"`serve` comes first: {program} serve [settings]")
        settings = from_namespace(args, environ, "manage")
        # What commands work with takes a third of a second to load. Help and error messages need not wait for it.
        from cli import run as running

        try:
            outcome = running.run(args, settings)
        except (UsageError, SettingsError, BrokenPipeError):
            raise  # a missing setting or password; `| head`
        except running.FAILURES as error:
            return complain(as_json, *running.words_for(error), program=program)
        if outcome.record:  # a command that wrote to standard output has none
            if as_json:
                print(json.dumps(outcome.record), flush=True)
            else:
                show(outcome, sys.stdout)
        return outcome.status
    except NoCommand as missing:
        if as_json or not sys.stderr.isatty():
            return complain(as_json, "invalid_request", str(missing), status=2, program=program)
        missing.parser.print_help(sys.stderr)
        return 2
    except (UsageError, SettingsError) as error:
        return complain(as_json, "invalid_request", str(error), status=2, program=program)
    except OSError as error:  # from standard output
        # Otherwise the interpreter would try to write the rest of the output once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # `| head` has read enough
            return 1
        return complain(as_json, "server_error", str(error), program=program)
    except KeyboardInterrupt:
        if sys.stderr.isatty():  # which shows ^C at the end of the line
            print("\nInterrupted.", file=sys.stderr)
        return 130


def complain(as_json: bool, code: str, description: str, status: int = 1, *, program: str = PROGRAM) -> int:
    """Prints what is wrong on one line of standard error; returns the exit status."""
    line = word(" ".join(description.split())).replace(PROGRAM, program)
    if as_json:
        print(json.dumps({"error": code, "error_description": line}), file=sys.stderr)
    else:
        print(f"{coloured(f'{program}:', sys.stderr)} {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
