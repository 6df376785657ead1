"""Checks that lists name only what exists: lists of a person, of a shard, of all apps, of open deletions."""

from __future__ import annotations

from typing import Any

from store import keys
from store.accounts.people import ABOUT_TO_BEGIN
from store.apps.api_apps import apis_of
from store.apps.api_record import ApiRegistration, deleted_before, first_id
from store.apps.owners.member_lists import entries_of
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Expected, Look, Read, in_steps, in_words
from store.lifetimes import APP_BEGUN
from store.parsed_keys import ParsedKey

AT_ONCE = 200
MEMBER = 29  # characters of a user id without its shard


def reads_of_zset(at: ParsedKey) -> list[Read]:
    """No reads: the judge reads a list piece by piece."""
    return []


async def members_of(context: FsckContext, key: str) -> list[tuple[bytes, int]]:
    """The members of a sorted set with their scores, read piece by piece."""
    members: dict[bytes, int] = {}
    start = 0
    while True:
        look = await context.reader.look(key, ("ZRANGE", key, str(start), str(start + AT_ONCE - 1), "WITHSCORES"))
        flat = look.seen[0] or []
        members |= {one: int(float(score)) for one, score in zip(flat[::2], flat[1::2], strict=True)}
        if len(flat) < 2 * AT_ONCE:
            return list(members.items())
        start += AT_ONCE


async def _of_set(context: FsckContext, key: str) -> list[bytes]:
    members: dict[bytes, None] = {}
    cursor = "0"
    while True:
        look = await context.reader.look(key, ("SSCAN", key, cursor, "COUNT", str(AT_ONCE)))
        if not look.seen[0]:
            return list(members)
        after, some = look.seen[0]
        members |= dict.fromkeys(some)
        cursor = in_words(after)
        if cursor == "0":
            return list(members)


