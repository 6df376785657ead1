"""With answers that wait for replicas, a failover undoes no acknowledged durable write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from handlers.core.site import Site
from store import keys as spell
from store.crypto.keyring import Keys
from store.engine.connect import connect
from store.engine.replicas import Wait
from store.errors import StoreUnavailable, Unacknowledged
from store.oauth.tokens import TokenResponse
from store.wiring import Store
from tests.conftest import OpenStore
from tests.engine.test_cluster import COUNT, key_at
from tests.support.http.driver import Service
from tests.support.processes.clusters import Cluster, Node, Replicated
from tests.support.processes.primary_and_replica import Followed
from tests.support.store.credit_spender import DOLLAR
from tests.support.store.load import at_work, employ, until_each
from tests.support.store.lost_answers import store_on
from tests.support.store.world import World

ROUNDS = 6
PEOPLE = 6
ANSWERS = 15
"""Durable answers of a round before the primary is killed."""

pytestmark = [pytest.mark.gen_test(timeout=90), pytest.mark.slow]


@pytest.fixture
def followed() -> Iterator[Followed]:
    with Followed() as followed:
        yield followed


@pytest.fixture(scope="module")
def doubled() -> Iterator[Cluster]:
    """Three primaries, each with a replica."""
    with Cluster(replicas=1) as cluster:
        yield cluster


@dataclass
class Client:
    """One person's app, which rotates, pays and revokes, and knows what was acknowledged."""

    world: World
    tokens: TokenResponse
    rotated: int = 0
    paid: int = 0
    tried: int = 0
    revoked: list[str] = field(default_factory=list)

    @classmethod
    async def make(cls, store: Store) -> Client:
        world = await World.make(store)
        return cls(world, await world.tokens())

    async def work(self) -> None:
        """Works until the store is away, one call at a time, so only the last one may lack an answer."""
        while True:
            self.tokens = await self.world.refresh(self.tokens.refresh_token)
            self.rotated += 1
            self.tried += 1
            await self.world.store.credits.grant(self.world.user, DOLLAR, key=f"payment-{self.tried}")
            self.paid += 1
            other = await self.world.store.tokens.mint(self.world.user, self.world.app, ("profile",))
            await self.world.store.tokens.revoke(self.world.app, other.refresh_token)
            self.revoked.append(other.refresh_token)

    @property
    def answered(self) -> int:
        return self.rotated + self.paid + len(self.revoked)

    async def lost(self, store: Store) -> list[str]:
        """Acknowledged results that are missing."""
        client = store.client
        generation = await client.hget(self.world.rows(self.tokens.refresh_token)["family"], "generation")
        found = [] if generation is not None and int(generation) >= self.rotated else ["rotation"]
        account = await store.credits.show(self.world.user)
        if not self.paid <= account.paid // DOLLAR <= self.tried:
            found.append("payment")
        for token in self.revoked:
            if await client.hget(self.world.rows(token)["family"], "revoked") is None:
                found.append("revocation")
        return found


async def work_until_killed(followed: Followed, clients: list[Client]) -> None:
    """All at once; the primary is killed in the middle of it."""

    async def watch() -> None:
        while sum(client.answered for client in clients) < ANSWERS:
            await asyncio.sleep(0)
        followed.primary.kill()

    ends = await asyncio.gather(*(client.work() for client in clients), watch(), return_exceptions=True)
    assert all(isinstance(end, StoreUnavailable) for end in ends[:-1]), ends
    assert ends[-1] is None


@pytest.mark.trap(12)
async def test_acknowledged_rotations_payments_and_revocations_survive_the_primary(
    followed: Followed, keys: Keys
) -> None:
    for _ in range(ROUNDS):
        store = store_on(await connect(followed.url, socket_timeout=2.0), keys, Wait(1, 1.0))
        clients = [await Client.make(store) for _ in range(PEOPLE)]
        await work_until_killed(followed, clients)
        await store.close()
        followed.lose_primary()
        after = store_on(await connect(followed.url), keys)
        assert [await client.lost(after) for client in clients] == [[]] * PEOPLE
        await after.close()
        followed.restore()


