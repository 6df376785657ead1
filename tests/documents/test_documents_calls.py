"""Every call about hosted documents: its token, its scope, its window and its one script. SPEC 4.6, 2.4."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from store import keys
from store.documents.documents import Conditions
from store.errors import StoreUnavailable
from store.lifetimes import DATA_LIST, DATA_READ, DATA_WRITE
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.processes.engines import DroppingProxy, Engine, FakeClock
from tests.support.store.document_app import GROUPS, Keeper, a_keeper
from tests.support.store.world import World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=30)


Call = Callable[[Keeper], Awaitable[Any]]


CALLS: dict[str, Call] = {
    "get": lambda keeper: keeper.get("notes/n1"),
    "put": lambda keeper: keeper.put("notes/n1", b"2"),
    "put new": lambda keeper: keeper.put("notes/n2", b"2"),
    "delete": lambda keeper: keeper.delete("notes/n1"),
    "list": lambda keeper: keeper.page("notes"),
    "usage": lambda keeper: keeper.usage(),
}


async def disabled(world: World, _: Keeper) -> None:
    await world.store.operator.set_status(world.email, "disabled")


async def disconnected(world: World, _: Keeper) -> None:
    await world.revoke_app()


async def reconnected(world: World, _: Keeper) -> None:
    await world.revoke_app()
    await Keeper.make(world)


async def row_gone(world: World, keeper: Keeper) -> None:
    caller = keeper.caller
    await world.store.client.delete(keys.token(caller.user, caller.client, caller.family, caller.generation)["access"])


async def deleted(world: World, _: Keeper) -> None:
    await world.store.operator.delete(world.email)


@pytest.mark.spec("5.4")
@pytest.mark.parametrize("happens", [disabled, disconnected, reconnected, row_gone, deleted])
async def test_a_dead_token_changes_nothing_and_counts_nowhere(
    store: Store, happens: Callable[[World, Keeper], Awaitable[None]]
) -> None:
    world = await World.make(store)
    keeper = await Keeper.make(world)
    await keeper.put("notes/n1", b"1")
    await happens(world, keeper)
    before = await keeper.dump()
    for call in CALLS.values():
        assert await refusal_of(call(keeper)) == "invalid_token"
        limits = [keys.limit(world.user, group.name, world.app.client_id) for group in GROUPS]
        assert await store.client.exists(*limits) == 0
    assert await keeper.dump() == before


@pytest.mark.spec("2.4")
@pytest.mark.spec("7")
@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        pytest.param(("data:read",), {"get", "list", "usage"}, id="data:read"),
        pytest.param(("data:write",), {"put", "put new", "delete", "usage"}, id="data:write"),
        pytest.param(("profile",), set(), id="neither"),
    ],
)
@pytest.mark.parametrize("how", ["token", "grant"])
async def test_each_call_needs_its_scope_in_token_and_grant(
    store: Store, scopes: tuple[str, ...], allowed: set[str], how: str
) -> None:
    world = await World.make(store)
    whole = await Keeper.make(world)
    await whole.put("notes/n1", b"1")
    keeper = await Keeper.make(world, scopes=scopes)
    if how == "grant":
        keeper = whole  # its token carries all; the person's later decision withdrew some
        await world.code(ticked=scopes)
    for name, call in CALLS.items():
        before = await keeper.dump()
        refusal = await refusal_of(call(keeper))
        assert refusal == (None if name in allowed else "insufficient_scope")
        if refusal:
            assert await keeper.dump() == before
        await Keeper.make(world)
        await whole.put("notes/n1", b"1")
        if how == "grant":
            await world.code(ticked=scopes)


async def test_pairs_of_app_and_person_are_separate(store: Store) -> None:
    ada, bob = await World.make(store), await World.make(store)
    first, other = await Keeper.make(ada), await Keeper.make(ada, bob.app)
    second = await Keeper.make(bob, ada.app)
    for number, keeper in enumerate((first, other, second)):
        await keeper.put("notes/n1", b"%d" % number)
        await keeper.put(f"notes/own{number}", b"1")
    for number, keeper in enumerate((first, other, second)):
        assert (await keeper.get("notes/n1"))[1] == b"%d" % number
        assert await keeper.walk("notes") == ["n1", f"own{number}"]
        assert (await keeper.recount()).documents == 2
    await first.delete("notes/n1")
    assert await refusal_of(first.get("notes/n1")) == "not_found"
    assert (await other.get("notes/n1"))[1] == b"1"
    assert (await second.get("notes/n1"))[1] == b"2"


@pytest.mark.spec("8.1")
async def test_a_full_window_refuses_before_any_change(clock: FakeClock, memory_store: Store) -> None:
    clock.stop()
    store, keeper = memory_store, await a_keeper(memory_store)
    caller, none = keeper.caller, Conditions()
    await keeper.put("notes/n1", b"1")
    calls: list[tuple[int, Callable[[], Awaitable[Any]]]] = [
        (DATA_READ.limit, lambda: store.documents.read(caller, "data:read", "notes", "n1")),
        (DATA_WRITE.limit - 1, lambda: store.documents.write(caller, "data:write", "notes", "n1", b"2", none)),
        (DATA_LIST.limit, lambda: store.documents.list(caller, "data:read", "notes")),
    ]
    for limit, call in calls:
        for _ in range(limit):
            await call()
        before = await keeper.dump()
        assert await refusal_of(call()) == "rate_limited"
        assert await keeper.dump() == before
    assert await refusal_of(store.documents.delete(caller, "data:write", "notes", "n1", none)) == "rate_limited"
    assert await refusal_of(store.documents.usage(caller, "data:read")) == "rate_limited"


@pytest.fixture
def proxied(valkey_engine: Engine, open_store: OpenStore) -> Iterator[tuple[Store, DroppingProxy]]:
    """A store behind a proxy that counts what is sent and loses replies."""
    with DroppingProxy(valkey_engine) as proxy:
        yield open_store(proxy.url), proxy


@pytest.mark.parametrize("name", list(CALLS))
async def test_each_call_is_one_script(proxied: tuple[Store, DroppingProxy], name: str) -> None:
    store, proxy = proxied
    keeper = await Keeper.make(await World.make(store))
    for turn in ("loads the scripts", "is looked at"):
        await keeper.put("notes/n1")
        before = proxy.seen.copy()
        assert await refusal_of(CALLS[name](keeper)) is None, turn
    assert proxy.seen - before == {"EVALSHA": 1, "DEL": 1}  # DEL is the test's own: it empties the windows


@pytest.mark.trap(32)
@pytest.mark.parametrize("lost", ["request", "reply"])
@pytest.mark.parametrize("name", ["put", "put new", "delete"])
async def test_a_write_with_a_lost_answer_is_not_resent(
    proxied: tuple[Store, DroppingProxy], lost: str, name: str
) -> None:
    store, proxy = proxied
    client: Any = store.client
    keeper = await Keeper.make(await World.make(store))
    await keeper.put("notes/n1")
    await refusal_of(keeper.delete("notes/absent"))
    before = await client.hmget(keeper.keys()["usage"], "sequence", "documents")
    sent = proxy.seen["EVALSHA"]
    (proxy.drop_request if lost == "request" else proxy.drop_reply)("EVALSHA")
    with pytest.raises(StoreUnavailable):
        await CALLS[name](keeper)
    assert proxy.seen["EVALSHA"] - sent == (0 if lost == "request" else 1)
    after = await client.hmget(keeper.keys()["usage"], "sequence", "documents")
    written, more = {"put": (True, 0), "put new": (True, 1), "delete": (False, -1)}[name]
    assert (after[0] != before[0]) == (written and lost == "reply")
    assert int(after[1]) - int(before[1]) == (more if lost == "reply" else 0)
    await keeper.recount()
