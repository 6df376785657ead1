"""`manage.py user export`: everything the store holds of one person, as a zip archive or JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

from commands import Context, Outcome
from commands_credits import balance_record, entry_record, holds_record, opening_record, pages
from store.archive import Packed, ZipWriter, described, document_path, json_line, timestamp
from store.documents import Metadata
from store.grants import Grant
from store.opened import Store
from store.operations import Person, person_named
from store.refused import Refused
from store.security import security_record
from store.sessions import ACTIVITY_KEPT

STANDARD_OUTPUT = "-"


async def export_user(context: Context, args: Namespace) -> Outcome:
    """Writes the profile, how and where the person is signed in, the connected apps, the activity, the credits and
    every document of every app, those in their grace window too. Raises Refused("not_found"), ValueError, OSError; a
    file is there whole or not at all."""
    if args.output == STANDARD_OUTPUT and getattr(args, "json", False):
        raise Refused("invalid_request", "--json and --output - both write to standard output; give a file.")
    person = await context.store.operator.find(person_named(args.email), ACTIVITY_KEPT)
    write = _as_zip if args.format == "zip" else _as_lines
    documents = 0
    with _target(args.output) as file:
        async for piece, number in write(context.store, person):
            file.write(piece)
            documents += number
    await context.store.operator.note(person.user, "exported_by_operator")
    if args.output == STANDARD_OUTPUT:
        return Outcome({})
    return Outcome({"email": person.email, "sub": person.user, "documents": documents, "output": args.output})


async def _as_zip(store: Store, person: Person) -> AsyncIterator[tuple[bytes, int]]:
    """Pieces of the archive, each with the number of documents in it."""
    apps, activity = [_app(grant) for grant in person.grants], list(_activity(person))
    profile = await _profile(store, person)
    security = security_record(await store.operator.security(person.user))
    with closing(ZipWriter()) as archive:
        for path, value in (
            *(("profile", profile), ("security", security)),
            *(("apps", apps), ("activity", activity)),
        ):
            text = json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
            yield archive.add(f"{path}.json", text, person.created_at), 0
        ledger = Packed()
        async for line in _credits(store, person):
            ledger.add(json_line(line))
        yield archive.add("credits.jsonl", ledger, person.created_at), 0
        async for client, found, content in _documents(store, person):
            yield archive.add(f"documents/{client}/{document_path(found)}", content, found.updated_at), 1
        for piece in archive.end():
            yield piece, 0


async def _as_lines(store: Store, person: Person) -> AsyncIterator[tuple[bytes, int]]:
    """Lines, each an object that says its `type`: profile, security, app, activity, balance, entry, opening or
    document."""
    yield json_line({"type": "profile", **await _profile(store, person)}), 0
    yield json_line({"type": "security", **security_record(await store.operator.security(person.user))}), 0
    for grant in person.grants:
        yield json_line({"type": "app", **_app(grant)}), 0
    for entry in _activity(person):
        yield json_line({"type": "activity", **entry}), 0
    async for line in _credits(store, person):
        yield json_line(line), 0
    async for client, found, content in _documents(store, person):
        yield json_line({"type": "document", "client_id": client, **described(found)}, content), 1


async def _documents(store: Store, person: Person) -> AsyncIterator[tuple[str, Metadata, bytes]]:
    # Those of a disconnected app too, as long as they are kept.
    for client in (grant.client for grant in person.grants):
        async for page in store.holdings.copy(person.user, client):
            for found, content in page:
                yield client, found, content


async def _credits(store: Store, person: Person) -> AsyncIterator[dict[str, Any]]:
    """The balance, the entries of the ledger from the newest to the oldest, and last, dated, the sum of those that were
    folded before: it is read with the last page, so that all of them add up to the balance."""
    last = None
    async for page in pages(store, person.user):
        if last is None:
            yield {"type": "balance", **balance_record(page), "holds": holds_record(page)}
        last = page
        for entry in page.entries:
            yield {"type": "entry", **entry_record(entry)}
    assert last is not None
    yield {"type": "opening", **opening_record(last)}


async def _profile(store: Store, person: Person) -> dict[str, Any]:
    registered = [(await store.apps.fresh(client))[0] for client in person.registered]
    return {
        "sub": person.user,
        "email": person.email,
        "email_verified": person.email_verified,
        "name": person.name,
        "picture": person.picture,
        "status": person.status,
        "createdAt": timestamp(person.created_at),
        "registeredApps": [app.record() for app in registered if app and app.owner == person.user],
    }


def _app(grant: Grant) -> dict[str, Any]:
    times = {
        "connectedAt": grant.connected_at,
        "lastUsedAt": grant.last_used_at,
        "revokedAt": grant.revoked_at,
        "dataUntil": grant.data_until,
    }
    return {
        "client_id": grant.client,
        "scopes": list(grant.scopes),
        **{name: timestamp(moment) if moment else None for name, moment in times.items()},
        "spendLimit": grant.spend_limit,  # micro-dollars a month
    }


def _activity(person: Person) -> Iterator[dict[str, Any]]:
    for entry in person.activity:
        yield {
            "at": timestamp(entry.at),
            "event": entry.event,
            "client_id": entry.client,
            "address": entry.address,
            "agent": entry.agent,
        }


@contextlib.contextmanager
def _target(output: str) -> Iterator[BinaryIO]:
    """Standard output, or a file for the operator's eyes only that takes its name when it is whole."""
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
