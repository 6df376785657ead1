"""The person in an event: the user id appears only for an app that was ever granted `profile`."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys
from store.lifetimes import GRACE
from store.wiring import Store
from tests.support.calls.webhooks import wanted
from tests.support.processes.engines import FakeClock
from tests.support.store.document_app import Keeper
from tests.support.store.many_documents import rotated
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test(timeout=60)

DATA = ("data:read", "data:write")
KNOWN = ("profile", *DATA)


async def subs(world: World) -> list[str]:
    """The persons named by the app's events."""
    await world.store.outbox.relay_shards({world.user[:3]}, wanted)
    return [row.sub for row in await world.store.deliveries.list(world.app.client_id, most=100)]


@pytest.mark.parametrize(
    ("granted", "known"),
    [
        pytest.param([DATA], False, id="never profile"),
        pytest.param([KNOWN], True, id="profile"),
        pytest.param([DATA, KNOWN], True, id="profile later"),
        pytest.param([KNOWN, DATA], True, id="profile once"),
    ],
)
async def test_an_event_names_the_person_if_profile_was_ever_granted(
    store: Store, granted: list[tuple[str, ...]], known: bool
) -> None:
    world = await World.make(store)
    for scopes in granted:
        await world.tokens(scopes)
    await world.revoke_app()
    await store.people.delete(world.user)
    alias = await store.pairwise.for_app(world.app.client_id, world.user)
    assert await subs(world) == [world.user if known else alias] * 2
    assert world.user not in alias


async def test_pairwise_ids_are_stable_and_differ_by_app(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await World.make(memory_store)
    monkeypatch.setattr(keys, "SHARDS", (world.user[:3],))
    keeper = await Keeper.make(world, scopes=DATA)
    await keeper.put("notes/n1")
    await world.revoke_app()
    (first,) = await subs(world)
    clock.advance(GRACE / 1000 + 1)
    await memory_store.outbox.sweep(wanted)
    assert await subs(world) == [first], "the documents ended, 30 days on"
    pairwise = rotated(memory_store, 88).pairwise
    assert await pairwise.for_app(world.app.client_id, world.user) == first, "whichever key is in front"
    assert await pairwise.for_app("another-app", world.user) != first
    assert await pairwise.for_app(world.app.client_id, "0" * 32) != first


@pytest.mark.parametrize(
    ("granted", "known"), [pytest.param(DATA, False, id="never profile"), pytest.param(KNOWN, True, id="profile")]
)
async def test_opening_the_apps_page_before_the_sweep_changes_no_id(
    memory_store: Store, clock: FakeClock, granted: tuple[str, ...], known: bool
) -> None:
    world = await World.make(memory_store)
    keeper = await Keeper.make(world, scopes=granted)
    await keeper.put("notes/n1")
    await world.revoke_app()
    (first,) = await subs(world)
    clock.advance(GRACE / 1000 + 1)
    world.session = await world.sign_in()
    assert (await memory_store.grants.list(world.session)).grants == []
    await memory_store.outbox.sweep(wanted, [world.user[:3]])
    assert await subs(world) == [first], "the documents ended, 30 days on"
    assert (first == world.user) == known
    row = await memory_store.client.hgetall(keys.person(world.user)["user"])
    assert keys.app_field(world.app.client_id).encode() not in row


@pytest.mark.parametrize(
    ("said", "known"),
    [
        pytest.param({}, True, id="by a release before"),
        pytest.param({"entered": "1"}, True, id="of an app that knows"),
        pytest.param({"entered": "0"}, False, id="of an app that does not"),
        pytest.param({"entered": ""}, False, id="of an app that the row does not name"),
    ],
)
async def test_an_outbox_entry_names_the_person_only_if_it_says_so(
    memory_store: Store, said: dict[str, str], known: bool
) -> None:
    world = await World.make(memory_store)
    event = {"type": "data.deleted", "client": world.app.client_id, "member": keys.member(world.user)}
    entry: Any = {**event, "reason": "grace_over", "at": "1", **said}
    await memory_store.client.xadd(keys.outbox(world.user), entry)
    assert (await subs(world) == [world.user]) == known


async def test_an_app_of_the_previous_release_keeps_the_persons_id(memory_store: Store) -> None:
    world = await World.make(memory_store)
    await world.tokens(DATA)
    await memory_store.client.hset(keys.person(world.user)["user"], keys.app_field(world.app.client_id), "1")
    await world.tokens(DATA)
    await world.revoke_app()
    assert await subs(world) == [world.user]