async def test_without_waiting_a_lagging_replica_loses_acknowledged_writes(followed: Followed, keys: Keys) -> None:
    store = store_on(await connect(followed.url), keys)
    clients = [await Client.make(store) for _ in range(2)]
    followed.wait_for_replica()
    followed.cut()
    await work_until_killed(followed, clients)
    await store.close()
    followed.lose_primary()
    after = store_on(await connect(followed.url), keys)
    assert {kind for client in clients for kind in await client.lost(after)} >= {"rotation", "payment", "revocation"}
    await after.close()


async def test_with_waiting_a_lagging_replica_prevents_acknowledgement(followed: Followed, keys: Keys) -> None:
    store = store_on(await connect(followed.url), keys, Wait(1, 0.1))
    clients = [await Client.make(store) for _ in range(2)]
    followed.cut()
    ends = await asyncio.gather(*(client.work() for client in clients), return_exceptions=True)
    assert [type(end) for end in ends] == [Unacknowledged] * 2
    assert sum(client.answered for client in clients) == 0
    await store.close()


class TestBehindSentinels:
    @pytest.fixture
    def site(self, watched: Replicated, open_store: OpenStore, base_url: str) -> Site:
        watched.primary().empty()
        return Site(open_store(watched.url, timeout=1.0, wait=Wait(1, 0.5)), base_url)

    @pytest.mark.parametrize("how", ["by command", "killed"])
    async def test_rotations_continue_after_a_failover(
        self, service: Service, watched: Replicated, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        workers = await employ(service, monkeypatch, refresh_retry_seconds=60)
        old, new = watched.primary(), watched.replica()
        async with at_work(workers):
            await until_each(workers, 2)
            await asyncio.to_thread(watched.fail_over if how == "by command" else old.kill)
            await asyncio.to_thread(watched.wait_for_primary, new)
            if how == "by command":
                await asyncio.to_thread(watched.wait_for_departure, old)
            else:
                # Nobody is left to confirm anything until the former primary is back.
                assert any(worker.statuses[503] for worker in workers)
                await asyncio.to_thread(old.start)
            await asyncio.to_thread(watched.restore, old)
            await until_each(workers, 2)
        for worker in workers:
            row = spell.token(worker.user, worker.app.client_id, worker.token.id, 0)["family"]
            assert await service.store.client.hget(row, "generation") == str(worker.token.generation).encode()
            assert worker.token.generation == worker.rotated
            assert not worker.strange


def reads_on(replica: Node, key: str) -> Any:
    """A replica's own value; without READONLY a replica of a cluster redirects."""
    with replica.engine.client() as client:
        client.execute_command("READONLY")
        return client.get(key)


class TestInACluster:
    async def test_each_node_waits_for_its_own_replica(self, doubled: Cluster) -> None:
        client = await connect(doubled.url)
        waiting = client.acknowledged(Wait(1, 0.3))  # type: ignore[attr-defined]  # a cluster
        one, other = doubled.primaries[:2]
        replica = doubled.replica_of(one)
        for node in (one, other):
            assert await waiting.eval(COUNT, 1, key_at(doubled, node)) == 1
        assert reads_on(replica, key_at(doubled, one)) == b"1"
        replica.engine.pause()
        with pytest.raises(Unacknowledged, match="0 of 1"):
            await waiting.eval(COUNT, 1, key_at(doubled, one))
        assert await waiting.eval(COUNT, 1, key_at(doubled, other)) == 2
        replica.engine.resume()
        await client.aclose()

    async def test_a_redirected_call_waits_for_the_new_nodes_replica(self, doubled: Cluster) -> None:
        client: Any = await connect(doubled.url)
        waiting = client.acknowledged(Wait(1, 0.3))
        await client.ping()
        right, wrong = doubled.primaries[:2]
        key = key_at(doubled, right).replace(":n", ":referred")
        slot = client.keyslot(key)
        client.nodes_manager.slots_cache[slot] = [client.get_node(host="127.0.0.1", port=wrong.port)]
        assert await waiting.eval(COUNT, 1, key) == 1
        assert right.run("GET", key) == b"1"
        assert reads_on(doubled.replica_of(right), key) == b"1"
        await client.aclose()
