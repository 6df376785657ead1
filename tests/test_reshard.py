"""A slot moves to another node while its people's apps work: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio

import pytest

from handlers.site import Site
from store import cluster as module
from store import keys as spell
from tests.clusters import Cluster
from tests.conftest import OpenStore
from tests.driver import Service
from tests.load import SHARD, at_work, employ, until_each

KEY = spell.shard_users(SHARD)


@pytest.fixture
def site(any_cluster: Cluster, open_store: OpenStore, base_url: str) -> Site:
    any_cluster.empty()
    return Site(open_store(any_cluster.url), base_url)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize(
    ("pauses", "refused"),
    [
        pytest.param(module.PAUSES, False, id="who waits for the slot hears nothing of it"),
        pytest.param((0.0, 0.02), True, id="who waits too short is told to come back"),
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
    home = any_cluster.owner(KEY)
    other = next(node for node in any_cluster.primaries if node is not home)
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
