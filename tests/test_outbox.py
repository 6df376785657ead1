"""What apps are told of: written with the change it tells of, moved to the deliveries once, whatever breaks off."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import msgpack
import pytest

from store import keys
from store.errors import StoreUnavailable
from store.hints import Hints
from store.keyring import Keys
from store.lifetimes import GRACE
from store.opened import Store
from store.outbox import Outbox
from tests.calls.hooks import wanted
from tests.engines import Engine, FakeClock
from tests.hosted import Keeper
from tests.losing import losing
from tests.world import PASSWORD, VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

SECONDS = GRACE / 1000
Told = list[tuple[str, str]]


async def told(world: World, client: str | None = None) -> Told:
    """Types and reasons of what an app was told of this person, the oldest first, when all was moved."""
    await world.store.outbox.relay_shards({world.user[:3]}, wanted)
    assert not await world.store.client.exists(keys.outbox(world.user)), "an outbox without events takes no room"
    rows = await world.store.deliveries.list(client or world.app.client_id, most=1000)
    assert {row.client_id for row in rows} <= {client or world.app.client_id}
    return [(row.type, row.details.get("reason", "")) for row in reversed(rows) if row.sub == world.user]


async def ids_told(world: World) -> list[tuple[str, tuple[str, str]]]:
    """The same, each with its id: of those that are not older than 30 days."""
    events = await told(world)
    rows = await world.store.deliveries.list(world.app.client_id, most=1000)
    return list(zip([row.id for row in reversed(rows)], events, strict=True))


async def due(world: World) -> dict[str, int]:
    """Who is on the due list of the person's shard, by client id."""
    listed = await world.store.client.zrange(keys.telling(world.user[:3])["due"], 0, -1, withscores=True)
    theirs = (entry.decode().split(":") for entry, _ in listed)
    return {
        client: int(score)
        for (member, client), (_, score) in zip(theirs, listed, strict=True)
        if member == keys.member(world.user)
    }


async def keeping(store: Store) -> World:
    """A person who has connected an app, which keeps a document."""
    world = await World.make(store)
    await (await Keeper.make(world)).put("notes/n1")
    return world


async def disconnect(world: World) -> None:
    await world.revoke_app()


async def replay(world: World) -> None:
    first = await world.tokens()
    await world.refresh(first.refresh_token)
    for _ in range(2):
        assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"


async def replay_a_code(world: World) -> None:
    code = await world.code()
    await world.exchange(code)
    for _ in range(2):
        assert await refusal_of(world.exchange(code)) == "invalid_grant"


async def replay_a_code_of_a_grant_that_was_ended(world: World) -> None:
    code = await world.code()
    await world.exchange(code)
    await world.revoke_app()
    assert await refusal_of(world.exchange(code)) == "invalid_grant"


async def replay_a_token_of_a_grant_that_was_ended(world: World) -> None:
    first = await world.tokens()
    await world.revoke_app()
    assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"


async def give_back(world: World) -> None:
    tokens = await world.tokens()
    await world.store.tokens.revoke(world.app, tokens.refresh_token)


async def give_back_by_a_stranger(world: World) -> None:
    tokens = await world.tokens()
    for _ in range(2):
        await world.store.tokens.revoke(None, tokens.refresh_token)


async def give_back_an_access_token(world: World) -> None:
    await world.store.tokens.revoke(None, (await world.tokens()).access_token)


async def claim_the_address(world: World) -> None:
    await world.store.client.hdel(keys.person(world.user)["user"], "verified")
    link = await world.store.links.to_reset(world.user, world.email)
    assert link is not None
    assert await world.store.links.reset(link.text, "another horse battery", VISITOR)


async def reset_the_password(world: World) -> None:
    link = await world.store.links.to_reset(world.user, world.email)
    assert link is not None
    assert not await world.store.links.reset(link.text, PASSWORD, VISITOR)


async def delete_the_account(world: World) -> None:
    await world.store.people.delete(world.user)


async def disconnect_and_delete_the_account(world: World) -> None:
    await world.revoke_app()
    await world.store.people.delete(world.user)


async def delete_all(world: World) -> None:
    assert await world.store.holdings.delete_all(world.session, world.app.client_id, VISITOR) == 1
    assert await world.store.holdings.delete_all(world.session, world.app.client_id, VISITOR) == 0


async def disconnect_and_delete_all(world: World) -> None:
    await world.revoke_app()
    await delete_all(world)


async def delete_one_of_two_and_the_other(world: World) -> None:
    await (await Keeper.make(world)).put("notes/n2")
    for one in ("n1", "n2"):
        assert await told(world) == []
        await world.store.holdings.delete(world.session, world.app.client_id, "notes", one, VISITOR)


