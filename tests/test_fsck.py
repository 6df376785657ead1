"""A check of the whole store: nothing is found where nothing is wrong, and what is broken on purpose is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from store import keys
from store.fsck import walk
from store.fsck.invariants import ERROR, INVARIANTS, NAMED
from store.fsck.kinds import KINDS
from store.fsck.reading import Reader
from store.opened import Store
from tests.checking import DOCUMENTS, Furnished, broken, checked, findings, told, unmended
from tests.conftest import OpenStore, emptied
from tests.spending import recount
from tests.world import World, every_key

pytestmark = pytest.mark.gen_test(timeout=60)

GHOST = "0f" * 16
OLD = 1_500_000_000
Break = Callable[[Furnished], Awaitable[object]]
Proof = Callable[[Furnished], Awaitable[object]]


@pytest.fixture(autouse=True)
def few_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever walks all shards, as the deletion of an app does, is soon done."""
    monkeypatch.setattr(keys, "SHARDS", keys.SHARDS[:16])


@pytest.fixture
def one_store(request: pytest.FixtureRequest, open_store: OpenStore) -> Store:
    """A store on Valkey, which is quicker than one in memory."""
    return open_store(emptied(request, "valkey"))


async def nothing(f: Furnished) -> None:
    """There is nothing more to see."""


async def counts_agree(f: Furnished) -> None:
    usage = await f.keeper.recount()
    assert await f.keeper.usage() == usage
    assert usage.documents == len(DOCUMENTS)


async def lists_all(f: Furnished) -> None:
    await counts_agree(f)
    assert await f.keeper.walk("notes") == ["n1", "n2", "n3"]
    assert (await f.keeper.get("notes/n2"))[1] == b'{"of": "some bytes"}'


async def signs_in(f: Furnished) -> None:
    assert await f.store.people.verify(f.world.email, "correct horse battery") is not None


async def shows_the_app(f: Furnished) -> None:
    listed = await f.store.grants.list(f.world.session)
    assert f.world.app.client_id in {grant.client for grant in listed[1]}


async def credits_agree(f: Furnished) -> None:
    await recount(f.store, f.world.user)


async def deletion_ends(f: Furnished) -> None:
    await f.store.people.finish_deletions()
    assert [key for key in await every_key(f.client) if f.other.user.encode() in key and b":limit:" not in key] != []
    assert await f.store.operator.show(f.other.user) is None
    assert broken(await checked(f.store)) == set()


NEW = "begun@example.com"


async def half_made(f: Furnished) -> None:
    await f.world.person(NEW)
    await f.client.delete(keys.email(NEW))


async def half_made_just_now(f: Furnished) -> None:
    await f.world.person(NEW)
    await f.client.pexpire(keys.email(NEW), 60_000)


async def can_sign_in_at_last(f: Furnished) -> None:
    assert await f.store.people.verify(NEW, "correct horse battery") is not None


async def app_deletion_ends(f: Furnished) -> None:
    await f.store.apps.delete(f.own_app)
    assert broken(await checked(f.store)) == set()


async def half_deleted(f: Furnished) -> None:
    person = keys.person(f.other.user)
    await f.client.hdel(person["user"], "status")
    await f.client.rename(person["user"], person["leaving"])


async def half_deleted_and_noted(f: Furnished) -> None:
    await half_deleted(f)
    await f.client.zadd(keys.LEAVING, {f.other.user: OLD})


async def of_another_type(f: Furnished) -> None:
    await f.client.delete(f.person["audit"])
    await f.client.rpush(f.person["audit"], "1")


async def reserved_for_long(f: Furnished) -> None:
    await f.client.pexpire(keys.email(f.world.email), 3_600_000)


async def of_nobody(f: Furnished, noun: str) -> None:
    if noun == "audit":
        await f.client.set(keys.person(GHOST)[noun], "1")
    else:
        await f.client.zadd(keys.person(GHOST)[noun], {"x": 1})


