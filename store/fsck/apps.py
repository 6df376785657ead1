"""Checks of keys outside the shards: registrations and their figures, the index of addresses, the key ring's notes."""

from __future__ import annotations

import re
from typing import Any

from store import keys
from store.apps.api_apps import apis_of
from store.apps.api_record import ApiRegistration, deleted_before, first_id
from store.apps.logos import logo_id
from store.apps.owners.member_lists import entries_of
from store.apps.registration import Registration
from store.apps.tombstones import LASTS, Remains, Tombstone
from store.apps.webhooks import WebhookSecrets
from store.crypto.pairwise import SALT, is_plain, salt_secrets
from store.errors import StoreError
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.kinds import SLACK
from store.fsck.reading import Look, Read, in_words, row_of
from store.lifetimes import EMAIL_RESERVATION, LONGEST_SEALED, UNDO_LINK, UNUSED_APP
from store.parsed_keys import ParsedKey

DRIFT = 10
"""The tolerated error of an app's count of people: this many, or a tenth of them."""


async def judge_email(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that an entry ends in a minute, matches its person's row, or can come back by a link."""
    user = in_words(seen[0])
    if 0 <= look.left <= EMAIL_RESERVATION + SLACK:
        return []
    if look.left >= 0:
        if look.left <= UNDO_LINK + SLACK and await _comes_back(context, user, at.name):
            return []
        if not context.is_sure(key):
            return []  # the link may have been used or have ended between the two reads
        return [found("reservation", key, "it expires too late", context.reader.shorten(key, look, EMAIL_RESERVATION))]
    if not re.fullmatch(r"[0-9a-f]{32}", user):
        return []
    # Most rows have the address, which one command shows.
    own = keys.prefix(user) + "user"
    if in_words(await context.reader.command("HGET", own, "email")) == at.name:
        return []
    theirs = await context.reader.look(own, ("HGET", own, "email"), ("EXISTS", keys.person(user)["leaving"]))
    # The last step of a deletion releases the address.
    if in_words(theirs.seen[0]) == at.name or theirs.seen[1] or not context.is_sure(key):
        return []

    if await _comes_back(context, user, at.name):
        return []

    async def free() -> None:
        await context.addresses.free_stale(at.name)

    return [found("address-left", key, f"the row of {user} has another address or does not exist", free)]


async def _comes_back(context: FsckContext, user: str, email: str) -> bool:
    """Whether a link of this person can bring the address back."""
    if not re.fullmatch(r"[0-9a-f]{32}", user):
        return False
    undos = keys.person(user)["undos"]
    look = await context.reader.look(undos, ("HGETALL", undos))
    return any(in_words(entry).endswith(f" {email}") for entry in row_of(look.seen[0]).values())


def reads_of_registration(at: ParsedKey) -> list[Read]:
    """No reads: the judge reads the registration itself."""
    return []


async def judge_registration(
    context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]
) -> list[Finding]:
    """Checks that a registration is readable, in the list of all, and in its owner's list."""
    context.apps += not context.last
    app, left_by, there = await context.registration(at.client)
    if not there:
        return []
    if left_by is not None:
        return await judge_tombstone(context, at, key)
    if app is None or app.client_id != at.client:
        return [found("registration", key, "it is unreadable" if app is None else "it belongs to another app")]
    if app.origin:
        return await _by_itself(context, app, key, look)
    wrong = await lasts(context, key) if look.left >= 0 else []
    listed = await context.reader.command("ZSCORE", keys.APPS, at.client)
    if listed is None and context.is_sure(key):
        mend = context.reader.mend(keys.APPS, [], ("ZADD", keys.APPS, "NX", str(app.created_at // 1000), at.client))
        wrong.append(found("registration", key, "the list of all lacks it", mend))
    for user, noun in sorted(entries_of(app)):
        wrong += await _owned(context, at.client, user, noun, app.created_at, key)
    wrong += await _at_apis(context, app, key)
    wrong += await _logo(context, app, key)
    if context.deep:
        wrong += signing_secrets(context, app, key)
    return wrong


async def _by_itself(context: FsckContext, app: Registration, key: str, look: Look) -> list[Finding]:
    """Checks that an app that registered itself ends unless somebody has allowed it, and is on the list of its kind."""
    list_key, score = (keys.USED_APPS, look.now) if look.left < 0 else (keys.UNUSED_APPS, look.now + look.left)
    if look.left > UNUSED_APP + SLACK:
        return [found("lifetime", key, "it expires too late", context.reader.shorten(key, look, UNUSED_APP))]
    listed = await context.reader.command("ZSCORE", list_key, app.client_id)
    if listed is not None or not context.is_sure(key):
        return []
    mend = context.reader.mend(list_key, [], ("ZADD", list_key, "NX", str(score), app.client_id))
    return [found("registration", key, "the list of apps that registered themselves lacks it", mend)]


async def judge_api(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that the registration of an API is readable and in the list of all."""
    packed: Any = await context.reader.command("GET", key)
    if not packed:
        return []
    try:
        if deleted_before(packed):
            return []
        api = ApiRegistration.unpack(packed)
    except Exception:  # any error that msgpack or the registration's rules raise for other bytes
        return [found("registration", key, "it is unreadable")]
    if first_id(api.client_id) != at.client:
        return [found("registration", key, "it belongs to another API")]
    listed = await context.reader.command("ZSCORE", keys.APIS, api.client_id)
    if listed is not None or not context.is_sure(key):
        return []
    mend = context.reader.mend(keys.APIS, [], ("ZADD", keys.APIS, "NX", str(api.created_at // 1000), api.client_id))
    return [found("registration", key, "the list of all lacks it", mend)]


async def lasts(context: FsckContext, key: str) -> list[Finding]:
    """Checks that a registration has no expiry."""
    look = await context.reader.look(key, ("GET", key))
    if look.left < 0 or Tombstone.unpack(look.seen[0]):
        return []  # it was deleted meanwhile
    mend = context.reader.mend(key, [(str(look.expires), "PEXPIRETIME", key)], ("PERSIST", key))
    return [found("lasting", key, "it has an expiry and must be permanent", mend)]


async def judge_tombstone(context: FsckContext, at: ParsedKey, key: str) -> list[Finding]:
    """Checks that a tombstone ends after the documents, or that the deletion is in progress."""
    look = await context.reader.look(key, ("GET", key))
    stone = Tombstone.unpack(look.seen[0] or b"")
    if stone is None:
        return []  # it has ended meanwhile
    if not stone.until:
        what = f"the deletion of this app is in progress or was interrupted: app delete {at.client} finishes it"
        return [found("deletion-open", key, what)] if context.is_sure(key) else []
    wrong = signing_secrets(context, stone.app, key) if context.deep and stone.app else []
    if not 0 <= look.left <= LASTS + SLACK:
        mend = context.reader.mend(key, [("string", "TYPE", key)], ("PEXPIREAT", key, str(stone.until)))
        wrong.append(found("lifetime", key, "the tombstone does not expire in time", mend))
    return wrong + await _owned(context, at.client, stone.owner, "apps", stone.deleted_at, key)


async def _owned(context: FsckContext, client: str, user: str, noun: str, since: int, key: str) -> list[Finding]:
    """Checks that the app is in this list of a person, so that it counts and they find it."""
    if not re.fullmatch(r"[0-9a-f]{32}", user):
        return []
    owner = keys.person(user)
    theirs = await context.reader.look(owner["user"], ("EXISTS", owner["user"]), ("ZSCORE", owner[noun], client))
    if not theirs.seen[0] and noun == "teams" and context.is_sure(key):
        return [found("team", key, f"there is no such person: {user}")]
    if not theirs.seen[0] or theirs.seen[1] is not None or not context.is_sure(key):
        return []
    write = ("ZADD", owner[noun], "NX", str(since), client)
    mend = context.reader.mend(owner["user"], [("1", "EXISTS", owner["user"])], write)
    return [found("owned", key, f"the list of {user} lacks it", mend)]


async def _logo(context: FsckContext, app: Registration, key: str) -> list[Finding]:
    """Checks that the app's logo is there."""
    if not app.logo or await context.reader.command("EXISTS", keys.app_stats(app.client_id)["logo"]):
        return []
    return [found("logo", key, "its logo is missing: upload it again")] if context.is_sure(key) else []


async def _at_apis(context: FsckContext, app: Registration, key: str) -> list[Finding]:
    """Checks that the app is in the list of each API whose scopes it registered."""
    wrong = []
    for api in sorted(apis_of(app)):
        name = keys.api_apps(api)
        if await context.reader.command("ZSCORE", name, app.client_id) is None and context.is_sure(key):
            mend = context.reader.mend(name, [], ("ZADD", name, "NX", str(app.created_at // 1000), app.client_id))
            wrong.append(found("at-api", key, f"the list of {api} lacks it", mend))
    return wrong


def signing_secrets(context: FsckContext, app: Registration | Remains, key: str) -> list[Finding]:
    """Checks that the app's signing secrets open."""
    secrets = WebhookSecrets(context.ring)
    for sealed in app.webhook_secrets:
        try:
            secrets.open(app.client_id, sealed)
        except StoreError as error:
            return [found("content", key, str(error))]
    return []


def reads_of_app_stats(at: ParsedKey) -> list[Read]:
    """Reads whether the app exists."""
    return [("EXISTS", keys.app(at.client))]


async def judge_app_stats(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that figures belong to a registered app."""
    if seen[1]:
        return []
    mend = context.reader.mend(key, [("0", "EXISTS", keys.app(at.client))], ("UNLINK", key))
    return [found("numbers", key, "the app is not registered", mend)]


def reads_of_logo(at: ParsedKey) -> list[Read]:
    """Reads the logo."""
    return [("GET", keys.app_stats(at.client)["logo"])]


async def judge_logo(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a registration names the logo. While an app is being deleted, its logo remains."""
    app, left_by, there = await context.registration(at.client)
    if left_by is not None or (there and (app is None or app.logo == logo_id(seen[0] or b""))):
        return []
    if not context.is_sure(key):
        return []
    mend = context.reader.mend(key, [("0", "EXISTS", keys.app(at.client))], ("UNLINK", key))
    return [found("logo", key, "no app names this logo", None if there else mend)]


async def drifted(context: FsckContext, client: str) -> list[Finding]:
    """Compares the count of an app's people with the grants that the walk has seen. The count may be wrong, because a
    killed process loses its additions."""
    key, counted = keys.app_stats(client)["people"], context.connected[client]
    raw = in_words(await context.reader.command("GET", key))
    recorded = int(raw) if re.fullmatch(r"-?[0-9]+", raw) else 0
    if abs(recorded - counted) <= max(DRIFT, counted // 10):
        return []
    mend = context.reader.mend(key, [(raw, "GET", key)], ("SET", key, str(counted)))
    return [found("numbers-drift", key, f"it says {recorded} people, but {counted} have connected the app", mend)]


async def judge_keyring(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Compares the store's notes about its secret keys with the configured keys."""
    raw = row_of(seen[0])
    salt = raw.pop(SALT, None)
    row = {name: in_words(value) for name, value in raw.items()}
    wrong = [] if salt is None else _unsound_salt(context, key, salt)
    wrong += [
        found("keyring", key, f"the note {name} is malformed")
        for name, value in row.items()
        if not (
            (re.fullmatch(r"check:[0-9]+", name) and re.fullmatch(r"[0-9a-f]{32}", value))
            or (
                re.fullmatch(r"(sealed|known)_at:[0-9]+|documents_(front|since)|layout", name)
                and re.fullmatch(r"-?[0-9]+", value)
            )
        )
    ]
    known = {int(name[6:]): value for name, value in row.items() if re.fullmatch(r"check:[0-9]+", name)}
    for key_id, value in known.items():
        configured = context.ring.find(key_id)
        if configured is None and _is_needed(row, key_id, look.now):
            what = f"key {key_id} is not configured: nothing sealed with it can be opened"
            wrong.append(found("keyring-missing", key, what))
        elif configured is None:
            what = f"key {key_id} is not configured; nothing that it sealed is alive"
            wrong.append(found("keyring-unknown", key, what))
        elif configured.check_value != value:
            wrong.append(found("keyring", key, f"key {key_id} differs from the one that wrote the store"))
    return wrong


def _is_needed(row: dict[str, str], key_id: int, now: int) -> bool:
    """Whether something sealed with a key can still live, as `needed_key` of the scripts has it."""

    def note(name: str) -> int | None:
        text = row.get(name, "")
        return int(text) if re.fullmatch(r"-?[0-9]+", text) else None

    sealed, front, since = note(f"sealed_at:{key_id}"), note("documents_front"), note("documents_since")
    if sealed is None or sealed + LONGEST_SEALED > now:
        return sealed is not None
    return front is None or front == key_id or since is None or since <= sealed


def _unsound_salt(context: FsckContext, key: str, salt: bytes) -> list[Finding]:
    if is_plain(salt):
        return []
    try:
        salt_secrets(context.ring).open(SALT, salt)
    except StoreError:
        return [found("keyring-salt", key, "the salt of pairwise ids does not open")]
    return []