async def disable_and_enable(world: World) -> None:
    for status in ("disabled", "active"):
        await world.store.operator.set_status(world.email, status)


async def consent_to_less(world: World) -> None:
    await world.tokens(("profile",))


REVOKED = ("grant.revoked", "disconnected_by_person")
DELETED, OVER = ("data.deleted", "deleted_by_person"), ("data.deleted", "grace_over")
CASES: list[tuple[Callable[[World], Awaitable[None]], Told]] = [
    (disconnect, [REVOKED]),
    (replay, [("tokens.revoked", "refresh_token_replayed")]),
    (replay_a_code, [("tokens.revoked", "code_replayed")]),
    (replay_a_code_of_a_grant_that_was_ended, [REVOKED]),
    (replay_a_token_of_a_grant_that_was_ended, [REVOKED]),
    (give_back, []),
    (give_back_by_a_stranger, [("tokens.revoked", "token_revoked")]),
    (give_back_an_access_token, []),
    (claim_the_address, [("grant.revoked", "address_claimed")]),
    (reset_the_password, []),
    (delete_the_account, [("user.deleted", "")]),
    (disconnect_and_delete_the_account, [REVOKED, ("user.deleted", "")]),
    (delete_all, [DELETED]),
    (disconnect_and_delete_all, [REVOKED, DELETED]),
    (delete_one_of_two_and_the_other, [DELETED]),
    (disable_and_enable, []),
    (consent_to_less, []),
]


@pytest.mark.parametrize(("does", "expected"), [pytest.param(*case, id=case[0].__name__) for case in CASES])
async def test_the_app_is_told_what_it_cannot_know(
    store: Store, does: Callable[[World], Awaitable[None]], expected: Told
) -> None:
    world = await keeping(store)
    await does(world)
    assert await told(world) == expected
    assert await told(world) == expected, "once"
    ends = {world.app.client_id} if expected and expected[-1][0] == "grant.revoked" else set()
    assert (await due(world)).keys() == ends


async def test_what_is_told_says_of_whom_and_when(store: Store) -> None:
    world = await keeping(store)
    until = round((await store.grants.revoke(world.session, world.app.client_id, VISITOR)).timestamp() * 1000)
    assert await due(world) == {world.app.client_id: until}
    await told(world)
    (row,) = await store.deliveries.list(world.app.client_id)
    assert (row.type, row.sub, row.client_id) == ("grant.revoked", world.user, world.app.client_id)
    assert row.occurred_at == until - GRACE
    assert (row.state, row.attempts, row.tries, row.last_attempt_at, row.last_status, row.last_error) == (
        *("pending", 0, 0, None, None),
        "",
    )
    assert row.next_attempt_at == row.created_at >= row.occurred_at


async def test_only_the_apps_concerned_are_told(store: Store) -> None:
    world, stranger = await keeping(store), await keeping(store)
    app, _ = await world.register(f"{world.app.client_id}-two")
    await (await Keeper.make(world, app)).put("notes/n1")
    await world.revoke_app()
    assert await told(world, app.client_id) == await told(stranger) == []
    await store.people.delete(world.user)
    assert await told(world, app.client_id) == [("user.deleted", "")]
    assert await told(stranger) == []


async def test_an_app_that_wants_nothing_is_told_nothing(store: Store) -> None:
    world = await keeping(store)
    await world.revoke_app()
    asked = []

    async def unwanted(client: str) -> bool:
        asked.append(client)
        return False

    assert await store.outbox.relay_shards({world.user[:3]}, unwanted) == 0
    assert asked == [world.app.client_id]
    assert await told(world) == []


async def test_with_a_deleted_app_all_goes_that_it_was_to_be_told(store: Store) -> None:
    world, other = await keeping(store), await keeping(store)
    for one in (world, other):
        await one.revoke_app()
    await told(world)
    (before,) = await store.deliveries.list(world.app.client_id)
    await store.apps.delete(world.app.client_id)
    assert await due(world) == {}
    assert await store.deliveries.list(world.app.client_id) == []
    assert await store.deliveries.read(world.app.client_id, before.id) is None
    assert [one.client_id for one in await store.deliveries.claim(100, 30)] == []
    assert (await due(other)).keys() == {other.app.client_id}
    assert await told(other) == [REVOKED]


