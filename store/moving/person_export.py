"""Exports everything the store holds about one person, piece by piece, in constant memory."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from store.accounts.signin.signin_methods import security_record
from store.apps.owners.roles import Member
from store.apps.registration import Registration
from store.credits.records import balance_record, entry_record, holds_record, opening_record, pages, usage_record
from store.documents.archive import Packed, ZipWriter, document_path, json_line
from store.documents.documents import Metadata, document_record
from store.moments import at, timestamp
from store.oauth.exchange.handed_on import HandedOn
from store.oauth.grants import Grant
from store.operations import Person

if TYPE_CHECKING:
    from store.wiring import Store


async def as_zip(store: Store, person: Person, documents: bool = True) -> AsyncGenerator[tuple[bytes, int], None]:
    """Yields pieces of the archive, each with the number of documents in it; `documents`: their content too."""
    apps, activity = [await _app(store, person.user, grant) for grant in person.grants], list(_activity(person))
    profile = await _profile(store, person)
    security = security_record(await store.operator.security(person.user))
    with closing(ZipWriter()) as archive:
        for path, value in (
            *(("profile", profile), ("security", security)),
            *(("apps", apps), ("activity", activity)),
        ):
            text = json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
            yield archive.add(f"{path}.json", text, person.created_at), 0
        image = await store.profiles.image(person.user, person.picture)
        if image:
            yield archive.add("picture.webp", image, person.created_at), 0
        ledger = Packed()
        async for line in _credits(store, person):
            ledger.add(json_line(line))
        yield archive.add("credits.jsonl", ledger, person.created_at), 0
        used = b"".join([json_line(record) async for record in _usage(store, person)])
        yield archive.add("usage.jsonl", used, person.created_at), 0
        async for client, found, content in _documents(store, person, documents):
            yield archive.add(f"documents/{client}/{document_path(found)}", content, found.updated_at), 1
        for piece in archive.end():
            yield piece, 0


async def as_lines(store: Store, person: Person, documents: bool = True) -> AsyncGenerator[tuple[bytes, int], None]:
    """Yields lines, each an object with a `type`: profile, security, app, picture, activity, balance, entry, opening,
    usage or document, which is left out without `documents`."""
    yield json_line({"type": "profile", **await _profile(store, person)}), 0
    yield json_line({"type": "security", **security_record(await store.operator.security(person.user))}), 0
    image = await store.profiles.image(person.user, person.picture)
    if image:
        encoded = base64.b64encode(image).decode()
        yield json_line({"type": "picture", "mediaType": "image/webp", "base64": encoded}), 0
    for grant in person.grants:
        yield json_line({"type": "app", **await _app(store, person.user, grant)}), 0
    for entry in _activity(person):
        yield json_line({"type": "activity", **entry}), 0
    async for line in _credits(store, person):
        yield json_line(line), 0
    async for line in _usage(store, person):
        yield json_line(line), 0
    async for client, found, content in _documents(store, person, documents):
        yield json_line({"type": "document", "client_id": client, **document_record(found)}, content), 1


async def _documents(store: Store, person: Person, wanted: bool) -> AsyncIterator[tuple[str, Metadata, bytes]]:
    # Documents of a disconnected app are included while they are kept.
    for client in (grant.client for grant in person.grants if wanted):
        async for page in store.person_documents.copy(person.user, client):
            for found, content in page:
                yield client, found, content


async def _credits(store: Store, person: Person) -> AsyncIterator[dict[str, Any]]:
    """Yields the balance, the entries of the ledger, newest first, and last the dated sum of the folded entries. That
    sum is read with the last page, so that everything adds up to the balance."""
    last = None
    async for page in pages(store.credits, person.user):
        if last is None:
            yield {"type": "balance", **balance_record(page), "holds": holds_record(page)}
        last = page
        for entry in page.entries:
            yield {"type": "entry", **entry_record(entry)}
    assert last is not None
    yield {"type": "opening", **opening_record(last)}


async def _usage(store: Store, person: Person) -> AsyncIterator[dict[str, Any]]:
    for row in (await store.usage.all_of(person.user)).rows:
        yield {"type": "usage", **usage_record(row)}


async def _profile(store: Store, person: Person) -> dict[str, Any]:
    registered = [(await store.apps.fresh(client))[0] for client in person.registered]
    teams = [(await store.apps.fresh(client))[0] for client in person.joined]
    return {
        "sub": person.user,
        "email": person.email,
        "email_verified": person.email_verified,
        "name": person.name,
        "picture": bool(person.picture),
        "status": person.status,
        "suspension": _suspension(person),
        "groups": list(person.groups),
        "externalId": person.external_id or None,
        "keptOutApps": list(person.kept_out),
        "createdAt": timestamp(person.created_at),
        "registeredApps": [app.record() for app in registered if app and app.owner == person.user],
        "teams": [_membership(app, one) for app in teams if app for one in app.members if one.user == person.user],
        "registeredApis": [api.record() for api in await store.owned_apis.of(person.user)],
    }


def _suspension(person: Person) -> dict[str, Any] | None:
    """Why and until when the person is suspended. The operator's note isn't the person's."""
    if person.suspension is None:
        return None
    until = person.suspension.until
    return {"reason": person.suspension.reason, "until": timestamp(until) if until else None}


def _membership(app: Registration, member: Member) -> dict[str, Any]:
    return {"client_id": app.client_id, "name": app.name, "role": member.role, "since": timestamp(at(member.since))}


async def _app(store: Store, user: str, grant: Grant) -> dict[str, Any]:
    app, handed_on = await store.apps.find(grant.client), await store.token_exchange.listed(user, grant.client)
    times = {
        "connectedAt": grant.connected_at,
        "lastUsedAt": grant.last_used_at,
        "revokedAt": grant.revoked_at,
        "dataUntil": grant.data_until,
        "pausedAt": grant.paused_at,
    }
    return {
        "client_id": grant.client,
        # The client id on the wire, where that is the URL of a metadata document.
        **({"documentUrl": app.document_url} if app and app.document_url else {}),
        "scopes": list(grant.scopes),
        **({"connectedBy": grant.issuer} if grant.issuer else {}),
        **({"leftOut": list(grant.left_out)} if grant.left_out else {}),
        **{name: timestamp(moment) if moment else None for name, moment in times.items()},
        "spendLimit": grant.spend_limit,  # micro-dollars a month
        "authorizationDetails": [{**budget.detail(), "used": budget.used} for budget in grant.budgets],
        "handedOn": [_handed_on(one) for one in handed_on],
    }


def _handed_on(one: HandedOn) -> dict[str, Any]:
    """A delegated token. Amounts are micro-dollars."""
    return {
        **{"id": one.id, "from": one.above or None, "name": one.name or None, "actor": one.actor},
        **{"scopes": list(one.scopes), "spent": one.spent, "limit": one.limit, "endsAt": timestamp(one.ends_at)},
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


WRITERS: dict[str, Callable[..., AsyncGenerator[tuple[bytes, int], None]]] = {
    "zip": as_zip,
    "jsonl": as_lines,
}
