"""Checks of a person's row and what belongs to it: address, picture, second step, sessions, tokens."""

from __future__ import annotations

import re
from typing import Any

from store import keys
from store.accounts.people import ABOUT_TO_BEGIN
from store.errors import StoreError
from store.fsck import directory, external_ids
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, Mend, found
from store.fsck.kinds import SLACK
from store.fsck.reading import Look, Read, in_steps, in_words, number, row_of
from store.lifetimes import DAY
from store.names import check_groups
from store.parsed_keys import ParsedKey
from store.results import groups_in

AT_ONCE = 100
_STORED = re.compile(r"([0-9]+) ([0-9]+) ([0-9]+)")
_UNDO = re.compile(r"([0-9]{1,19}) [0-9]{1,19} ([01]) (.+)", re.S)


def no_reads(at: ParsedKey) -> list[Read]:
    """No reads except the row."""
    return []


def reads_of_user(at: ParsedKey) -> list[Read]:
    """Reads whether the person is listed."""
    return [("SISMEMBER", keys.shard_users(at.shard), keys.member(at.user))]


async def judge_user(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Compares a person's row with the list of the shard, the picture, the index of addresses and the grants."""
    row, listed = row_of(seen[0]), seen[1]
    context.people += not context.last
    wrong = []
    if not listed:
        member = ("SADD", keys.shard_users(at.shard), keys.member(at.user))
        mend = context.reader.mend(key, [("1", "EXISTS", key)], member)
        wrong.append(found("listed", key, "the shard's list lacks this person", mend))
    if "picture" in row:
        wrong += await _picture(context, at.user, key)
    groups = groups_in(in_words(row.get("groups")))
    if not _sound(groups):
        wrong.append(found("groups", key, "a group has no valid name, or stands twice or in the wrong place"))
    wrong += await _address(context, at.user, key, in_words(row.get("email")))
    wrong += await external_ids.missing(context, at.user, key, in_words(row.get("external_id")))
    wrong += await directory.missing(context, at.user, key, row)
    clients = [name[4:] for name in row if name.startswith("app:")]
    wrong += await _connected(context, at.user, key, clients)
    wrong += await _planned(context, at.user, key, in_words(row.get("delete_at")))
    return wrong + await _stored(context, at.user, key, in_words(row.get("stored")), clients)


async def _picture(context: FsckContext, user: str, key: str) -> list[Finding]:
    """Checks that the picture that the row names is there."""
    name = keys.person(user)["picture"]
    raw, has_picture = (await context.reader.look(key, ("HGET", key, "picture"), ("EXISTS", name))).seen
    picture = in_words(raw)
    if not picture or has_picture:
        return []
    still = [(picture, "HGET", key, "picture"), ("0", "EXISTS", name)]
    mend = context.reader.mend(key, still, ("HDEL", key, "picture"))
    return [found("picture", key, "the row names a missing picture", mend)]


async def _planned(context: FsckContext, user: str, key: str, at: str) -> list[Finding]:
    """Checks that a planned deletion is on the list, or it would never begin."""
    if not at or await context.reader.command("ZSCORE", keys.DELETIONS, user) is not None or not context.is_sure(key):
        return []
    listing = ("ZADD", keys.DELETIONS, str(int(at) // 1000), user)
    mend = context.reader.mend(keys.DELETIONS, [], listing)
    return [found("deletion-unlisted", key, "its planned deletion is on no list", mend)]


def _sound(groups: tuple[str, ...]) -> bool:
    try:
        return check_groups(groups) == groups
    except ValueError:
        return False


async def _address(context: FsckContext, user: str, key: str, email: str) -> list[Finding]:
    if not email:
        return []
    entry = keys.email(email)
    look = await context.reader.look(entry, ("GET", entry))
    names, lasts = in_words(look.seen[0]), look.left == -1
    if (names == user and lasts) or not context.is_sure(key):
        return []
    what = "the address entry has an expiry" if names == user else "the address leads to nobody"
    if names not in ("", user):
        what = "the address leads to somebody else"

    async def enter() -> None:
        if await context.addresses.reserve(email, user):
            await context.addresses.keep(email, user)

    return [found("address-begun" if await is_new(context, user, key) else "address", key, what, enter)]


async def is_new(context: FsckContext, user: str, key: str) -> bool:
    """Whether nobody has signed in to the account yet: a process may have died while it created the account."""
    person = keys.person(user)
    look = await context.reader.look(key, ("EXISTS", person["sessions"], person["activity"]), ("GET", person["audit"]))
    return not look.seen[0] and (look.seen[1] or b"").count(b"\n") <= 1


async def _connected(context: FsckContext, user: str, key: str, clients: list[str]) -> list[Finding]:
    """Finds apps in the row without a grant; the check of a grant finds one that is missing in the row."""
    wrong = []
    for some in in_steps(clients, AT_ONCE):
        if await context.reader.all_exist([keys.grant(user, client) for client in some]):
            continue
        reads: list[Read] = [("EXISTS", keys.grant(user, client)) for client in some]
        reads += [("HEXISTS", key, f"app:{client}") for client in some]
        look = await context.reader.look(key, *reads)
        for client, granted, named in zip(some, look.seen, look.seen[len(some) :], strict=False):
            if named and not granted:
                mend = context.reader.mend(
                    key,
                    [("0", "EXISTS", keys.grant(user, client))],
                    ("HDEL", key, f"app:{client}"),
                    ("SREM", keys.shard_app_users(user[:3], client), keys.member(user)),
                )
                wrong.append(found("connected-left", key, f"the app {client} no longer has a grant", mend))
    return wrong


async def _stored(context: FsckContext, user: str, key: str, recorded: str, clients: list[str]) -> list[Finding]:
    """Compares the total of all apps' documents for the person with the usage of each. Skipped if there are too many
    apps for one look, and once the total is due to be counted again."""
    usages = keys.usage_prefix(user)
    if not recorded or len(clients) > AT_ONCE:
        return []
    reads: list[Read] = [("HMGET", usages + client, "documents", "bytes") for client in clients]
    look = await context.reader.look(key, ("HGET", key, "stored"), *reads)
    match = _STORED.fullmatch(recorded)
    if in_words(look.seen[0]) != recorded:
        return []  # moved meanwhile
    if match is not None and not look.now + SLACK // 60 < int(match[3]) <= look.now + DAY:
        return []
    documents, total = (sum(int(row[place] or 0) for row in look.seen[1:]) for place in (0, 1))
    if match is not None and (int(match[1]), int(match[2])) == (documents, total):
        return []
    mend = context.reader.mend(key, [(recorded, "HGET", key, "stored")], ("HDEL", key, "stored"))
    return [found("stored", key, f"it says {recorded}, but they store {documents} documents of {total} bytes", mend)]


async def judge_deletion(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a deletion that has begun is on the list of those to finish."""
    listed = await context.reader.command("ZSCORE", keys.DELETIONS, at.user)
    if not context.is_sure(key):
        return []
    if listed is not None:
        # A deletion that began a moment ago is still in progress.
        over = look.now // 1000 - int(float(listed)) >= ABOUT_TO_BEGIN
        return [found("deletion-open", key, "the deletion of this account was interrupted")] if over else []
    mend = context.reader.mend(keys.DELETIONS, [], ("ZADD", keys.DELETIONS, str(look.now // 1000), at.user))
    return [found("deletion", key, "a deletion was started, and nobody continues it", mend)]


def reads_of_undos(at: ParsedKey) -> list[Read]:
    """Reads the person's present address."""
    return [("HGET", keys.person(at.user)["user"], "email")]


async def judge_undos(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that an address that a link can bring back is kept for its person until the link ends. The check of the
    row covers the present address."""
    wrong, present = [], in_words(seen[1])
    for link, raw in row_of(seen[0]).items():
        entry = _UNDO.fullmatch(in_words(raw))
        if entry is None:
            wrong.append(found("row", key, f"{link} is malformed"))
            continue
        ends, used, email = int(entry[1]), entry[2] == "1", entry[3]
        if used or ends <= look.now or email == present:
            continue
        if in_words(await context.reader.command("GET", keys.email(email))) == at.user:
            continue
        if context.is_sure(key):
            wrong.append(found("undo", key, "an old address is not reserved", _keep(context, email, at.user, ends)))
    return wrong


def _keep(context: FsckContext, email: str, user: str, ends: int) -> Mend:
    async def keep() -> None:
        if await context.addresses.reserve(email, user):
            await context.addresses.hold(email, user, ends)

    return keep


def reads_of_picture(at: ParsedKey) -> list[Read]:
    """Reads the picture id in the row."""
    return [("HEXISTS", keys.person(at.user)["user"], "picture")]


async def judge_picture(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that the row names the picture; otherwise nobody can see it."""
    if seen[0]:
        return []
    still = [("0", "HEXISTS", keys.person(at.user)["user"], "picture")]
    return [found("picture", key, "the row names no picture", context.reader.mend(key, still, ("UNLINK", key)))]


async def judge_factors(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that the secret of an authenticator app opens."""
    sealed = row_of(seen[0]).get("secret")
    if not context.deep or not sealed:
        return []
    try:
        context.secrets.open(at.user, sealed)
    except StoreError as error:
        return [found("content", key, str(error))]
    return []


async def judge_passkeys(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that each passkey has its three fields."""
    row = row_of(seen[0])
    ids = {name[2:] for name in row}
    broken = sorted(one for one in ids if not {f"k:{one}", f"n:{one}", f"c:{one}"} <= row.keys())
    return [found("factors", key, f"{len(broken)} passkeys are incomplete")] if broken else []


def reads_of_recovery(at: ParsedKey) -> list[Read]:
    """Reads whether there is a second step."""
    person = keys.person(at.user)
    return [("EXISTS", person["factors"]), ("EXISTS", person["passkeys"])]


async def judge_recovery(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that recovery codes belong to a second step."""
    if any(seen):
        return []
    person = keys.person(at.user)
    still = [("0", "EXISTS", person["factors"]), ("0", "EXISTS", person["passkeys"])]
    return [
        found("factors", key, "recovery codes without a second step", context.reader.mend(key, still, ("UNLINK", key)))
    ]


def reads_of_session(at: ParsedKey) -> list[Read]:
    """Reads the person's session epoch, and the session's place in the list."""
    person = keys.person(at.user)
    return [("HGET", person["user"], "epoch"), ("ZSCORE", person["sessions"], at.name)]


async def judge_session(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that a live session, one of the present epoch, is in its person's list."""
    row, epoch, listed = row_of(seen[0]), seen[1], seen[2]
    created = number(row, "created_at")
    if listed is not None or row.get("epoch") != epoch or created is None:
        return []
    person = keys.person(at.user)
    still = [("1", "EXISTS", key), (in_words(epoch), "HGET", person["user"], "epoch")]
    mend = context.reader.mend(key, still, ("ZADD", person["sessions"], str(created), at.name))
    return [found("sessions", key, "it is live but not listed", mend)]


def reads_of_access(at: ParsedKey) -> list[Read]:
    """Reads whether the family exists."""
    return [("EXISTS", keys.token(at.user, "-", at.name, 0)["family"])]


async def judge_access(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that an access token has its family; without one it is dead."""
    if seen[1]:
        return []
    family = keys.token(at.user, "-", at.name, 0)["family"]
    mend = context.reader.mend(key, [("0", "EXISTS", family)], ("UNLINK", key))
    return [found("family", key, "its family does not exist", mend)]
