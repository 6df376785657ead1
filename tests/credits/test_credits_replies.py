"""Idempotency keys of calls on every engine: one charge, the same reply, and expiry."""

from __future__ import annotations

import os
from typing import Any

import msgpack
import pytest

from store import keys
from store.credits import calls
from store.credits.calls import MAX_REPLIES_BYTES, MAX_REPLY_BYTES, Charge, Hold, ReplayedCall, StoredReply
from store.credits.prices import TokenCounts
from store.credits.request_digests import request_digest
from store.crypto.keyring import KeyRing
from store.crypto.seal import fingerprint
from store.errors import StoreError
from store.lifetimes import AI_REPLY, DAY
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.credit_spender import REPLY, Spender, a_world, recount
from tests.support.store.world import World, every_key, refusal_of

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]


async def a_spender(store: Store, paid: int = 1000) -> tuple[World, Spender]:
    """An app that may spend, and its person."""
    world = await a_world(store)
    await store.credits.grant(world.user, paid)
    return world, await Spender.make(world)


async def keep(app: Spender, key: str, reply: StoredReply = REPLY) -> None:
    """A complete call of one micro-dollar, with a reply kept under the key."""
    await app.settle(await app.hold(1, key=key), 1, 0, reply)


async def replay(app: Spender, key: str, **fields: Any) -> ReplayedCall:
    """The answer for the same key."""
    again = await app.ask(1, key=key, **fields)
    assert isinstance(again, ReplayedCall)
    return again


def sized(length: int) -> StoredReply:
    """A reply of `length` bytes before sealing."""
    more = len(msgpack.packb(["text/plain", bytes(length), b""])) - length
    return StoredReply("text/plain", os.urandom(length - more), b"")


@pytest.mark.trap(30)
async def test_a_repeated_key_returns_the_same_reply_and_charge(store: Store) -> None:
    world, app = await a_spender(store)
    hold = await app.hold(40, key="k")
    assert await app.settle(hold, 25, 0, REPLY) == Charge(25, 975)
    await app.spend(75)
    for _ in range(3):
        again = await app.ask(40, key="k")
        assert isinstance(again, ReplayedCall)
        assert (again.stored, again.charge) == (REPLY, Charge(25, 975)), "what was told then"
        assert (again.window.limit, again.window.remaining) == (20, 19)
    counted = await recount(store, world.user)
    assert (counted.amounts, counted.held) == ((1000, -25, -75), 0)


@pytest.mark.trap(30)
async def test_a_key_with_a_call_in_progress_is_refused(store: Store) -> None:
    world, app = await a_spender(store)
    hold = await app.hold(40, key="k")
    assert await refusal_of(app.ask(40, key="k")) == "idempotency_in_progress"
    assert await refusal_of(app.ask(40, key="k", body=b"another")) == "idempotency_mismatch"
    assert (await recount(store, world.user)).holds == {hold.hold_id: 40}


async def test_a_key_is_bound_to_one_request(store: Store) -> None:
    world, app = await a_spender(store)
    await app.settle(await app.hold(1, key="k", body=b'{"n":1}'), 1, 0, REPLY)
    assert await refusal_of(app.ask(1, key="k", body=b'{"n":2}')) == "idempotency_mismatch"
    assert (await replay(app, "k", body=b'{"n":1}')).charge.charged == 1
    assert (await recount(store, world.user)).amounts == (1000, -1)


async def test_nobody_can_test_a_guessed_request_against_a_kept_one(store: Store) -> None:
    world, app = await a_spender(store)
    await app.settle(await app.hold(1, key="k", body=b"sunshine"), 1, 0, REPLY)
    row = keys.idempotency(world.user, app.caller.client, fingerprint("k"))["idem"]
    kept: Any = await store.client.hget(row, "digest")
    bare = request_digest("", b"sunshine").encode()
    assert kept != bare
    # The keys turn in between, and the release before kept the bare digest.
    store.keys.replace(KeyRing.parse(f"{KeyRing.generate(9)},{store.keys.ring.render()}"))
    for digest in (kept, bare):
        await store.client.hset(row, "digest", digest)
        assert (await replay(app, "k", body=b"sunshine")).charge.charged == 1
        assert await refusal_of(app.ask(1, key="k", body=b"moonlight")) == "idempotency_mismatch"
    assert (await recount(store, world.user)).amounts == (1000, -1)