@pytest.mark.spec("3.1.grace-over")
async def test_30_days_later_the_app_is_told_that_the_data_is_gone(clock: FakeClock, memory_store: Store) -> None:
    world = await keeping(memory_store)
    await world.revoke_app()
    (ends,) = (await due(world)).values()
    clock.advance(SECONDS - 60)
    await memory_store.outbox.sweep(wanted)
    assert await told(world) == [REVOKED]
    clock.advance(61)
    for _ in range(3):
        await memory_store.outbox.sweep(wanted)
    assert await told(world) == [REVOKED, OVER]
    newest = (await memory_store.deliveries.list(world.app.client_id))[0]
    assert (newest.type, newest.occurred_at) == ("data.deleted", ends)
    assert await due(world) == {}
    assert not await memory_store.client.exists(*keys.telling(world.user[:3]).values())


@pytest.mark.spec("3.1.grace-kept")
@pytest.mark.parametrize("returns", ["by consent", "by mint"])
async def test_who_returns_is_taken_off_the_due_list(clock: FakeClock, memory_store: Store, returns: str) -> None:
    world = await keeping(memory_store)
    await world.revoke_app()
    world.session = await world.sign_in()
    if returns == "by consent":
        await world.code(("profile",))
    else:
        await memory_store.tokens.mint(world.user, world.app, ("profile",))
    assert await due(world) == {}
    clock.advance(2 * SECONDS)
    await memory_store.outbox.sweep(wanted)
    assert OVER not in await told(world)


async def test_what_is_kept_longer_is_told_of_later(clock: FakeClock, memory_store: Store) -> None:
    """As after a repair that lets the data live: an event says that it is gone, so it must be."""
    world = await keeping(memory_store)
    await world.revoke_app()
    for key in keys.hosted(world.user, world.app.client_id).values():
        await memory_store.client.pexpire(key, GRACE + 60_000)
    clock.advance(SECONDS + 30)
    await memory_store.outbox.sweep(wanted)
    assert len(await due(world)) == 1
    assert await told(world) == [REVOKED]
    clock.advance(31)
    await memory_store.outbox.sweep(wanted)
    assert await told(world) == [REVOKED, OVER]