async def without_a_second_step(f: Furnished) -> None:
    await f.client.delete(f.person["factors"], f.person["passkeys"])


async def half_a_passkey(f: Furnished) -> None:
    names = await f.client.hkeys(f.person["passkeys"])
    await f.client.hdel(f.person["passkeys"], next(name for name in names if name.startswith(b"n:")))


async def session_unlisted(f: Furnished) -> None:
    await f.client.zrem(f.person["sessions"], f.world.session.session_id)


async def is_listed(f: Furnished) -> None:
    assert f.world.session.session_id in {one.session_id for one in await f.store.sessions.live(f.world.session)}


async def family_gone(f: Furnished) -> None:
    spelt = [keys.read(key.decode()) for key in await every_key(f.client)]
    own = [at for at in spelt if at and at.kind == "access" and at.user == f.world.user]
    at = next(at for at in own if at.name != f.keeper.caller.family)
    await f.client.delete(keys.token(at.user, "-", at.name, 0)["family"])


async def not_in_the_row(f: Furnished) -> None:
    await f.client.hdel(f.person["user"], f"app:{f.world.app.client_id}")


async def not_in_the_list(f: Furnished) -> None:
    listed = keys.shard_app_users(f.world.user[:3], f.world.app.client_id)
    await f.client.srem(listed, keys.member(f.world.user))


async def grant_gone(f: Furnished) -> None:
    await f.client.delete(f.grant)


async def app_gone(f: Furnished) -> None:
    await f.client.delete(keys.app(f.other.app.client_id))


async def revoked_for_ever(f: Furnished) -> None:
    await f.client.persist(keys.grant(f.other.user, f.other.app.client_id))


async def data_that_stays(f: Furnished) -> None:
    await f.client.persist(keys.hosted(f.other.user, f.other.app.client_id)["docs"])


def due_of(f: Furnished) -> tuple[str, str]:
    """The due list of the person who has disconnected the app, and their entry."""
    return keys.telling(f.other.user[:3])["due"], f"{keys.member(f.other.user)}:{f.other.app.client_id}"


async def not_due(f: Furnished) -> None:
    await f.client.zrem(*due_of(f))


async def due_later(f: Furnished) -> None:
    due, entry = due_of(f)
    await f.client.zincrby(due, 10**7, entry)


async def live_and_due(f: Furnished) -> None:
    entry = f"{keys.member(f.world.user)}:{f.world.app.client_id}"
    await f.client.zadd(f.due, {entry: OLD * 10**6})


async def nothing_due(f: Furnished) -> None:
    await f.client.zadd(f.due, {f"{keys.member(GHOST)}:ghost": OLD * 10**6})


async def told_at_the_end(f: Furnished) -> None:
    await f.store.outbox.sweep(told)
    due, entry = due_of(f)
    ends = await f.client.pexpiretime(keys.hosted(f.other.user, f.other.app.client_id)["docs"])
    assert abs(await f.client.zscore(due, entry) - ends) < 2_000


async def waiting(f: Furnished) -> str:
    (one,) = await f.store.deliveries.list(f.other.app.client_id)
    return one.id


async def is_tried(f: Furnished) -> None:
    assert await waiting(f) in {one.id for one in await f.store.deliveries.claim(10, 30)}


async def ends_with_the_grant(f: Furnished) -> None:
    known = [keys.grant(f.other.user, f.other.app.client_id)]
    known += keys.hosted(f.other.user, f.other.app.client_id).values()
    left = [await f.client.pttl(key) for key in known]
    assert min(left) > 0
    assert max(left) - min(left) < 2_000


async def index_beside(f: Furnished) -> None:
    await f.client.zadd(f.hosted["index"], {"notes/never": 0, "notes/n2": 1})


async def without_metadata(f: Furnished) -> None:
    await f.client.hdel(f.hosted["meta"], "notes/n2")


