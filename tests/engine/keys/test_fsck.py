"""A check of the whole store finds nothing in a sound store, and every kind of damage."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from store import keys, parsed_keys
from store.fsck.invariants import ERROR, INVARIANTS, NAMED
from store.fsck.kinds import KINDS
from store.lifetimes import MINUTE
from store.wiring import Store
from tests.support.breaking.cases import Break, Proof
from tests.support.breaking.data import (
    DATA,
    credits_agree,
    etag_beyond,
    index_beside,
    lists_all,
    no_hold,
    of_another_size,
    reply_uncounted,
    revoked_for_ever,
    without_metadata,
)
from tests.support.breaking.directory import DIRECTORY
from tests.support.breaking.people import (
    PEOPLE,
    family_gone,
    not_in_the_list,
    not_in_the_row,
    session_unlisted,
    shows_the_app,
)
from tests.support.store import checked_store
from tests.support.store.checked_store import DOCUMENTS, Furnished, broken, checked, findings, unmended
from tests.support.store.world import every_key

pytestmark = pytest.mark.gen_test(timeout=60)

CASES = [*PEOPLE, *DIRECTORY, *DATA]

SHORT_LIFE = 15 * MINUTE
"""Milliseconds: a kind of key with a shorter life can end while a test runs."""

few_shards, one_store = checked_store.few_shards, checked_store.one_store


async def held(client: Redis) -> dict[bytes, object]:
    """All keys with what they hold; a hash as its fields, whose order in a dump changes while its table grows."""
    names = await every_key(client)
    async with client.pipeline(transaction=False) as batch:
        for key in names:
            batch.type(key)
        kinds = await batch.execute()
        for key, kind in zip(names, kinds, strict=True):
            batch.hgetall(key) if kind == b"hash" else batch.dump(key)
        found = await batch.execute()
    return {key: value for key, value in zip(names, found, strict=True) if value}  # others have ended meanwhile


def ends_soon(key: bytes) -> bool:
    """Whether a key may end by itself during a slow test."""
    at = parsed_keys.read(key.decode())
    kind = KINDS[at.kind] if at else None
    return bool(kind and kind.lasts is not None and kind.lasts <= SHORT_LIFE and (kind.lasts or kind.outlives))


async def test_a_store_with_data_of_every_kind_is_sound(store: Store) -> None:
    await Furnished.make(store)
    there = [parsed_keys.read(key.decode()) for key in await every_key(store.client)]
    assert None not in there
    seldom = {"leaving", "relaying", "directory-rebuild", "directory-swept"}
    seldom |= {"trail-swept", "trail-writer", "audit-exporter"}
    assert {at.kind for at in there if at} == KINDS.keys() - seldom
    report = await checked(store, deep=True)
    assert findings(report) == []
    assert report.clean
    assert (report.seen, report.people, report.busy) == (len(there), 4, 0)
    assert (report.apps, report.documents) == (7, len(DOCUMENTS) + 1)


@pytest.mark.slow
@pytest.mark.parametrize(("does", "found", "left", "proof", "options"), CASES)
async def test_each_kind_of_damage_is_found_named_and_repaired(
    one_store: Store, does: Break, found: set[str], left: set[str], proof: Proof, options: dict[str, bool]
) -> None:
    f = await Furnished.make(one_store)
    await does(f)
    before = await held(f.client)
    report = await checked(f.store, **options)
    assert broken(report) == found, findings(report)
    assert report.clean == (not any(NAMED[name].severity == ERROR for name in found))
    after = await held(f.client)
    kept = {key: value for key, value in before.items() if key in after or not ends_soon(key)}
    assert after == kept, "a check changes nothing"
    mended = await checked(f.store, repair=True, **options)
    assert broken(mended) >= found
    assert unmended(mended) == left, findings(mended)
    again = await checked(f.store, **options)
    assert broken(again) == left, findings(again)
    await proof(f)


def test_every_invariant_has_a_case_that_breaks_it() -> None:
    cases = [case.values for case in CASES]
    assert {name for values in cases for name in values[1]} == NAMED.keys()
    derived = {name for _, found, left, _, _ in cases for name in found - left}
    assert {one.name for one in INVARIANTS if one.mends} == derived, "what says that it is mended is"


async def test_one_walk_finds_and_repairs_everything_on_every_engine(store: Store) -> None:
    f = await Furnished.make(store)
    far = await Furnished.make(store)
    for does in (session_unlisted, not_in_the_row, without_metadata, etag_beyond, no_hold, reply_uncounted):
        await does(f)
    for does in (revoked_for_ever, index_beside, of_another_size, not_in_the_list, family_gone):
        await does(far)
    await store.client.delete(keys.email(far.world.email))
    await store.client.set(keys.email("old@example.com"), far.world.user)
    await store.client.zrem(keys.APPS, far.own_app)
    await store.client.hincrby(far.grant, "spent", 1000)
    names = {"sessions", "connected", "documents", "usage", "idempotency", "replies", "grace", "family", "address"}
    names |= {"address-left", "registration", "spending"}
    assert broken(await checked(store)) - {"etags"} == names
    mended = await checked(store, repair=True)
    assert unmended(mended) == set()
    report = await checked(store, deep=True)
    assert findings(report) == []
    for one in (f, far):
        await lists_all(one)
        await credits_agree(one)
        await shows_the_app(one)
