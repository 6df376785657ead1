"""The grace window of hosted data, and what ends data for good. SPEC 3.1, 8.3."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from store import keys
from store.lifetimes import GRACE
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.document_app import Keeper
from tests.support.store.world import VISITOR, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=30)

CONTENTS = {"notes/n1": b'{"a":  1}', "notes/n2": b"2", "other/n1": b'"three"'}
SECONDS = GRACE / 1000


async def a_keeper(world: World) -> Keeper:
    """An app that stores some documents."""
    keeper = await Keeper.make(world)
    for name, content in CONTENTS.items():
        await keeper.put(name, content)
    return keeper


async def ends(keeper: Keeper) -> set[int]:
    """The absolute expiries of the grant and the four keys: -1 for none, -2 for a missing key."""
    every = [keys.grant(keeper.caller.user, keeper.caller.client), *keeper.keys().values()]
    return {int(await keeper.store.client.pexpiretime(key)) for key in every}


async def by_consent(world: World) -> None:
    await world.code(("profile",))


async def by_mint(world: World) -> None:
    await world.store.tokens.mint(world.user, world.app, ("profile",))


@pytest.mark.spec("3.1")
@pytest.mark.spec("3.1.grace-kept")
@pytest.mark.parametrize("returns", [by_consent, by_mint])
async def test_reconnecting_finds_everything_unchanged(
    store: Store, returns: Callable[[World], Awaitable[None]]
) -> None:
    world = await World.make(store)
    keeper = await a_keeper(world)
    before, usage = await keeper.dump(), await keeper.recount()
    was = {name: await keeper.get(name) for name in CONTENTS}
    until = await store.grants.revoke(world.session, world.app.client_id, VISITOR)
    assert await ends(keeper) == {round(until.timestamp() * 1000)}
    for call in (keeper.get("notes/n1"), keeper.put("notes/n1"), keeper.delete("notes/n1"), keeper.usage()):
        assert await refusal_of(call) == "invalid_token"
    await returns(world)  # with a scope that reads no data
    assert await ends(keeper) == {-1}
    assert await keeper.dump() == before
    back = await Keeper.make(world)
    for name, content in CONTENTS.items():
        found, read, _ = await back.get(name)
        assert (found, read) == (was[name][0], content)
    assert await back.usage() == await back.recount() == usage
    newest = max(int(found.etag) for found, _, _ in was.values())
    assert int((await back.put("notes/n3"))[0].etag) > newest, "the sequence goes on"
    assert await ends(back) == {-1}


@pytest.mark.spec("3.1")
@pytest.mark.spec("3.1.grace-over")
@pytest.mark.spec("8.3")
async def test_documents_expire_30_days_after_disconnection(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    keeper = await a_keeper(world)
    newest = int((await keeper.put("notes/n1"))[0].etag)
    await world.revoke_app()
    clock.advance(SECONDS - 60)
    assert -2 not in await ends(keeper)
    clock.advance(61)
    assert await ends(keeper) == {-2}
    back = await Keeper.make(world)
    assert await refusal_of(back.get("notes/n1")) == "not_found"
    assert (await back.recount()).documents == 0
    assert int((await back.put("notes/n1"))[0].etag) > newest, "an ETag never comes twice"
    clock.advance(2 * SECONDS)
    assert await ends(back) == {-1}, "nothing of the old end is left"


@pytest.mark.spec("3.1.grace-kept")
async def test_reconnecting_on_the_last_day_keeps_the_documents(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await a_keeper(world)
    for _ in range(3):
        world.session = await world.sign_in()
        await world.revoke_app()
        clock.advance(SECONDS - 60)
        back = await Keeper.make(world)
        clock.advance(2 * SECONDS)
        assert await ends(back) == {-1}
    back = await Keeper.make(world)
    assert (await back.get("notes/n1"))[1] == CONTENTS["notes/n1"]


async def test_without_consent_documents_keep_their_end(store: Store) -> None:
    world = await World.make(store)
    keeper = await a_keeper(world)
    await world.revoke_app()
    before = await ends(keeper)
    request = await world.pending()
    assert await ends(keeper) == before, "asking changes nothing"
    await store.authorizations.decide(world.session, world.app, request, allow=False, scopes=None, visitor=VISITOR)
    assert await ends(keeper) == before, "nor does a no"
    assert await refusal_of(store.grants.revoke(world.session, world.app.client_id, VISITOR)) == "not_found"
    assert await ends(keeper) == before


async def test_disconnecting_touches_only_its_pair(store: Store) -> None:
    world, stranger = await World.make(store), await World.make(store)
    neighbour = await Keeper.make(world, stranger.app)
    elsewhere = await Keeper.make(stranger, world.app)
    for keeper in (neighbour, elsewhere):
        await keeper.put("notes/n1")
    await a_keeper(world)
    await world.revoke_app()
    for keeper in (neighbour, elsewhere):
        assert await ends(keeper) == {-1}
        assert (await keeper.get("notes/n1"))[1] == b"1"


@pytest.mark.spec("3.1.replayed")
async def test_a_replay_ends_tokens_and_keeps_the_documents(store: Store) -> None:
    world = await World.make(store)
    keeper = await a_keeper(world)
    before = await keeper.dump()
    tokens = await world.tokens()
    await world.refresh(tokens.refresh_token)
    assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"
    assert await refusal_of(keeper.get("notes/n1")) == "invalid_token"
    assert await ends(keeper) == {-1}
    assert await keeper.dump() == before
    assert (await (await Keeper.make(world)).get("notes/n1"))[1] == CONTENTS["notes/n1"]


async def test_an_app_without_documents_can_be_revoked_and_reconnected(store: Store) -> None:
    world = await World.make(store)
    keeper = await Keeper.make(world)
    await world.revoke_app()
    assert len(await ends(keeper)) == 2, "the grant's end, and no key"
    back = await Keeper.make(world)
    await back.put("notes/n1")
    assert await ends(back) == {-1}


async def test_a_store_of_deleted_documents_keeps_its_sequence(store: Store) -> None:
    world = await World.make(store)
    keeper = await Keeper.make(world)
    etag = int((await keeper.put("notes/n1"))[0].etag)
    await keeper.delete("notes/n1")
    await world.revoke_app()
    assert int((await (await Keeper.make(world)).put("notes/n1"))[0].etag) > etag


async def test_disabling_a_person_keeps_the_data(store: Store) -> None:
    world = await World.make(store)
    keeper = await a_keeper(world)
    before = await keeper.dump()
    await store.operator.set_status(world.email, "disabled")
    assert await refusal_of(keeper.get("notes/n1")) == "invalid_token"
    assert (await keeper.dump(), await ends(keeper)) == (before, {-1})
    await store.operator.set_status(world.email, "active")
    assert (await keeper.get("notes/n1"))[1] == CONTENTS["notes/n1"]


async def keys_of(store: Store, word: str) -> list[bytes]:
    """The keys with this word in their name, windows and what expires within the hour or month left out."""
    found = await every_key(store.client, f"*{word}*")
    lasting = ("grant", "docs", "meta", "index", "usage", "leaving", "users", "user", "sessions", "audit")
    return [key for key in found if any(part in lasting for part in key.decode().split(":"))]


@pytest.mark.parametrize("revoked", [pytest.param(False, id="connected"), pytest.param(True, id="in grace")])
async def test_account_deletion_disables_at_the_first_write_and_frees_in_steps(store: Store, revoked: bool) -> None:
    world, stranger = await World.make(store), await World.make(store)
    keepers = [await a_keeper(world)]
    for number in range(4):
        app, _ = await world.register(f"{world.app.client_id}-{number}")
        keepers.append(await Keeper.make(world, app))
        await keepers[-1].put("notes/n1")
    other = await Keeper.make(stranger, world.app)
    await other.put("notes/n1")
    if revoked:
        await world.revoke_app()
    one_step = {
        "member": keys.member(world.user),
        "prefix": keys.prefix(world.user),
        "shard": keys.shard_prefix(world.user),
    }
    words = [(await store.scripts.run("delete_user", keys.account_deletion(world.user), steps=1, **one_step)).word]
    for keeper in keepers:
        assert await refusal_of(keeper.get("notes/n1")) == "invalid_token"
    left = [keeper for keeper in keepers if await store.client.exists(*keeper.keys().values())]
    assert len(left) == len(keepers) - 1, "one step frees one app"
    # The process was killed here: whoever deletes again goes on.
    while words[-1] == "more":
        words.append(
            (await store.scripts.run("delete_user", keys.account_deletion(world.user), steps=2, **one_step)).word
        )
    assert words == ["more", "more", "done"]
    # The address is released by whoever deletes, and until then it is noted which one it is.
    leaving = keys.person(world.user)["leaving"]
    assert await keys_of(store, world.user) == [leaving.encode()]
    assert await store.client.hkeys(leaving) == [b"email"]
    assert (await other.get("notes/n1"))[1] == b"1"


@pytest.mark.parametrize("revoked", [pytest.param(False, id="connected"), pytest.param(True, id="in grace")])
async def test_deleting_an_app_frees_its_documents(store: Store, revoked: bool) -> None:
    worlds = [await World.make(store) for _ in range(4)]
    app, _ = await worlds[0].register(f"{worlds[0].app.client_id}-doomed")
    doomed = [await Keeper.make(world, app) for world in worlds]
    spared = [await a_keeper(world) for world in worlds]
    for keeper in doomed:
        await keeper.put("notes/n1")
    if revoked:
        await store.grants.revoke(worlds[0].session, app.client_id, VISITOR)
    await store.apps.delete(app.client_id)
    assert await store.apps.active(app.client_id) is None
    assert await keys_of(store, app.client_id) == []
    for keeper in spared:
        assert (await keeper.get("notes/n1"))[1] == CONTENTS["notes/n1"]
        assert (await keeper.recount()).documents == 3


async def test_a_deletion_step_is_bounded_in_bytes(store: Store) -> None:
    """A hash of few and large documents is freed on the spot, so a hundred of them are not one step's work."""
    world = await World.make(store)
    for number in range(4):
        app, _ = await world.register(f"{world.app.client_id}-{number}")
        keeper = await Keeper.make(world, app)
        await keeper.put("notes/n1")
        await store.client.hset(keeper.keys()["usage"], "bytes", 15 * 2**20)
    step = {
        "member": keys.member(world.user),
        "prefix": keys.prefix(world.user),
        "shard": keys.shard_prefix(world.user),
    }
    words = [
        (await store.scripts.run("delete_user", keys.account_deletion(world.user), steps=100, **step)).word
        for _ in "12"
    ]
    assert words == ["more", "done"], "two apps each"
    # The same of an app, where one person has much: the script goes on in the shard until nobody is left.
    other = await World.make(store)
    keeper = await Keeper.make(other)
    await keeper.put("notes/n1")
    await store.client.hset(keeper.keys()["usage"], "bytes", 60 * 2**20)
    await store.apps.delete(other.app.client_id)
    assert await keys_of(store, other.app.client_id) == []


