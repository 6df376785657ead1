"""`manage.py user export`: all of a person's data, as a zip archive or JSON lines."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from cli.terminal.progress import ProgressBar
from store.accounts.signin.sessions import ACTIVITY_KEPT
from store.moving.person_export import WRITERS
from store.operations import person_named
from store.refused import Refused

STANDARD_OUTPUT = "-"


async def export_user(context: Context, args: Namespace) -> CommandResult:
    """Writes the profile, sign-in methods and sessions, connected apps, activity, credits, and all documents of all
    apps, also those in their grace window. Raises Refused("not_found"), ValueError, OSError; a file is written
    completely or not at all."""
    if args.output == STANDARD_OUTPUT and getattr(args, "json", False):
        raise Refused("invalid_request", "--json and --output - both write to standard output; give a file.")
    person = await context.store.operator.find(person_named(args.email), ACTIVITY_KEPT)
    write = WRITERS[args.format]
    documents = size = 0
    # Don't draw over standard output on a terminal.
    quiet = args.output == STANDARD_OUTPUT and sys.stdout.isatty()
    with ProgressBar(io.StringIO() if quiet else sys.stderr) as bar, target(args.output) as file:
        async for piece, number in write(context.store, person):
            file.write(piece)
            documents += number
            size += len(piece)
            bar.tell(f"{documents:,} documents, {size / 1e6:,.1f} MB")
    await context.store.operator.note(person.user, "exported_by_operator")
    if args.output == STANDARD_OUTPUT:
        return CommandResult({})
    return CommandResult({"email": person.email, "sub": person.user, "documents": documents, "output": args.output})


@contextlib.contextmanager
def target(output: str) -> Iterator[BinaryIO]:
    """Standard output, or a private file that gets its name once it is complete."""
    if output == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