async def judge_sessions(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Finds listed sessions that have ended; the next listing drops them."""
    wrong = []
    for some in in_steps(await members_of(context, key), AT_ONCE):
        ids = [in_words(one) for one, _ in some]
        names = [keys.session(at.user, one) for one in ids]
        if await context.reader.all_exist(names):
            continue
        reads = [("EXISTS", name) for name in names] + [("ZSCORE", key, one) for one in ids]
        there = (await context.reader.look(key, *reads)).seen
        for one, name, exists, listed in zip(ids, names, there, there[len(ids) :], strict=False):
            if listed is not None and not exists:
                mend = context.reader.mend(key, [("0", "EXISTS", name)], ("ZREM", key, one))
                wrong.append(found("sessions-left", key, f"the session {one} has ended", mend))
    return wrong


async def judge_users(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that listed people exist, or are being deleted."""
    wrong = []
    for some in in_steps(await _of_set(context, key), AT_ONCE):
        members = [in_words(one) for one in some if len(one) == MEMBER]
        if len(members) < len(some):
            wrong.append(found("listed", key, f"{len(some) - len(members)} members are no user ids"))
        if await context.reader.all_exist([keys.prefix(at.shard + one) + "user" for one in members]):
            continue
        people = [keys.person(at.shard + one) for one in members]
        reads: list[Read] = [("EXISTS", person[noun]) for person in people for noun in ("user", "leaving")]
        there = (await context.reader.look(key, *reads, *(("SISMEMBER", key, one) for one in members))).seen
        for place, (one, person) in enumerate(zip(members, people, strict=True)):
            if there[2 * len(members) + place] and not any(there[2 * place : 2 * place + 2]):
                gone = [("0", "EXISTS", person["user"]), ("0", "EXISTS", person["leaving"])]
                mend = context.reader.mend(key, gone, ("SREM", key, one))
                wrong.append(found("listed", key, f"{at.shard}{one} is listed, but there is no such person", mend))
    return wrong


async def judge_app_users(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that people listed for an app have it in their row, or a grant, whose check does the rest."""
    wrong = []
    for some in in_steps(await _of_set(context, key), AT_ONCE):
        members = [in_words(one) for one in some]
        users = [at.shard + one for one in members]
        if await context.reader.all_exist([keys.grant(user, at.client) for user in users]):
            continue
        reads: list[Read] = []
        for user, one in zip(users, members, strict=True):
            reads += [
                ("HEXISTS", keys.person(user)["user"], f"app:{at.client}"),
                ("EXISTS", keys.person(user)["leaving"]),
                ("EXISTS", keys.grant(user, at.client)),
                ("SISMEMBER", key, one),
            ]
        there = (await context.reader.look(key, *reads)).seen
        for place, (user, one) in enumerate(zip(users, members, strict=True)):
            *why, listed = there[4 * place : 4 * place + 4]
            if listed and not any(why):
                still: list[Expected] = [("0", "HEXISTS", keys.person(user)["user"], f"app:{at.client}")]
                still += [("0", "EXISTS", keys.grant(user, at.client)), ("0", "EXISTS", keys.person(user)["leaving"])]
                mend = context.reader.mend(key, still, ("SREM", key, one))
                wrong.append(found("connected", key, f"{user} is listed, but has not connected the app", mend))
    if look.left >= 0 and (await context.registration(at.client))[0] and context.is_sure(key):
        mend = context.reader.mend(key, [("set", "TYPE", key)], ("PERSIST", key))
        wrong.append(found("connected-lasts", key, "it has an expiry, but the app is registered", mend))
    return wrong


async def judge_deletion(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that the list of deletions names accounts that are half deleted or about to be."""
    wrong = []
    for one, since in await members_of(context, key):
        user = in_words(one)
        if len(user) != MEMBER + 3 or look.now // 1000 - since < ABOUT_TO_BEGIN:
            continue
        person = keys.person(user)
        reads: list[Read] = [("HEXISTS", person["user"], "status"), ("EXISTS", person["leaving"])]
        reads += [("SISMEMBER", person["users"], keys.member(user)), ("HEXISTS", person["user"], "delete_at")]
        lives, half, listed, planned = (await context.reader.look(person["user"], *reads)).seen
        if planned or (not lives and (half or listed)):
            continue  # the check of the person finds that
        mend = context.reader.mend(key, [(str(since), "ZSCORE", key, user)], ("ZREM", key, user))
        wrong.append(found("deletion-left", key, f"{user} is not being deleted", mend))
    return wrong


async def judge_owned(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that the apps in a person's list are theirs, or have them in the team. An entry is there before the
    registration says so."""
    wrong = []
    for one, since in await members_of(context, key):
        client = in_words(one)
        app, left_by, there = await context.registration(client)
        theirs = (at.user, at.kind) in entries_of(app) if app else (left_by, "apps") == (at.user, at.kind)
        if theirs or (there and app is None and left_by is None) or since + APP_BEGUN > look.now:
            continue
        if context.is_sure(key):
            mend = context.reader.mend(key, [("1", "EXISTS", key)], ("ZREM", key, client))
            wrong.append(found("owned-left", key, f"the app {client} is not theirs", mend))
    return wrong


async def judge_apps(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that the apps in the list of all are registered."""
    wrong = []
    for one, since in await members_of(context, key):
        client = in_words(one)
        if since * 1000 + APP_BEGUN > look.now or (await context.registration(client))[2]:
            continue
        if context.is_sure(key):
            mend = context.reader.mend(key, [("1", "EXISTS", key)], ("ZREM", key, client))
            wrong.append(found("registration-left", key, f"there is no app {client}", mend))
    return wrong


async def judge_themselves(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that apps in the lists of those that registered themselves are there. One that has ended by itself is
    dropped with the next registration."""
    wrong = []
    for one, score in await members_of(context, key):
        client, ended = in_words(one), at.kind == "unused-apps" and score <= look.now
        if ended or (await context.registration(client))[2] or not context.is_sure(key):
            continue
        mend = context.reader.mend(key, [("1", "EXISTS", key)], ("ZREM", key, client))
        wrong.append(found("registration-left", key, f"there is no app {client}", mend))
    return wrong


async def judge_apps_at_api(
    context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]
) -> list[Finding]:
    """Checks that the apps in an API's list registered scopes of it; an entry is there before the registration."""
    wrong = []
    for one, since in await members_of(context, key):
        client = in_words(one)
        app, left_by, there = await context.registration(client)
        unread = there and app is None and left_by is None
        if unread or at.client in apis_of(app) or since * 1000 + APP_BEGUN > look.now:
            continue
        if context.is_sure(key):
            mend = context.reader.mend(key, [("1", "EXISTS", key)], ("ZREM", key, client))
            wrong.append(found("at-api-left", key, f"the app {client} has no scope of it", mend))
    return wrong


async def judge_apis(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that the APIs in the list of all are registered."""
    wrong = []
    for one, since in await members_of(context, key):
        client = in_words(one)
        packed: Any = await context.reader.command("GET", keys.api(first_id(client)))
        if not _is_of(packed, client) and since * 1000 + APP_BEGUN <= look.now and context.is_sure(key):
            mend = context.reader.mend(key, [("1", "EXISTS", key)], ("ZREM", key, client))
            wrong.append(found("registration-left", key, f"there is no API {client}", mend))
    return wrong


def _is_of(packed: Any, client: str) -> bool:
    """Whether a row is the registration of this API. Of an unreadable or misplaced row, its own check tells."""
    try:
        if not packed or deleted_before(packed) is not None:
            return False
        found_id = ApiRegistration.unpack(packed).client_id
    except Exception:  # any error that msgpack or the registration's rules raise for other bytes
        return True
    return found_id == client or first_id(found_id) != first_id(client)
