"""The cluster client: routing, resending, and the effect of one dead node on other calls."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.exceptions import MovedError

from dev.lab.ports import HOST, free_port, free_ports
from store.crypto.keyring import Keys
from store.engine import cluster as module
from store.engine.cluster import Cluster as Client
from store.engine.connect import check_store, connect
from store.errors import StartupError, StoreUnavailable, wrapped
from tests.apps.test_app_cache import until
from tests.engine.keys.test_check_store import certificate
from tests.support.processes.clusters import Cluster, Node
from tests.support.processes.engines import redis_server, valkey
from tests.support.processes.store_owners import ROOT
from tests.support.processes.whole_service import check_server_and_commands
from tests.support.store.lost_answers import store_on
from tests.support.store.world import World

RIGHTS = re.compile(r"user latchkey on >\S+ (.*)")
COUNT = "return redis.call('INCR', KEYS[1])"

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.fixture
def cluster(any_cluster: Cluster) -> Cluster:
    """An empty cluster."""
    any_cluster.empty()
    return any_cluster


@pytest.fixture(scope="module")
def lone() -> Iterator[Cluster]:
    """Three primaries that keep serving while another is away, for tests that take nodes away."""
    with Cluster(options=("--cluster-require-full-coverage", "no")) as cluster:
        yield cluster


@asynccontextmanager
async def client_of(cluster: Cluster, timeout: float = 5.0) -> AsyncIterator[Client]:
    client: Any = await connect(cluster.url, socket_timeout=timeout)
    try:
        await client.ping()
        yield client
    finally:
        await client.aclose()


def key_at(cluster: Cluster, node: Node) -> str:
    """A key whose slot the node owns."""
    return next(key for key in (f"{{{n:03x}}}:n" for n in range(4096)) if cluster.owner(key) is node)


def believed_owner(client: RedisCluster, key: str) -> ClusterNode:
    """The node that the client sends a key's commands to."""
    found = client.get_node_from_key(key)
    assert found is not None
    return found


async def test_a_call_goes_to_the_owner_of_its_slot(cluster: Cluster) -> None:
    async with client_of(cluster) as client:
        for node in cluster.primaries:
            key = key_at(cluster, node)
            assert await client.eval(COUNT, 1, key) == 1
            assert await client.get(key) == b"1"
            assert node.run("GET", key) == b"1"
        assert {*client._pipelined} == {f"{HOST}:{node.port}" for node in cluster.primaries}


async def test_a_misdirected_call_runs_once_on_the_right_node(cluster: Cluster) -> None:
    async with client_of(cluster) as client:
        right, wrong = cluster.primaries[:2]
        key = key_at(cluster, right)
        slot = client.keyslot(key)
        believed = client.get_node(host=HOST, port=wrong.port)
        assert believed is not None
        client.nodes_manager.slots_cache[slot] = [believed]
        assert await client.eval(COUNT, 1, key) == 1
        assert believed_owner(client, key).port == right.port, "learnt from the answer"
        client.nodes_manager.slots_cache[slot] = [believed]
        assert await client.get(key) == b"1"


async def test_endless_redirections_between_nodes_count_as_unavailable(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0, 0.01))
    async with client_of(cluster) as client:
        sent = []

        class Referring:
            def call(self, *words: Any) -> asyncio.Future[Any]:
                sent.append(words)
                answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                answer.set_exception(MovedError(f"1 {HOST}:{cluster.primaries[len(sent) % 3].port}"))
                return answer

        monkeypatch.setattr(client, "_pipelined_to", lambda node: Referring())
        with pytest.raises(StoreUnavailable), wrapped():
            await client.eval(COUNT, 1, "{x}")
        assert len(sent) == 4