async def test_where_nothing_is_kept_nothing_is_told_to_be_gone(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    keeper = await Keeper.make(world)
    await keeper.put("notes/n1")
    await keeper.delete("notes/n1")
    await world.revoke_app()
    assert await due(world) == {}
    clock.advance(SECONDS + 1)
    await memory_store.outbox.sweep(wanted)
    assert await told(world) == [REVOKED]


async def test_a_sweep_finds_every_shard_and_more_than_one_step_of_pairs(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.outbox.PAIRS_AT_ONCE", 2)
    worlds = [await keeping(memory_store) for _ in range(6)]
    shard = worlds[0].user[:3]
    for world in worlds:
        await world.revoke_app()
    # Of five that are long gone, in one shard.
    gone = {f"{number:029x}:an-app": 1 for number in range(5)}
    await memory_store.client.zadd(keys.telling(shard)["due"], gone)
    clock.advance(SECONDS + 1)
    assert await memory_store.outbox.sweep(wanted) == 6 + 6 + 5
    for world in worlds:
        assert await told(world) == [REVOKED, OVER]


async def test_in_every_order_the_app_is_told_each_thing_once(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script is atomic, so the orders of whole scripts are all the interleavings there are."""
    for order in itertools.permutations(("disconnect", "consent", "30 days", "sweep", "delete all")):
        if order.index("consent") < order.index("disconnect"):
            continue  # to who is connected, another consent does nothing
        world = await keeping(memory_store)
        monkeypatch.setattr(keys, "SHARDS", (world.user[:3],))  # a sweep over all of them takes fakeredis its time
        expected: Told = []
        found: list[tuple[str, tuple[str, str]]] = []
        connected, kept, listed, over = True, True, False, False
        for step in order:
            if step == "disconnect":
                await world.revoke_app()
                connected, listed = False, kept
                expected.append(REVOKED)
            elif step == "consent":
                await world.code()
                expected += [OVER] if listed and over else []
                connected, listed = True, False
            elif step == "30 days":
                clock.advance(SECONDS + 1)
                world.session = await world.sign_in()
                if not connected:
                    over = True
                kept = kept and not (listed and over)
            elif step == "sweep":
                await memory_store.outbox.sweep(wanted)
                expected += [OVER] if listed and over else []
                listed = listed and not over
            else:
                there = connected or not over
                refused = await refusal_of(
                    memory_store.holdings.delete_all(world.session, world.app.client_id, VISITOR)
                )
                assert refused == (None if there else "not_found"), order
                if there and kept:
                    expected.append(DELETED)
                    kept = listed = False
            found += [one for one in await ids_told(world) if one not in found]
            assert [event for _, event in found] == expected, order
        await memory_store.people.delete(world.user)
        expected += [OVER] if listed and over else []
        expected += [("user.deleted", "")] if connected or not over else []
        for _ in range(2):
            found += [one for one in await ids_told(world) if one not in found]
            assert [event for _, event in found] == expected, order
            await memory_store.outbox.sweep(wanted)
        assert await due(world) == {}


async def test_what_cannot_be_moved_now_is_moved_later(store: Store) -> None:
    world = await keeping(store)
    await world.revoke_app()

    async def away(client: str) -> bool:
        raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await store.outbox.relay_shards({world.user[:3]}, away)
    assert await store.outbox.relay_shards({world.user[:3]}, wanted) == 0, "somebody has it"
    store.outbox.idle = 0
    assert await told(world) == [REVOKED]


@pytest.mark.parametrize("script", ["take_events", "enqueue_delivery", "drop_events", "announce_ended"])
async def test_whatever_answer_is_lost_each_event_is_moved_once(valkey_engine: Engine, keys: Keys, script: str) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        await replay(world)
        await world.revoke_app()
        world.store.outbox.idle = 0
        await world.store.client.zadd(f"{{{world.user[:3]}}}:due", {f"{world.user[3:]}:{world.app.client_id}": 1})
        armed.arm(script, 2)
        with pytest.raises(StoreUnavailable):
            await world.store.outbox.sweep(wanted)
        armed.times = 0
        await world.store.outbox.sweep(wanted)
        assert sorted(await told(world)) == [
            OVER,
            REVOKED,
            ("tokens.revoked", "refresh_token_replayed"),
        ]


async def test_a_sweep_is_done_by_one_process_at_a_time(store: Store) -> None:
    world, other = await keeping(store), await keeping(store)
    await world.revoke_app()
    assert await store.outbox.relay(wanted) == 1
    await other.revoke_app()
    assert await store.outbox.relay(wanted) == 0
    assert 0 < await store.client.pttl(keys.RELAYED) <= 30_000
    await store.client.delete(keys.RELAYED)
    assert await store.outbox.relay(wanted) == 1


async def test_what_this_process_has_written_goes_out_at_once(store: Store) -> None:
    world = await keeping(store)
    await store.client.set(keys.RELAYED, "1")  # so no sweep does it
    moved = asyncio.Event()
    async with store.outbox.relaying(wanted, moved.set):
        for does in (disconnect, replay, replay_a_code, give_back_by_a_stranger, delete_all, delete_the_account):
            moved.clear()
            await does(world)
            async with asyncio.timeout(5):
                await moved.wait()
    assert (await store.deliveries.list(world.app.client_id))[0].type == "user.deleted"


class Hesitant:
    """An app of which one learns only after a while that it wants to hear."""

    def __init__(self) -> None:
        self.asked, self._answers = asyncio.Event(), asyncio.Event()

    async def wants(self, client: str) -> bool:
        self.asked.set()
        await self._answers.wait()
        return True

    async def is_asked(self) -> None:
        """Waits for it; the answer comes later."""
        await self.asked.wait()
        asyncio.get_running_loop().call_later(0.1, self._answers.set)


async def test_who_sweeps_waits_for_what_another_is_moving(memory_store: Store) -> None:
    world, app = await keeping(memory_store), Hesitant()
    await world.revoke_app()
    relay = asyncio.ensure_future(memory_store.outbox.relay_shards({world.user[:3]}, app.wants))
    await app.is_asked()
    assert await memory_store.outbox.sweep(wanted, [world.user[:3]]) == 0
    assert await memory_store.deliveries.next_due() == 0
    assert await relay == 1


async def test_a_store_is_not_emptied_while_something_is_moved(memory_store: Store) -> None:
    world, app = await keeping(memory_store), Hesitant()
    await world.revoke_app()
    relay = asyncio.ensure_future(memory_store.outbox.relay_shards({world.user[:3]}, app.wants))
    await app.is_asked()
    async with memory_store.outbox.still():
        await memory_store.client.flushall()
    assert await relay == 1
    assert await memory_store.client.keys() == []


async def test_what_was_hinted_of_a_store_that_is_emptied_is_forgotten(memory_store: Store) -> None:
    hints = Hints()
    outbox = Outbox(memory_store.client, memory_store.scripts, memory_store.deliveries, hints)
    hints.add("0" * 32)
    async with outbox.still():
        await memory_store.client.flushall()
    assert await hints.take(0) == frozenset()


async def test_a_relay_goes_on_when_the_store_was_away_and_whatever_an_app_is(
    memory_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    world, moved, failures = await keeping(memory_store), asyncio.Event(), [StoreUnavailable("away"), ValueError("odd")]
    memory_store.outbox.idle = 0

    async def at_last(client: str) -> bool:
        if failures:
            raise failures.pop(0)
        return True

    async with memory_store.outbox.relaying(at_last, moved.set):
        while not moved.is_set():
            await world.tokens()
            await world.revoke_app()
            await asyncio.sleep(0.1)
    assert failures == []
    assert {record.message for record in caplog.records} >= {"what apps are told of waits: away"}


async def test_two_things_in_one_millisecond_are_two_and_the_end_of_a_grace_window_is_one(store: Store) -> None:
    world = await keeping(store)
    one = {"type": "tokens.revoked", "client": world.app.client_id, "member": keys.member(world.user), "at": "1"}
    for reason in ("token_revoked", "token_revoked", "refresh_token_replayed"):
        await store.client.xadd(keys.outbox(world.user), {**one, "reason": reason})
    for _ in range(2):
        await store.client.xadd(keys.outbox(world.user), {**one, "type": "data.deleted", "reason": "grace_over"})
    assert [reason for _, reason in await told(world)] == [
        *("token_revoked", "token_revoked", "refresh_token_replayed", "grace_over")
    ]


async def test_an_entry_that_nobody_can_read_holds_up_no_other(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    world = await keeping(store)
    await store.client.xadd(keys.outbox(world.user), {"nonsense": "1"})
    await world.revoke_app()
    assert await told(world) == [REVOKED]
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize("place", ["outbox", "due"])
async def test_a_shard_in_which_something_else_lies_holds_up_no_other(
    store: Store, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the due list alone is none, the shard's own outbox is emptied all the same."""
    bad = await keeping(store)
    while (world := await keeping(store)).user[:3] == bad.user[:3]:
        pass
    shards = [bad.user[:3], world.user[:3]]
    await store.client.zadd(keys.telling(shards[1])["due"], {f"{keys.member(world.user)}:gone": 1})
    for one in (bad, world):
        await one.revoke_app()
    await store.client.set(keys.telling(shards[0])[place], "nonsense")
    assert await store.outbox.sweep(wanted, shards) == (3 if place == "due" else 2)
    assert f"in {shards[0]} waits: store: ResponseError, WRONGTYPE" in caplog.text
    assert [one.type for one in await store.deliveries.list("gone")] == ["data.deleted"]
    assert await told(world) == [REVOKED]
    await world.tokens()
    await world.revoke_app()
    caplog.clear()
    assert await store.outbox.relay_shards(shards, wanted) == 1
    assert ("WRONGTYPE" in caplog.text) is (place == "outbox")


async def test_an_app_whose_registration_cannot_be_read_holds_up_no_other(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    hook = "https://web.example/hook"
    world, other = await World.make(store, webhook_url=hook), await World.make(store, webhook_url=hook)
    good, _ = await world.register(f"{world.app.client_id}-good", webhook_url=hook)
    for app in (world.app, good):
        await world.tokens(app=app)
        await store.grants.revoke(world.session, app.client_id, VISITOR)
    await other.tokens()
    await other.revoke_app()
    packed = await store.client.get(keys.app(world.app.client_id))
    await store.client.set(keys.app(world.app.client_id), msgpack.packb({"client_id": world.app.client_id}))
    store.apps.forget()
    assert await store.outbox.relay_shards([world.user[:3], other.user[:3]], store.webhooks.wants) == 2
    assert world.app.client_id in caplog.text
    assert [one.type for one in await store.deliveries.list(good.client_id)] == ["grant.revoked"]
    await store.client.set(keys.app(world.app.client_id), packed)
    store.apps.forget()
    store.outbox.idle = 0
    assert await told(world) == [REVOKED], "it waits until somebody has put that right"


async def test_an_outbox_that_nobody_empties_is_bounded(store: Store) -> None:
    world = await keeping(store)
    one = {"type": "grant.revoked", "client": "an-app", "member": "m", "reason": "x", "at": "1"}
    async with store.client.pipeline(transaction=False) as batch:
        for _ in range(1500):
            batch.xadd(keys.outbox(world.user), one)
        await batch.execute()
    await world.revoke_app()
    assert await store.client.xlen(keys.outbox(world.user)) <= 1100
    newest = (await store.client.xrevrange(keys.outbox(world.user), count=1))[0][1]
    assert newest[b"type"] == b"grant.revoked"
    assert newest[b"member"] == keys.member(world.user).encode()