async def test_a_released_calls_key_may_be_reused(store: Store) -> None:
    world, app = await a_spender(store)
    first = await app.hold(40, key="k", body=b"1")
    await store.calls.release(first)
    second = await app.hold(40, key="k", body=b"2")
    await store.calls.release(first)
    assert await store.calls.settle(first, TokenCounts(40, 0), REPLY) is None
    assert await refusal_of(app.ask(40, key="k", body=b"2")) == "idempotency_in_progress", "the second is under way"
    await app.settle(second, 7, 0, REPLY)
    assert (await replay(app, "k", body=b"2")).charge == Charge(7, 993)
    assert (await recount(store, world.user)).amounts == (1000, -7)


async def test_a_release_after_the_settlement_leaves_the_reply(store: Store) -> None:
    _, app = await a_spender(store)
    hold = await app.hold(40, key="k")
    await app.settle(hold, 7, 0, REPLY)
    await store.calls.release(hold)
    assert (await replay(app, "k")).stored == REPLY


async def test_a_refused_call_leaves_its_key_free(store: Store) -> None:
    world, app = await a_spender(store, 10)
    assert await refusal_of(app.ask(11, key="k", body=b"1")) == "insufficient_credits"
    assert isinstance(await app.ask(10, key="k", body=b"2"), Hold)
    assert (await recount(store, world.user)).held == 10


async def test_without_a_key_nothing_is_kept(store: Store) -> None:
    world, app = await a_spender(store)
    for _ in range(2):
        await app.settle(await app.hold(5), 5, 0, REPLY)
    counted = await recount(store, world.user)
    assert (counted.amounts, counted.replies) == ((1000, -5, -5), frozenset())
    assert not await store.client.exists(*keys.idempotency(world.user, world.app.client_id, fingerprint("")).values())


async def test_any_text_may_be_a_key(store: Store) -> None:
    _, app = await a_spender(store)
    for key in ("", " ", "ü", "a:b", "\ud800", "x" * 5000):
        await keep(app, key)
        assert (await replay(app, key)).stored == REPLY


async def test_keys_are_separate_per_app_and_person(store: Store) -> None:
    world, app = await a_spender(store)
    stranger, elsewhere = await a_spender(store)
    neighbour = await Spender.make(world, stranger.app)
    await keep(app, "k")
    await store.credits.grant(world.user, 5, key="k")
    for other in (neighbour, elsewhere):
        held = await other.ask(3, key="k", body=b"another")
        assert isinstance(held, Hold)
        await other.settle(held, 3, 0, StoredReply("text/plain", b"another reply", b""))
    assert (await replay(app, "k")).stored == REPLY
    assert (await replay(neighbour, "k", body=b"another")).stored.head == b"another reply"
    assert (await recount(store, world.user)).amounts == (1000, -1, 5, -3)
    assert (await recount(store, stranger.user)).amounts == (1000, -3)


@pytest.mark.trap(29)
async def test_the_record_of_a_call_in_progress_expires_with_its_hold(memory_store: Store, clock: FakeClock) -> None:
    store = memory_store
    world, app = await a_spender(store)
    await app.hold(40, key="k", lasts=60_000)
    row = keys.idempotency(world.user, world.app.client_id, fingerprint("k"))["idem"]
    ends = await store.client.pexpiretime(row)
    assert ends == await store.client.pexpiretime(keys.credits(world.user)["holds"])
    clock.advance(61)
    again = await app.hold(40, key="k", body=b"may be another")
    assert (await app.settle(again, 40)).charged == 40
    assert (await recount(store, world.user)).amounts == (1000, -40)


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "released"])
async def test_a_call_leaves_a_key_taken_by_another_alone(memory_store: Store, clock: FakeClock, settled: bool) -> None:
    """The clock steps back before the expired hold was noticed, and after its key was found free."""
    store = memory_store
    world, app = await a_spender(store)
    row = keys.idempotency(world.user, world.app.client_id, fingerprint("k"))["idem"]
    first, _ = await app.hold(40, key="k", lasts=60_000), await app.hold(1)
    clock.advance(61)
    assert not await store.client.exists(row)
    clock.back(30)
    second = await app.hold(30, key="k")
    if settled:
        assert (await app.settle(first, 40, 0, REPLY)).charged == 40
    else:
        await store.calls.release(first)
    assert await refusal_of(app.ask(30, key="k")) == "idempotency_in_progress"
    await app.settle(second, 25, 0, REPLY)
    assert (await replay(app, "k")).charge.charged == 25
    await recount(store, world.user)