async def test_during_a_slot_move_commands_follow_and_scripts_wait(cluster: Cluster) -> None:
    source, target = cluster.primaries[:2]
    first = key_at(cluster, source)
    second = first + "2"
    async with client_of(cluster) as client:
        await client.mset({first: "1", second: "5"})
        moving = cluster.move_slot(first, target, batch=1)
        next(moving)
        assert await client.eval(COUNT, 1, first) == 2, "what it names is there still"
        next(moving)
        left = source.run("CLUSTER", "GETKEYSINSLOT", client.keyslot(first), 2)
        gone = next(key for key in (first, second) if key.encode() not in left)
        # Many at once: each ASKING must go before its own command.
        assert len(set(await asyncio.gather(*(client.get(gone) for _ in range(50))))) == 1
        waiting = [asyncio.ensure_future(client.eval(COUNT, 1, gone)) for _ in range(3)]
        waiting.append(asyncio.ensure_future(client.eval("return #KEYS", 2, first, second)))
        await asyncio.sleep(0.05)
        assert not any(call.done() for call in waiting)
        assert [*moving] == [1]
        before = 2 if gone == first else 5
        assert await asyncio.gather(*waiting) == [before + 1, before + 2, before + 3, 2]
        assert believed_owner(client, first).port == target.port
        for _ in cluster.move_slot(first, source):
            pass


async def test_a_command_follows_to_a_node_without_slots_and_closes_its_connection(
    lone: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.01)
    key = key_at(lone, lone.primaries[0])
    async with client_of(lone) as client:
        await client.set(key, "1")
        new = lone.add_node()
        name = f"{HOST}:{new.port}"
        moving = lone.move_slot(key, new)
        next(moving)
        next(moving)
        assert client.get_node(node_name=name) is None
        assert await client.get(key) == b"1"
        assert [*moving] == []
        assert await client.eval(COUNT, 1, key) == 2
        assert believed_owner(client, key).name == name
        for _ in lone.move_slot(key, lone.primaries[0]):
            pass
        assert await client.eval(COUNT, 1, key) == 3
        await until(lambda: name not in client._pipelined)


async def test_only_the_slot_without_an_owner_is_unavailable(lone: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.01)
    node, other = lone.primaries[:2]
    key, served = key_at(lone, node), key_at(lone, other)
    async with client_of(lone) as client:
        slot = client.keyslot(key)

        async def check_unavailable() -> None:
            for call in (client.eval(COUNT, 1, key), client.get(key)):
                with pytest.raises(StoreUnavailable), wrapped():
                    await call

        for each in lone.running():
            each.run("CLUSTER", "DELSLOTS", slot)
        await check_unavailable()  # the node says so
        await until(lambda: slot not in client.nodes_manager.slots_cache)
        await check_unavailable()  # the table does
        assert await client.eval(COUNT, 1, served) == 1
        node.run("CLUSTER", "ADDSLOTS", slot)
        client.refresh()
        await until(lambda: slot in client.nodes_manager.slots_cache)
        assert await client.eval(COUNT, 1, key) > 0


async def check_only_lost(client: Client, lost_key: str, served: list[str], *, at_once: bool) -> None:
    """Calls to a dead node fail while others are answered; `at_once` says that those do not wait."""
    lost = asyncio.ensure_future(client.eval(COUNT, 1, lost_key))
    calls = [call for key in served for call in (client.eval(COUNT, 1, key), client.get(key))]
    others = asyncio.ensure_future(asyncio.wait_for(asyncio.gather(*calls), 10))
    await asyncio.wait({lost, others}, return_when=asyncio.FIRST_COMPLETED)
    assert others.done() or not at_once
    await others
    with pytest.raises(StoreUnavailable), wrapped():
        await lost


async def test_a_hanging_node_fails_only_calls_to_its_slots(lone: Cluster) -> None:
    node = lone.primaries[0]
    lost_key, *served = [key_at(lone, each) for each in lone.primaries]
    async with client_of(lone, timeout=1.0) as client:
        for key in (lost_key, *served):
            await client.eval(COUNT, 1, key)
        node.engine.pause()
        for _ in range(2):  # with a connection that was open, and with none
            await check_only_lost(client, lost_key, served, at_once=True)
        assert await client.ping()
        node.engine.resume()
        await asyncio.to_thread(lone.settle)
        assert await client.eval(COUNT, 1, lost_key) > 0