async def of_another_size(f: Furnished) -> None:
    etag, _, created, updated = (await f.client.hget(f.hosted["meta"], "notes/n2")).decode().split()
    await f.client.hset(f.hosted["meta"], "notes/n2", f"{etag} 7 {created} {updated}")


async def damaged(f: Furnished) -> None:
    sealed = bytearray(await f.client.hget(f.hosted["docs"], "notes/n2"))
    sealed[-1] ^= 1
    await f.client.hset(f.hosted["docs"], "notes/n2", bytes(sealed))


async def no_hold(f: Furnished) -> None:
    await f.client.delete(f.person["holds"])


async def reply_gone(f: Furnished) -> None:
    await f.client.delete(await f.first("reply"))


async def reply_uncounted(f: Furnished) -> None:
    await f.client.delete(f.person["replies"])


async def entry_of_no_form(f: Furnished) -> None:
    await f.client.xadd(f.person["ledger"], {"kind": "gift", "amount": "1", "paid": "x"})


async def etag_beyond(f: Furnished) -> None:
    await f.client.hset(f.hosted["usage"], "sequence", "3")


async def writes_on(f: Furnished) -> None:
    before = (await f.keeper.get("notes/n3"))[0].etag
    assert int((await f.keeper.put("notes/n3"))[0].etag) > int(before)


async def ghost_row(f: Furnished) -> None:
    await f.client.hset(f.person["user"], "app:ghost", "1")


def case(does: Break, found: str, left: str = "", proof: Proof = nothing, **options: bool) -> Any:
    """What is done by hand, what is found then, what is left of it behind a repair, and what proves that it is well."""
    name = f"{does.__name__} {found}".replace("_", " ").replace("<lambda>", "").strip()
    return pytest.param(does, set(found.split()), set(left.split()), proof, options, id=name)


