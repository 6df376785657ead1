"""Lost answers in a cluster: no writing script runs twice, even after redirections."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from dev.lab.ports import free_ports
from store import keys as spell
from store.crypto.keyring import Keys
from store.engine.connect import connect
from store.errors import StoreUnavailable
from tests.engine.test_store_faults import RUNNING, outcome_of
from tests.support.processes.clusters import Cluster
from tests.support.processes.engines import DroppingProxy
from tests.support.store.lost_answers import SCRIPTS, Armed, store_on
from tests.support.store.world import World

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.trap(32), pytest.mark.slow]


class Behind:
    """A cluster behind proxies, one at each node's announced port."""

    def __init__(self, cluster: Cluster, proxies: dict[int, DroppingProxy]) -> None:
        self.cluster = cluster
        self.proxies = proxies

    def scripts_run(self) -> int:
        """The number of scripts that the nodes executed since the last `forget`."""
        return sum(node.calls(name) for node in self.cluster.nodes for name in ("evalsha", "eval"))

    def forget(self) -> None:
        """Resets the counts."""
        for node in self.cluster.nodes:
            node.run("CONFIG", "RESETSTAT")


@pytest.fixture(scope="module")
def behind() -> Iterator[Behind]:
    ports = free_ports(3)
    with Cluster(announced=ports) as cluster, contextlib.ExitStack() as stack:
        proxies = {
            node.announced: stack.enter_context(DroppingProxy(node.engine, node.announced)) for node in cluster.nodes
        }
        for node in cluster.nodes:
            for script in SCRIPTS.values():
                node.run("SCRIPT", "LOAD", script.source)
        yield Behind(cluster, proxies)


class ArmedCluster(Armed):
    """Makes the proxy of the slot's owner drop the answer."""

    def __init__(self, client: Any, behind: Behind) -> None:
        super().__init__(client, next(iter(behind.proxies.values())))
        self._behind = behind
        self.sent = 0

    async def evalsha(self, sha: str, *words: Any) -> Any:
        self.sent += sha == self.sha
        node = self._client.get_node_from_key(words[1])  # type: ignore[attr-defined]  # a cluster
        self._proxy = self._behind.proxies[node.port]
        return await super().evalsha(sha, *words)


@contextlib.asynccontextmanager
async def world_behind(behind: Behind, keys: Keys) -> AsyncIterator[tuple[World, ArmedCluster]]:
    """A world on the cluster, with a client that loses answers on request."""
    armed: Any = ArmedCluster(await connect(behind.cluster.url), behind)
    store = store_on(armed, keys)
    try:
        yield await World.make(store), armed
    finally:
        await store.close()


@pytest.mark.parametrize("name", [name for name in RUNNING if not SCRIPTS[name].idempotent])
async def test_a_writing_script_with_a_lost_answer_is_not_resent(
    behind: Behind, keys: Keys, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world_behind(behind, keys) as (world, armed):
        # A sweep would find what the tests before have left in other shards.
        monkeypatch.setattr(spell, "SHARDS", (world.user[:3],))
        prepared = RUNNING[name]
        ready = await prepared.prepare(world)
        armed.arm(name)
        behind.forget()
        assert await outcome_of(ready) == "StoreUnavailable"
        assert armed.sent == 1
        assert behind.scripts_run() == prepared.scripts.index(name) + 1


async def test_a_redirected_writing_script_with_a_lost_answer_is_not_resent(behind: Behind, keys: Keys) -> None:
    async with world_behind(behind, keys) as (world, armed):
        tokens = await world.tokens()
        family = world.rows(tokens.refresh_token)["family"]
        client: Any = armed
        right = client.get_node_from_key(family)
        wrong = next(node for node in client.get_primaries() if node != right)
        client.nodes_manager.slots_cache[client.keyslot(family)] = [wrong]
        behind.proxies[right.port].drop_reply("EVALSHA")
        behind.forget()
        with pytest.raises(StoreUnavailable):
            await world.refresh(tokens.refresh_token)
        assert behind.scripts_run() == 1
        assert await client.hget(family, "generation") == b"1"
        assert await world.lives(tokens.access_token)


async def test_an_idempotent_script_is_resent_once(behind: Behind, keys: Keys) -> None:
    async with world_behind(behind, keys) as (world, armed):
        armed.arm("read_credentials")
        assert await world.store.people.credentials(world.email) is not None
        assert armed.sent == 2


async def test_a_plain_command_with_a_lost_answer_is_not_resent(behind: Behind, keys: Keys) -> None:
    async with world_behind(behind, keys) as (world, _):
        for proxy in behind.proxies.values():
            proxy.seen.clear()
            proxy.drop_reply("SET")
        with pytest.raises(StoreUnavailable):
            await world.person("new@example.com")
        assert sum(proxy.seen["SET"] for proxy in behind.proxies.values()) == 1
        for proxy in behind.proxies.values():
            proxy.pass_all()