@pytest.mark.trap(30)
async def test_a_reply_and_its_record_expire_after_24_hours(memory_store: Store, clock: FakeClock) -> None:
    store = memory_store
    world, app = await a_spender(store)
    await keep(app, "k")
    rows = keys.idempotency(world.user, world.app.client_id, fingerprint("k"))
    assert len({await store.client.pexpiretime(row) for row in rows.values()}) == 1
    clock.advance(AI_REPLY / 1000 - 5)
    app = await Spender.make(world)
    assert (await replay(app, "k")).charge == Charge(1, 999)
    clock.advance(10)
    assert not await store.client.exists(*rows.values())
    assert isinstance(await app.ask(1, key="k", body=b"another"), Hold)
    assert AI_REPLY == DAY


async def test_the_list_of_replies_expires_with_the_last_reply(memory_store: Store, clock: FakeClock) -> None:
    store = memory_store
    world, app = await a_spender(store)
    await keep(app, "a")
    clock.advance(3000)
    await keep(app, "b", sized(500))
    clock.advance(AI_REPLY / 1000 - 10)
    assert (await recount(store, world.user)).replies == {f"{world.app.client_id}:{fingerprint('b')}"}
    clock.advance(20)
    left = await every_key(store.client, f"{keys.prefix(world.user)}repl*")
    assert left == []
    app = await Spender.make(world)
    await keep(app, "c", sized(100))
    assert (await recount(store, world.user)).replies == {f"{world.app.client_id}:{fingerprint('c')}"}
    assert await reply_bytes(store, world) < 200, "what ended counts no more"


async def reply_bytes(store: Store, world: World) -> int:
    """The recorded size of a person's replies."""
    found: Any = await store.client.hget(keys.credits(world.user)["balance"], "reply_bytes")
    return int(found)