CASES = [
    case(lambda f: f.client.set("nonsense", "1"), "key", "key"),
    case(lambda f: f.client.set(keys.limit(f.world.user, "nonsense"), "1 1 1"), "key", "key"),
    case(lambda f: f.client.set(b"\xff\xfe", "1"), "key", "key"),
    case(of_another_type, "type", "type"),
    case(lambda f: _then(f.first("family"), f.client.persist), "lifetime"),
    case(lambda f: _then(f.first("invite"), lambda key: f.client.pexpire(key, 10**10)), "lifetime"),
    case(reserved_for_long, "lifetime address", proof=signs_in),
    case(lambda f: f.client.pexpire(f.person["audit"], 10**6), "lasting"),
    case(lambda f: f.client.hdel(f.person["user"], "password"), "row", "row"),
    case(lambda f: f.client.hset(f.grant, "nonsense", "1"), "row", "row"),
    case(lambda f: of_nobody(f, "audit"), "owner", "owner"),
    case(lambda f: of_nobody(f, "sessions"), "owner"),
    case(lambda f: f.client.srem(f.person["users"], keys.member(f.world.user)), "listed"),
    case(lambda f: f.client.sadd(keys.shard_users(GHOST[:3]), keys.member(GHOST)), "listed"),
    case(lambda f: f.client.delete(keys.email(f.world.email)), "address", proof=signs_in),
    case(half_made, "address-begun", proof=can_sign_in_at_last),
    case(half_made_just_now, "address-begun", proof=can_sign_in_at_last),
    case(lambda f: f.client.set(keys.email("old@example.com"), f.world.user), "address-left"),
    case(half_deleted, "deletion", proof=deletion_ends),
    case(half_deleted_and_noted, "deletion-open", "deletion-open", deletion_ends),
    case(lambda f: f.store.apps.begin_deletion(f.own_app), "deletion-open", "deletion-open", app_deletion_ends),
    case(lambda f: f.client.zadd(keys.LEAVING, {f.world.user: OLD}), "deletion-left"),
    case(session_unlisted, "sessions", proof=is_listed),
    case(lambda f: f.client.zadd(f.person["sessions"], {"A" * 22: 1}), "sessions-left"),
    case(lambda f: f.client.hdel(f.person["user"], "picture"), "picture"),
    case(lambda f: f.client.delete(f.person["picture"]), "picture"),
    case(without_a_second_step, "factors"),
    case(half_a_passkey, "factors", "factors"),
    case(family_gone, "family"),
    case(not_in_the_row, "connected", proof=shows_the_app),
    case(not_in_the_list, "connected"),
    case(lambda f: f.client.sadd(keys.shard_app_users(GHOST[:3], "ghost"), keys.member(GHOST)), "connected"),
    case(ghost_row, "connected-left"),
    case(grant_gone, "connected-left granted", "granted"),
    case(app_gone, "app numbers", "app"),
    case(revoked_for_ever, "grace", proof=ends_with_the_grant),
    case(data_that_stays, "grace", proof=ends_with_the_grant),
    case(lambda f: f.client.pexpire(f.hosted["docs"], 10**7), "grace", proof=lists_all),
    case(not_due, "due", proof=told_at_the_end),
    case(due_later, "due", proof=told_at_the_end),
    case(live_and_due, "due"),
    case(nothing_due, "due"),
    case(lambda f: f.client.zadd(f.due, {"nonsense": 1}), "due"),
    case(lambda f: _then(waiting(f), lambda one: f.client.zrem(keys.DELIVERIES_DUE, one)), "delivery", proof=is_tried),
    case(lambda f: _then(waiting(f), lambda one: f.client.zrem(f.listed, one)), "delivery"),
    case(lambda f: f.client.zadd(keys.DELIVERIES_DUE, {"A" * 22: OLD}), "delivery-left"),
    case(lambda f: f.client.zadd(f.listed, {"A" * 22: OLD}), "delivery-left"),
    case(lambda f: f.client.zrem(f.hosted["index"], "notes/n2"), "documents", proof=lists_all),
    case(index_beside, "documents", proof=lists_all),
    case(without_metadata, "documents usage", proof=lists_all),
    case(of_another_size, "documents usage", proof=lists_all),
    case(lambda f: f.client.hdel(f.hosted["docs"], "notes/n2"), "documents", "documents"),
    case(lambda f: f.client.hincrby(f.hosted["usage"], "bytes", 5), "usage", proof=counts_agree),
    case(lambda f: f.client.delete(f.hosted["usage"]), "usage etags", proof=lists_all),
    case(lambda f: f.client.hset(f.hosted["usage"], "n:ghosts", "0"), "usage", proof=counts_agree),
    case(etag_beyond, "etags", proof=writes_on),
    case(damaged, "content", "content", deep=True),
    case(lambda f: f.client.hset(f.person["factors"], "secret", b"\1" + bytes(40)), "content", "content", deep=True),
    case(lambda f: f.client.hincrby(f.person["balance"], "paid", 7), "balance", "balance"),
    case(entry_of_no_form, "balance", "balance"),
    case(lambda f: f.client.delete(f.person["balance"]), "balance holds replies", "balance holds replies"),
    case(lambda f: f.client.hset(f.person["holds"], "A" * 22, "a lot"), "holds", proof=credits_agree),
    case(lambda f: f.client.persist(f.person["holds"]), "holds", proof=credits_agree),
    case(lambda f: f.client.hincrby(f.grant, "spent", 1000), "spending"),
    case(no_hold, "idempotency", proof=credits_agree),
    case(lambda f: f.client.hincrby(f.person["balance"], "reply_bytes", 5), "replies", proof=credits_agree),
    case(reply_gone, "replies", proof=credits_agree),
    case(reply_uncounted, "replies", proof=credits_agree),
    case(lambda f: f.client.set(keys.app(f.own_app), b"\x93nonsense"), "registration", "registration"),
    case(lambda f: f.client.zrem(keys.APPS, f.own_app), "registration"),
    case(lambda f: f.client.zadd(keys.APPS, {"ghost": OLD}), "registration-left"),
    case(lambda f: f.client.zrem(f.person["apps"], f.own_app), "owned"),
    case(lambda f: f.client.zadd(f.person["apps"], {"ghost": OLD * 1000}), "owned-left"),
    case(lambda f: f.client.set(keys.numbers("ghost")["people"], "3"), "numbers"),
    case(lambda f: f.client.set(keys.numbers(f.world.app.client_id)["people"], "300"), "numbers-drift"),
    case(lambda f: f.client.hset(keys.KEYRING, "check:1", "0" * 32), "keyring", "keyring"),
    case(lambda f: f.client.hset(keys.KEYRING, "check:9", "0" * 32), "keyring-unknown", "keyring-unknown"),
]


