"""A primary goes away, planned or not, while apps work: its replica takes over without restarts.

Asynchronous replication may lose writes, and WAIT shows which. A write that was acknowledged before the replica
confirmed that it has everything must survive the failover, and so must each write after the replica took over. Only
the writes between may be missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from handlers.core.site import Site
from store import keys as spell
from store.apps.registration import Registration
from store.crypto.keyring import Keys
from store.engine.connect import connect
from tests.apps.test_app_cache import until
from tests.conftest import OpenStore
from tests.support.http.driver import CALLBACK, Service
from tests.support.processes.clusters import Cluster, Node
from tests.support.store.load import SHARD, acknowledged, at_work, check_survival, employ, until_each
from tests.support.store.lost_answers import store_on

KEY = spell.shard_users(SHARD)

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]


@pytest.fixture(scope="module")
def doubled() -> Iterator[Cluster]:
    """Three primaries, each with a replica."""
    with Cluster(replicas=1, node_timeout=1000) as cluster:
        yield cluster


@pytest.fixture
def site(doubled: Cluster, open_store: OpenStore, base_url: str) -> Site:
    doubled.empty()
    return Site(open_store(doubled.url, timeout=1.0), base_url)


@pytest.fixture
def ends(doubled: Cluster) -> tuple[Node, Node]:
    """The node that owns the slot of the workers' people, and its replica, which has caught up."""
    old = doubled.owner(KEY)
    return old, doubled.replica_of(old)


async def test_a_planned_failover_loses_nothing_and_does_nothing_twice(
    service: Service, doubled: Cluster, ends: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = await employ(service, monkeypatch)
    _, new = ends
    async with at_work(workers):
        await until_each(workers, 2)
        await asyncio.to_thread(new.run, "CLUSTER", "FAILOVER")
        await asyncio.to_thread(doubled.wait_for_owner, KEY, new)
        await until_each(workers, 2)
    for worker in workers:
        await worker.check_exactly_once()


@pytest.mark.parametrize("how", ["killed", "frozen"])
async def test_a_replica_serves_after_its_primary_is_gone(
    service: Service, doubled: Cluster, ends: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    # A client that lost the answer to a rotation may repeat it.
    workers = await employ(service, monkeypatch, refresh_retry_seconds=60)
    old, new = ends
    async with at_work(workers):
        await until_each(workers, 2)
        safe = acknowledged(workers)
        await asyncio.to_thread(old.confirm, KEY)
        await until_each(workers, 1)
        await asyncio.to_thread(old.engine.kill if how == "killed" else old.engine.pause)
        await asyncio.to_thread(doubled.wait_for_owner, KEY, new, [node for node in doubled.nodes if node is not old])
        open_to_loss = acknowledged(workers)
        await until_each(workers, 2)
        if how == "killed":
            old.engine.start()
        else:
            old.engine.resume()
        await asyncio.to_thread(doubled.wait_for_owner, KEY, new)
        await until_each(workers, 1)
    await check_survival(workers, safe, open_to_loss)
    assert any(worker.statuses[503] for worker in workers)


@pytest.mark.trap(35)
async def test_app_changes_are_announced_even_after_a_node_is_killed(doubled: Cluster, keys: Keys) -> None:
    doubled.empty()
    one, other = [store_on(await connect(doubled.url, socket_timeout=1.0), keys) for _ in range(2)]
    async with other.announcements.following():
        listening = await asyncio.to_thread(doubled.subscribed_at)
        # The registration lies elsewhere, so that nothing but the subscription has to move.
        name = next(f"app-{n}" for n in range(1000) if doubled.owner(spell.app(f"app-{n}")) is not listening)
        await one.apps.create(Registration(name, "An App", (CALLBACK,), ("profile",)))

        async def is_announced() -> None:
            assert (await other.apps.find(name)) is not None
            await one.apps.update(name, homepage="https://app.example")
            await until(lambda: name not in other.apps.cache.kept)

        await is_announced()
        listening.engine.kill()
        assert await asyncio.to_thread(doubled.subscribed_at) is not listening
        await asyncio.to_thread(doubled.wait_without, listening)
        await is_announced()
    listening.engine.start()
    for store in (one, other):
        await store.close()
    await asyncio.to_thread(doubled.settle)
