"""A slot moves to another node while apps work: nothing is lost or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from redis.crc import key_slot

from dev.lab.ports import HOST
from handlers.core.site import Site
from store import keys as spell
from store.crypto.keyring import Keys
from store.engine import cluster as module
from store.engine.connect import connect
from tests.conftest import OpenStore
from tests.engine.test_store_faults import outcome_of
from tests.support.calls.every import CALLS
from tests.support.calls.prepared import Call
from tests.support.http.driver import Service
from tests.support.processes.clusters import Cluster, Node
from tests.support.store.load import SHARD, at_work, employ, until_each
from tests.support.store.lost_answers import store_on
from tests.support.store.world import World

pytestmark = pytest.mark.slow

KEY = spell.shard_users(SHARD)


@pytest.fixture
def site(any_cluster: Cluster, open_store: OpenStore, base_url: str) -> Site:
    any_cluster.empty()
    return Site(open_store(any_cluster.url), base_url)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize(
    ("pauses", "refused"),
    [
        pytest.param(module.PAUSES, False, id="a call that waits long enough succeeds"),
        pytest.param((0.0, 0.02), True, id="a call that waits too short gets a 503"),
    ],
)
async def test_resharding_under_load_loses_nothing_and_does_nothing_twice(
    service: Service,
    any_cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    pauses: tuple[float, ...],
    refused: bool,
) -> None:
    monkeypatch.setattr(module, "PAUSES", pauses)
    workers = await employ(service, monkeypatch)
    home, other, _ = moving(any_cluster, KEY)
    async with at_work(workers):
        for target in (other, home):
            await until_each(workers, 1)
            steps = any_cluster.move_slot(KEY, target, batch=3)
            while await asyncio.to_thread(next, steps, None) is not None:
                # A slot that is open for longer than anybody waits.
                while refused and not all(worker.statuses[503] for worker in workers):
                    await asyncio.sleep(0.01)
            assert await asyncio.to_thread(any_cluster.owner, KEY) is target
        await until_each(workers, 1)
    for worker in workers:
        await worker.check_exactly_once()
        assert bool(worker.statuses[503]) is refused


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("any_cluster", ["cluster"], indirect=True)  # Redis has no such command
async def test_an_atomic_slot_move_under_load_loses_nothing(
    service: Service, any_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = await employ(service, monkeypatch)
    home, other, _ = moving(any_cluster, KEY)
    async with at_work(workers):
        for target in (other, home):
            await until_each(workers, 1)
            await asyncio.to_thread(any_cluster.migrate_slot, KEY, target)
        await until_each(workers, 1)
    for worker in workers:
        await worker.check_exactly_once()


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("steps", [pytest.param(1, id="open"), pytest.param(3, id="under way")])
async def test_a_call_refused_by_a_moving_slot_works_afterwards(
    any_cluster: Cluster, keys: Keys, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """So nothing is done by half: a script that meets a missing key would end in the middle."""
    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0))
    any_cluster.empty()
    store = store_on(await connect(any_cluster.url), keys)
    ready, shards, of_addresses = {}, set(), set()
    for name, prepared in CALLS.items():
        if name in APART:
            continue
        world = await World.make(store)
        ready[name] = await prepared.prepare(world)
        shards.add(world.user[:3])
        of_addresses.add(key_slot(spell.email(world.email).encode()))
    # All to one node: nodes that give and take at the same time can come to disagree about a slot.
    target = any_cluster.primaries[steps % 3]
    # An account ends in two slots, its own and that of its address. By chance, somebody's shard is in the latter.
    keys_of_shards = [key for key in map(spell.shard_users, shards) if key_slot(key.encode()) not in of_addresses]
    moves = [any_cluster.move_slot(key, target, 3) for key in keys_of_shards if any_cluster.owner(key) is not target]
    for _ in range(steps):
        for move in moves:
            next(move, None)
    outcomes = {name: await outcome_of(call) for name, call in ready.items()}
    assert set(outcomes.values()) == {"success", "StoreUnavailable"}
    for move in moves:
        assert sum(move) >= 0
    # That one last: it finishes the deletions that others began, and their repeats would find nothing to delete.
    refused = sorted(
        (name for name, outcome in outcomes.items() if outcome != "success"), key="apps.finish_deletions".__eq__
    )
    assert {name: await lasting_outcome(ready[name]) for name in refused} == dict.fromkeys(refused, "success")
    await store.close()


# A call that ends between its scripts is repeated with another outcome where
# - an address, an identity or the id of an outside directory is reserved for 60 s for a person who was not written; a
#   client id is reserved until it is deleted, a device's request for 60 s
# - the main part is done already, so that the repeat finds nothing to do
# - a lease of an app's day is lost: the limit refuses early, and is never exceeded
# The walk seals what is there under a key of its own, which no other call here has. The check walks all slots.
APART = (
    *("people.create", "provisioning.create", "upstream.admit", "apps.create", "device_requests.decided"),
    *("people_acts.cancel_deletion", "people_acts.delete", "people_acts.unlink", "address_changes.change"),
    *("teams.accept", "teams.remove", "teams.take", "upstream.link", "upstream.unlink", "calls.hold"),
    *("reencryption.run", "fsck.run"),
)


async def lasting_outcome(call: Call) -> str:
    """The first outcome other than "the store is unavailable"."""
    for _ in range(50):
        outcome = await outcome_of(call)
        if outcome != "StoreUnavailable":
            break
        await asyncio.sleep(0.1)
    return outcome


def moving(cluster: Cluster, key: str) -> tuple[Node, Node, Iterator[int]]:
    """The owner of a key's slot, its target, and the move."""
    source = cluster.owner(key)
    target = next(node for node in cluster.primaries if node is not source)
    return source, target, cluster.move_slot(key, target, batch=3)


@pytest.mark.gen_test(timeout=60)
async def test_a_grant_that_has_not_moved_yet_does_not_count_as_gone(
    any_cluster: Cluster, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list drops what has no grant. Where the slot goes to, the script would find none, and no error either."""
    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0))
    any_cluster.empty()
    store = store_on(await connect(any_cluster.url), keys)
    world = await World.make(store)
    await world.tokens()
    later, _ = await world.register("later")
    await world.tokens(app=later)
    shard = spell.shard_users(world.user[:3])
    source, target, move = moving(any_cluster, shard)
    next(move)
    keys_here = source.run("CLUSTER", "GETKEYSINSLOT", key_slot(shard.encode()), 100)
    stays = spell.grant(world.user, later.client_id).encode()
    source.run("MIGRATE", HOST, target.port, "", 0, 5000, "KEYS", *(key for key in keys_here if key != stays))
    assert await outcome_of(lambda: store.grants.list(world.session)) == "StoreUnavailable"
    assert [*move] == [1]
    grants = (await store.grants.list(world.session)).grants
    assert {grant.client for grant in grants} == {world.app.client_id, "later"}
    await store.close()