async def commands_of(store: Store) -> dict[str, int]:
    """How often each command was called so far."""
    stats = await store.client.info("commandstats")
    return {name.removeprefix("cmdstat_"): row["calls"] for name, row in stats.items()}


@pytest.fixture
def valkey_store(valkey_engine: Engine, open_store: OpenStore) -> Store:
    """A store on Valkey, which counts its commands."""
    return open_store(valkey_engine.url)


@pytest.mark.spec("3.1.grace-begins")
async def test_revocation_takes_constant_writes_regardless_of_data(valkey_store: Store) -> None:
    store, cost = valkey_store, []
    for documents in (1, 1, 10_000):  # the first loads the scripts
        world = await World.make(store)
        keeper = await Keeper.make(world)
        await keeper.fill(documents, collections=1_000)
        before = await commands_of(store)
        await world.revoke_app()
        after = await commands_of(store)
        spent = {name: count - before.get(name, 0) for name, count in after.items() if name != "info"}
        cost.append({name: count for name, count in spent.items() if count})
        assert len(await ends(keeper)) == 1
        assert -1 not in await ends(keeper)
        assert (await keeper.recount()).documents == documents
    assert cost[1] == cost[2]
    assert cost[1]["pexpireat"] == 1 + 5  # the reserve of the store; the grant and the four keys
