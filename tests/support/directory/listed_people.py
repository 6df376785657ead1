"""People for tests of the index: signed up, renamed and deleted by the product's scripts, without passwords."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from store import keys
from store.accounts.signin.sessions import Session
from store.crypto.seal import new_id, new_user_id
from store.directory.entries import IndexEntry, Section, entries_of, key_of
from store.directory.search import FoundPerson
from store.lifetimes import DAY
from store.results import Visitor
from store.wiring import Store

VISITOR = Visitor("192.0.2.7", "Testing/1.0")
FAR = 30 * DAY


async def sign_up(store: Store, email: str, name: str) -> str:
    """A person's user id; their address is in the primary index."""
    user = new_user_id()
    await store.client.set(keys.email(email), user)
    await store.scripts.run(
        "create_user",
        {**keys.person(user), **keys.changed(user)},
        member=keys.member(user),
        email=email,
        email_verified="1",
        name=name,
        password=b"$",
        event="signed_up",
        groups="",
        external_id="",
        reason="",
        note="",
        **VISITOR.fields(),
    )
    return user


async def session_of(store: Store, user: str) -> Session:
    """A live session of a person."""
    session, now = Session(user, new_id()), int(time.time() * 1000)
    row: dict[Any, Any] = {"created_at": now, "seen_at": now, "ends_at": now + FAR, "address": "", "agent": ""}
    row["epoch"] = await store.client.hget(keys.person(user)["user"], "epoch")
    await store.client.hset(keys.session(user, session.session_id), mapping=row)
    await store.client.pexpire(keys.session(user, session.session_id), FAR)
    await store.client.zadd(keys.person(user)["sessions"], {session.session_id: now})
    return session


async def rename(store: Store, user: str, name: str) -> None:
    """The change of a person's name."""
    await store.profiles.rename(await session_of(store, user), name, VISITOR)


async def everybody(
    store: Store, query: str, *, by: str = "any", limit: int = 50, status: str = ""
) -> list[FoundPerson]:
    """All people that a search finds, page by page."""
    found: list[FoundPerson] = []
    cursor = ""
    while True:
        page = await store.directory.search(query, by=by, limit=limit, cursor=cursor, status=status)
        found += page.people
        cursor = page.cursor
        if not cursor:
            return found


async def flaws(store: Store, people: dict[str, tuple[str, str]]) -> list[str]:
    """What is wrong with the index: it has exactly the entries of these people (address and name by user id), each in
    its bucket and once; no bucket is too full; sections are on their list; the beginning of a bucket begins one of its
    entries."""
    wrong, most = [], store.directory_relay.sections.most
    there: list[IndexEntry] = []
    buckets = {key async for key in store.client.scan_iter(match="{directory:*}:*", count=1000)}
    async for key in store.client.scan_iter(match="{directory:*}", count=1000):
        _, family, begin = key.decode().strip("{}").split(":")
        if await store.client.zscore(keys.directory_family(family), begin) is None:
            wrong.append(f"{key!r} is on no list")
        starts: Any = await store.client.zrange(key, 0, -1)
        for start, after in zip(starts, [*starts[1:], None], strict=True):
            name = key + b":" + start.hex().encode()
            rests: Any = await store.client.lrange(name, 0, -1)
            buckets.discard(name)
            places = [key_of(rest) for rest in rests]
            if len(rests) > most or any(place < start or (after and place >= after) for place in places):
                wrong.append(f"{name!r} has {len(rests)} entries, or others")
            if start and not any(place.startswith(start) for place in places):
                wrong.append(f"{name!r} begins with nobody's text")
            there += [IndexEntry(Section(family, bytes.fromhex(begin)), rest) for rest in rests]
    wrong += [f"{name!r} is in no section" for name in buckets]
    expected = {entry for user, person in people.items() for entry in entries_of(user, *person)}
    wrong += [f"{entry} is there twice" for entry, count in Counter(there).items() if count > 1]
    return wrong + [f"{entry} is missing or left" for entry in expected ^ set(there)]