async def test_a_dead_node_fails_only_calls_to_its_slots(
    lone: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "REFRESH_SECONDS", 60.0)
    node, *others = lone.primaries
    lost_key, *served = [key_at(lone, each) for each in lone.primaries]
    async with client_of(lone) as client:
        for key in (lost_key, *served):
            await client.eval(COUNT, 1, key)
        for each in others:
            each.run("CONFIG", "RESETSTAT")
        node.engine.kill()
        for _ in range(50):
            await check_only_lost(client, lost_key, served, at_once=False)
        assert await client.ping()
        # A background task read the slots again, once and not for every failed call.
        await until(lambda: client.nodes_manager._epoch == 2)
        stats = [each.run("INFO", "commandstats").decode() for each in others]
        assert sum(int(n) for text in stats for n in re.findall(r"cmdstat_cluster\|slots:calls=(\d+)", text)) == 1
        # A server starts all the same.
        await check(lone.url)
        assert f"{HOST}:{node.port} cannot be reached" in caplog.text
        node.engine.start()
        await asyncio.to_thread(lone.settle)
        assert await client.eval(COUNT, 1, lost_key) == 1


async def test_if_all_known_nodes_are_gone_the_configured_ones_are_asked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.01)
    async with client_of(cluster) as client:
        known = client.nodes_manager.startup_nodes
        for node in known.values():
            await node.disconnect()
        client.nodes_manager.startup_nodes = {"gone": ClusterNode(HOST, free_port())}
        client.refresh()
        await until(lambda: not client.nodes_manager.startup_nodes.keys() - known.keys())
        assert client.nodes_manager.startup_nodes.keys() == client.nodes_manager.nodes_cache.keys()


async def check(url: str) -> None:
    client: Any = await connect(url, socket_timeout=2.0)
    try:
        await check_store(client, url)
    finally:
        await client.aclose()


async def test_a_node_that_may_evict_is_refused_by_name(cluster: Cluster) -> None:
    await check(cluster.url)
    node = cluster.primaries[2]
    node.run("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StartupError, match=rf"{HOST}:{node.port}\) has maxmemory-policy allkeys-lru"):
            await check(cluster.url)
    finally:
        node.run("CONFIG", "SET", "maxmemory-policy", "noeviction")


async def test_an_unreachable_cluster_is_refused() -> None:
    with pytest.raises(StartupError, match="cannot be reached") as refused:
        await check(f"redis+cluster://u:hunter2@{HOST}:{free_port()}")
    assert "hunter2" not in str(refused.value)


async def test_a_server_that_is_no_cluster_is_refused() -> None:
    port = free_port()
    with valkey(options=("--port", str(port))), pytest.raises(StartupError, match="Cluster mode is not enabled"):
        await check(f"redis+cluster://{HOST}:{port}")


@pytest.mark.trap(24)
async def test_name_and_password_are_used_for_every_node(cluster: Cluster, keys: Keys) -> None:
    rights = RIGHTS.search((ROOT / "docs" / "security.md").read_text())
    assert rights is not None
    for node in cluster.primaries:
        node.run("ACL", "SETUSER", "app", "reset", "on", ">pw", *rights[1].split(), "+cluster|slots")
    hosts = cluster.url.partition("://")[2]
    await check(f"redis+cluster://app:pw@{hosts}")
    store = store_on(await connect(f"redis+cluster://app:pw@{hosts}"), keys)
    async with store.announcements.following():
        world = await World.make(store)
        assert await world.lives((await world.tokens()).access_token)
        assert [person.email async for person in store.operator.people()] == [world.email]
        assert await asyncio.to_thread(cluster.subscribed_at)
    await store.close()
    with pytest.raises(StartupError, match="cannot be reached") as refused:
        await check(f"redis+cluster://app:hunter2@{hosts}")
    assert "hunter2" not in str(refused.value)


async def test_tls_is_verified_at_every_node(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, HOST)
    port, bus = free_ports(2)
    words = f"--tls-port {port} --tls-cert-file {cert} --tls-key-file {key} --tls-ca-cert-file {cert}"
    words += f" --tls-auth-clients no --tls-cluster yes --cluster-enabled yes --cluster-port {bus}"
    with redis_server(options=words.split()) as engine:
        with engine.client() as admin:
            admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        await check(f"rediss+cluster://{HOST}:{port}?ssl_ca_certs={cert}")
        for url in (f"rediss+cluster://{HOST}:{port}", f"redis+cluster://{HOST}:{port}"):
            with pytest.raises(StartupError, match="cannot be reached"):
                await check(url)


@pytest.mark.slow
async def test_the_server_and_its_commands_work_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    await check_server_and_commands(cluster.url, tmp_path)