async def _then(key: Awaitable[str], does: Callable[[str], Awaitable[object]]) -> None:
    await does(await key)


async def test_a_store_with_something_of_everything_in_it_is_sound(store: Store) -> None:
    await Furnished.make(store)
    there = [keys.read(key.decode()) for key in await every_key(store.client)]
    assert None not in there
    seldom = {"leaving", "all-leaving"}
    assert {at.kind for at in there if at} == KINDS.keys() - seldom
    report = await checked(store, deep=True)
    assert findings(report) == []
    assert report.clean
    assert (report.seen, report.people, report.busy) == (len(there), 2, 0)
    assert (report.apps, report.documents) == (4, len(DOCUMENTS) + 1)


@pytest.mark.parametrize(("does", "found", "left", "proof", "options"), CASES)
async def test_what_is_broken_on_purpose_is_found_named_and_put_right(
    one_store: Store, does: Break, found: set[str], left: set[str], proof: Proof, options: dict[str, bool]
) -> None:
    f = await Furnished.make(one_store)
    await does(f)
    before = {key: await f.client.dump(key) for key in await every_key(f.client)}
    report = await checked(f.store, **options)
    assert broken(report) == found, findings(report)
    assert report.clean == (not any(NAMED[name].severity == ERROR for name in found))
    assert {key: await f.client.dump(key) for key in await every_key(f.client)} == before, "a check changes nothing"
    mended = await checked(f.store, repair=True, **options)
    assert broken(mended) >= found
    assert unmended(mended) == left, findings(mended)
    again = await checked(f.store, **options)
    assert broken(again) == left, findings(again)
    await proof(f)


def test_every_invariant_is_broken_by_a_case() -> None:
    cases = [case.values for case in CASES]
    assert {name for values in cases for name in values[1]} == NAMED.keys()
    derived = {name for _, found, left, _, _ in cases for name in found - left}
    assert {one.name for one in INVARIANTS if one.mends} == derived, "what says that it is mended is"


async def test_all_is_found_in_one_walk_and_put_right_on_every_engine(store: Store) -> None:
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


async def test_a_mend_does_nothing_where_it_is_not_as_it_was_found(store: Store) -> None:
    f = await Furnished.make(store)
    await f.client.zrem(f.hosted["index"], "notes/n2")
    (finding,) = await f.store.fsck.check(f.grant)
    await f.client.hdel(f.hosted["docs"], "notes/n2")
    await f.client.hdel(f.hosted["meta"], "notes/n2")
    assert finding.mend is not None
    await finding.mend()
    assert await f.client.zscore(f.hosted["index"], "notes/n2") is None


async def test_what_is_larger_than_a_page_is_read_whole(store: Store) -> None:
    store.fsck.settle = 0
    f = await World.make(store)
    furnished = await Furnished.make(store)
    await furnished.client.delete(*furnished.hosted.values())
    await furnished.keeper.fill(470, collections=7)
    for number in range(600):
        await store.credits.grant(furnished.world.user, 1 + number)
    report = await checked(store, deep=True)
    assert findings(report) == []
    assert report.documents == 471
    await store.client.hdel(furnished.hosted["meta"], "c0003/d00304")
    await store.client.hdel(furnished.hosted["docs"], "c0006/d00398")
    await store.client.zrem(furnished.hosted["index"], "c0000/d00007", "c0006/d00398")
    await store.client.hincrby(keys.person(furnished.world.user)["balance"], "paid", 1)
    report = await checked(store)
    assert broken(report) == {"documents", "usage", "balance"}
    assert report.tallies["documents"].found == 3
    assert f.user != furnished.world.user


