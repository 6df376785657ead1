"""`import` and `export`: people come from a file, and go into one."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from cli.commands.context import Context
from cli.commands.export import STANDARD_OUTPUT, target
from cli.terminal.outcome import CommandResult
from cli.terminal.progress import ProgressBar
from store.accounts.identities import check_identity
from store.accounts.import_state import ImportResult
from store.moving.import_lines import ImportLine, lines_of
from store.moving.importing import Import
from store.moving.people_export import people_lines
from store.moving.vendors.readers import lines_from
from store.moving.vendors.records import Brought, read_hash_config, read_passwords
from store.refused import Refused


async def import_people(context: Context, args: Namespace) -> CommandResult:
    """Brings people in from a file, or from standard input. The exit status is 1 if lines were refused. Raises Refused,
    OSError, StoreError, StoreUnavailable; the same command continues."""
    result = ImportResult()
    with contextlib.ExitStack() as files, ProgressBar(sys.stderr) as bar:
        brought = _brought(args)
        source = _source(args.file, files, args.vendor, brought)
        given = Import(context.store, source, update=args.update, dry=args.dry_run, kind=args.vendor)
        async for result in given.run():
            bar.tell(f"{result.created:,} created, {result.updated:,} updated, {result.refused:,} refused")
    if not args.dry_run:
        detail = f"created {result.created} updated {result.updated} refused {result.refused}"
        context.store.security.note("people_imported_by_operator", detail=detail)
    print(json.dumps({**_record(result), **({"dryRun": True} if args.dry_run else {})}), flush=True)
    for provider, links in brought.left.items():
        # For people: with --json, lines of standard error are objects.
        if not getattr(args, "json", False):
            print(f"{links:,} links to {provider} were left out: --issuer {provider}=URL names it.", file=sys.stderr)
    return CommandResult({}, status=1 if result.refused else 0)


def _record(result: ImportResult) -> dict[str, Any]:
    listed = [{"line": line, "reason": reason} for line, reason in result.listed]
    more = {"refused_more": result.refused - len(listed)} if result.refused > len(listed) else {}
    return {"created": result.created, "updated": result.updated, "refused": listed, **more}


def _brought(args: Namespace) -> Brought:
    """What comes with an export. Raises ValueError, OSError."""
    brought = Brought()
    for given in args.issuers:
        name, found, issuer = given.partition("=")
        if not (name and found):
            raise ValueError("--issuer takes NAME=URL, such as corp=https://sso.example.com.")
        brought.issuers[name] = check_identity(issuer, "1").issuer
    if args.passwords:
        with Path(args.passwords).open("rb") as file:
            brought.passwords = read_passwords(file)
    if args.hash_config:
        brought.hash_config = read_hash_config(Path(args.hash_config).read_text("utf-8", "replace"))
    return brought


def _source(
    name: str, files: contextlib.ExitStack, vendor: str, brought: Brought
) -> Callable[[], Iterator[ImportLine]]:
    """Gives the lines of the file from the first one, each time. Standard input can be read once."""
    opened: list[BinaryIO] = []

    def lines() -> Iterator[ImportLine]:
        if name == STANDARD_OUTPUT:
            if opened:
                raise Refused(
                    "invalid_request",
                    "The input begins as that of an import that was interrupted, but differs later. "
                    "Give the same input again, or a file.",
                )
            opened.append(sys.stdin.buffer)
        else:
            file = Path(name).open("rb")  # noqa: SIM115  # the stack closes it
            opened.append(files.enter_context(file))
        brought.left.clear()
        return lines_from(vendor, opened[-1], brought) if vendor else lines_of(opened[-1])

    return lines


async def export_people(context: Context, args: Namespace) -> CommandResult:
    """Writes all people as lines for `import`. Raises OSError, StoreError, StoreUnavailable; a file is written
    completely or not at all, for its owner alone."""
    if args.file == STANDARD_OUTPUT and getattr(args, "json", False):
        raise Refused("invalid_request", "--json and - both write to standard output; give a file.")
    people = 0
    quiet = args.file == STANDARD_OUTPUT and sys.stdout.isatty()
    with ProgressBar(io.StringIO() if quiet else sys.stderr) as bar, target(args.file) as file:
        async for piece, number in people_lines(context.store, secrets=args.hashes):
            file.write(piece)
            people += number
            bar.tell(f"{people:,} people")
    detail = f"{people} people {'with' if args.hashes else 'without'} secrets"
    context.store.security.note("people_exported_by_operator", detail=detail)
    return CommandResult({} if args.file == STANDARD_OUTPUT else {"people": people, "output": args.file})