@pytest.mark.parametrize("length", [pytest.param(300, id="as long"), pytest.param(100, id="shorter")])
async def test_a_key_reused_a_day_later_counts_once(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """More replies have expired than one settlement removes."""
    store = memory_store
    world, app = await a_spender(store)
    for number in range(230):
        await keep(app, f"k{number}", sized(300))
    clock.advance(3600 - 60)
    await keep(app, "later", sized(300))
    clock.advance(AI_REPLY / 1000 - 3000)
    app = await Spender.make(world)
    latest = sized(length)
    await keep(app, "k229", latest)
    await recount(store, world.user)
    assert (await replay(app, "k229")).stored == latest
    monkeypatch.setattr(calls, "MAX_REPLIES_BYTES", 2 * 400)
    await keep(app, "last", sized(300))
    await recount(store, world.user)
    assert (await replay(app, "k229")).stored == latest, "what ended makes way, and takes no newer reply with it"


async def test_a_reply_that_is_too_large_is_not_kept_and_never_charged_again(store: Store) -> None:
    world, app = await a_spender(store)
    await keep(app, "fits", sized(MAX_REPLY_BYTES))
    await keep(app, "too large", sized(MAX_REPLY_BYTES + 1))
    assert len((await replay(app, "fits")).stored.head) > 10**6
    for _ in range(2):
        assert await refusal_of(app.ask(1, key="too large")) == "idempotency_reply_gone"
    assert await refusal_of(app.ask(1, key="too large", body=b"another")) == "idempotency_mismatch"
    counted = await recount(store, world.user)
    assert (counted.amounts, len(counted.replies)) == ((1000, -1, -1), 1)


async def test_a_call_without_a_kept_reply_is_not_repeated(store: Store) -> None:
    world, app = await a_spender(store)
    await app.settle(await app.hold(5, key="k"), 5)
    await app.settle(await app.hold(5, key="l"), 0)
    assert await refusal_of(app.ask(5, key="k")) == "idempotency_reply_gone"
    assert await refusal_of(app.ask(5, key="l")) == "idempotency_reply_gone"
    assert (await recount(store, world.user)).amounts == (1000, -5)


async def test_a_person_keeps_16_mib_and_the_oldest_make_way(store: Store) -> None:
    world, app = await a_spender(store)
    other = await Spender.make(world, (await a_world(store)).app)
    size = MAX_REPLIES_BYTES // 16
    for number in range(18):
        await keep((app, other)[number % 2], f"k{number}", sized(size - 29 - 3 * (number % 3)))
        counted = await recount(store, world.user)
        assert len(counted.replies) == min(number + 1, 16)
        assert await reply_bytes(store, world) <= MAX_REPLIES_BYTES
    for number in range(18):
        call = (app, other)[number % 2].ask(1, key=f"k{number}")
        assert (await refusal_of(call) == "idempotency_reply_gone") == (number < 2)
    await keep(app, "small", sized(100))
    assert len((await recount(store, world.user)).replies) == 16, "one made way"
    assert counted.amounts == (1000,) + (-1,) * 18


async def test_at_most_200_make_way_for_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_REPLIES_BYTES", 250 * 129)
    world, app = await a_spender(store)
    for number in range(250):
        await keep(app, f"k{number}", sized(100))
    assert len((await recount(store, world.user)).replies) == 250
    await keep(app, "large", sized(129 * 201 - 29))
    assert len((await recount(store, world.user)).replies) == 50
    assert await refusal_of(app.ask(1, key="large")) == "idempotency_reply_gone"
    await keep(app, "next", sized(129 * 200 - 29))
    assert len((await recount(store, world.user)).replies) == 51


async def test_a_reply_is_encrypted_in_the_store(store: Store) -> None:
    _, app = await a_spender(store)
    secret, key = b"nobody may read this but the app", "an idempotency key of the app"
    await app.settle(
        await app.hold(1, key=key, body=b"the body of the call"), 1, 0, StoredReply("text/plain", secret, secret)
    )
    values = await all_values(store)
    assert any(len(value) > 2 * len(secret) for value in values)
    for text in (secret, key.encode(), b"the body of the call", b"text/plain"):
        assert not [value for value in values if text in value]
    assert (await replay(app, key, body=b"the body of the call")).stored.tail == secret


async def all_values(store: Store) -> list[bytes]:
    """Every key with its content."""
    client: Any = store.client
    found = []
    for key in await every_key(client):
        kind = await client.type(key)
        if kind == b"string":
            found += [key, await client.get(key)]
        elif kind == b"hash":
            found += [key, repr(await client.hgetall(key)).encode()]
        elif kind == b"stream":
            found += [key, repr(await client.xrange(key)).encode()]
        else:
            found += [key, repr(await client.sort(key, by="nosort")).encode()]
    return found


async def test_a_moved_reply_cannot_be_opened(store: Store) -> None:
    world, app = await a_spender(store)
    neighbour = await Spender.make(world, (await a_world(store)).app)
    for owner, key in ((app, "a"), (app, "b"), (neighbour, "a")):
        await keep(owner, key)
    stolen = await store.client.get(keys.idempotency(world.user, app.caller.client, fingerprint("a"))["reply"])
    for owner, key in ((app, "b"), (neighbour, "a")):
        row = keys.idempotency(world.user, owner.caller.client, fingerprint(key))["reply"]
        assert isinstance(stolen, bytes)
        await store.client.set(row, stolen)
        with pytest.raises(StoreError, match="does not open"):
            await owner.ask(1, key=key)


async def test_a_deletion_frees_many_replies_in_steps(store: Store) -> None:
    world, app = await a_spender(store)
    other, elsewhere = await a_spender(store)
    await keep(elsewhere, "k")
    for number in range(250):
        await keep(app, f"k{number}", sized(100))
    step = {
        "member": keys.member(world.user),
        "prefix": keys.prefix(world.user),
        "shard": keys.shard_prefix(world.user),
    }
    words: list[Any] = []
    while words[-1:] != ["done"]:
        words.append(
            (await store.scripts.run("delete_user", keys.account_deletion(world.user), steps=100, **step)).word
        )
        left = await every_key(store.client, f"{keys.reply_prefix(world.user)}*")
        assert len(left) == max(0, 250 - 100 * len(words))
    assert words == ["more", "more", "done"]
    assert not await store.client.exists(*keys.credits(world.user).values())
    assert (await replay(elsewhere, "k")).stored == REPLY
    assert len((await recount(store, other.user)).replies) == 1