async def test_what_was_under_way_has_its_time_before_it_is_looked_at_again(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = await Furnished.make(memory_store)
    await f.client.delete(entry := keys.email(f.world.email))
    sleep, slept = walk.asyncio.sleep, []

    async def ends_meanwhile(seconds: float, *result: Any) -> Any:
        if seconds == walk.SETTLE:
            slept.append(seconds)
            await f.client.set(entry, f.world.user)
        else:
            await sleep(seconds, *result)

    monkeypatch.setattr(walk.asyncio, "sleep", ends_meanwhile)
    f.store.fsck.settle = walk.SETTLE
    report = await checked(f.store, repair=True)
    assert findings(report) == []
    assert slept == [walk.SETTLE]


async def test_what_keeps_changing_is_said_to_be_unsettled(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = await Furnished.make(memory_store)
    await f.client.delete(*f.hosted.values())
    await f.keeper.fill(401)
    look = Reader.look_at_pair

    async def and_write(reader: Reader, user: str, client: str, after: bytes) -> Any:
        if user == f.world.user:
            await f.keeper.put("c0000/d00001")
        return await look(reader, user, client, after)

    monkeypatch.setattr(Reader, "look_at_pair", and_write)
    report = await checked(memory_store)
    assert (report.busy, broken(report)) == (1, set())


async def test_no_more_is_kept_to_be_shown_than_was_asked_for(memory_store: Store) -> None:
    for number in range(30):
        await memory_store.client.set(f"nonsense:{number}", "1")
    report = await checked(memory_store, most=4)
    assert report.tallies["key"].found == 30
    assert len(findings(report)) == 4
    assert walk.NAMED == 20


GARBAGE = (b"", b"\xff\xfe", b"9" * 400, b"-1", b"garbage", b"1 2 3 4 5 6", b"{}", b"app:")


async def spoil(client: Any, key: bytes, garbage: bytes) -> None:
    """Puts what nobody writes into a key, and leaves its type and its expiry as they are."""
    kind = await client.type(key)
    if kind == b"string":
        await client.set(key, garbage, keepttl=True)
    elif kind == b"hash":
        names = await client.hkeys(key)
        await client.hset(key, mapping={**dict.fromkeys(names, garbage), garbage: garbage, b"app:" + garbage: b"1"})
    elif kind == b"zset":
        await client.zadd(key, {garbage: float("inf"), garbage + b" x": -1.5})
    elif kind == b"set":
        await client.sadd(key, garbage)
    else:
        await client.xadd(key, {b"kind": b"charge", b"amount": garbage, b"paid": garbage, b"client": garbage})


@pytest.mark.parametrize("garbage", GARBAGE, ids=ascii)
async def test_whatever_lies_in_the_store_the_check_goes_to_its_end(one_store: Store, garbage: bytes) -> None:
    f = await Furnished.make(one_store)
    everything = sorted(await every_key(f.client))
    for key in everything:
        copy, left = await f.client.dump(key), await f.client.pttl(key)
        if copy is None:
            continue  # it has ended
        await spoil(f.client, key, garbage)
        await f.store.fsck.check(key.decode())
        await f.client.restore(key, max(left, 0), copy, replace=True)
    assert findings(await checked(f.store, deep=True)) == []
    for key in everything:
        await spoil(f.client, key, garbage)
    report = await checked(f.store, deep=True, repair=True)
    assert not report.clean
    assert len(broken(report)) > 5
