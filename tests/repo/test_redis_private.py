"""What each name in `store/engine/redis_private.py` relies on, tested against the installed redis-py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection
from redis.client import EMPTY_RESPONSE
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, NoScriptError, ReadOnlyError, RedisClusterException, ResponseError

from store.engine import redis_private as private
from store.engine.redis_private import NodeCommands
from tests.support.processes.clusters import Cluster
from tests.support.processes.engines import DroppingProxy, Engine

pytestmark = pytest.mark.gen_test


@asynccontextmanager
async def connection_to(url: str) -> AsyncIterator[tuple[BlockingConnectionPool, AbstractConnection]]:
    """A pool, and a connection taken from it."""
    pool = BlockingConnectionPool.from_url(url, protocol=2)
    connection = await pool.get_connection()
    try:
        yield pool, connection
    finally:
        await pool.release(connection)
        await pool.aclose()


async def until_closed(transport: asyncio.Transport) -> None:
    """Returns when the transport is closed."""
    while not transport.is_closing():
        await asyncio.sleep(0)


async def test_a_connection_has_input_after_an_answer_or_a_close(valkey_engine: Engine) -> None:
    with DroppingProxy(valkey_engine) as proxy:
        async with connection_to(proxy.url) as (_, connection):
            assert not private.has_input(connection)
            proxy.cut()
            assert private.has_input(connection)
            await connection.disconnect()
            assert not private.has_input(connection), "it is not open"


async def test_a_connections_transport_can_be_given_another_reader(valkey_engine: Engine) -> None:
    class Reading(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            answer.set_result(data)

    answer = asyncio.get_running_loop().create_future()
    async with connection_to(valkey_engine.url) as (_, connection):
        transport = private.transport_of(connection)
        transport.set_protocol(Reading())
        transport.write(b"PING\r\n")
        assert await answer == b"+PONG\r\n"
        transport.abort()
        assert connection.is_connected
        private.let_go(connection)
        assert not connection.is_connected
        connection.__del__()  # a warning would be an error here


async def test_error_texts_map_to_exceptions(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as (_, connection):
        make = private.error_maker(connection)
        made = {words: make(words) for words in ("NOSCRIPT No such script", "READONLY You can't write", "FROB oh")}
    assert [type(error) for error in made.values()] == [NoScriptError, ReadOnlyError, ResponseError]
    assert str(made["FROB oh"]) == "FROB oh"


async def test_reading_from_a_cut_connection_fails(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as (_, connection):
        transport = private.transport_of(connection)
        reading = asyncio.ensure_future(connection.read_response())
        await asyncio.sleep(0)
        private.cut(connection)
        await until_closed(transport)
        with pytest.raises(RedisConnectionError):
            await reading
        assert not connection.is_connected


async def test_a_pools_connections_in_use_are_known(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as (pool, connection):
        assert private.in_use(pool) == [connection]
        await pool.release(connection)
        assert private.in_use(pool) == []
        assert await pool.get_connection() is connection


class RecordingCommands(NodeCommands):
    """Notes commands and answers them from a list."""

    def __init__(self, *nodes: ClusterNode) -> None:
        super().__init__(startup_nodes=list(nodes), protocol=2)
        self.noted: list[tuple[Any, ...]] = []
        self.answers: list[Any] = []

    async def ask(self, node: ClusterNode, words: tuple[Any, ...]) -> Any:
        self.noted.append((node.port, *words))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_every_command_goes_to_redis_pys_chosen_node(any_cluster: Cluster) -> None:
    first = any_cluster.primaries[0]
    client = RecordingCommands(ClusterNode("127.0.0.1", first.port))
    try:
        assert client.slots_unread
        await client.initialize()
        assert not client.slots_unread
        client.answers = [[b"a", b"b"], b"OK", b"\0", ResponseError("CROSSSLOT"), ResponseError("oh")]
        assert await client.hgetall("{k}:1") == {b"a": b"b"}, "made of the answer as redis-py does"
        assert await client.config_set("a", "b", target_nodes=client.get_node("127.0.0.1", first.port)) is True
        assert await client.dump("{k}:1") == b"\0"
        assert await client.execute_command("MGET", "{k}:1", keys=["{k}:1"], **{EMPTY_RESPONSE: []}) == []
        with pytest.raises(ResponseError, match="oh"):
            await client.get("{k}:1")
        owner = any_cluster.owner("{k}:1").port
        assert client.noted == [
            (owner, "HGETALL", "{k}:1"),
            (first.port, "CONFIG", "SET", "a", "b"),
            (owner, "DUMP", "{k}:1"),
            (owner, "MGET", "{k}:1"),
            (owner, "GET", "{k}:1"),
        ]
    finally:
        await client.aclose()
    assert client.slots_unread


@asynccontextmanager
async def client_of(cluster: Cluster) -> AsyncIterator[NodeCommands]:
    """A client that knows the cluster's slots."""
    client = NodeCommands(startup_nodes=[ClusterNode("127.0.0.1", cluster.primaries[0].port)], protocol=2)
    try:
        await client.initialize()
        yield client
    finally:
        await client.aclose()


async def forget_startup_nodes(client: NodeCommands) -> None:
    """Closes the nodes that are asked for the slots, for a test that puts others in their place."""
    for node in client.nodes_manager.startup_nodes.values():
        await node.disconnect()
    client.nodes_manager.startup_nodes = {}


def settings_of(node: ClusterNode) -> dict[str, Any]:
    """What its connections have, apart from the address."""
    return {name: value for name, value in node.connection_kwargs.items() if name not in ("host", "port")}


async def test_a_node_is_the_known_one_or_a_new_one_with_the_same_settings(any_cluster: Cluster) -> None:
    async with client_of(any_cluster) as client:
        ports = [node.port for node in any_cluster.running()]
        assert client.node_names == {f"127.0.0.1:{port}" for port in ports}
        known, new = client.node_at("127.0.0.1", ports[0]), client.node_at("127.0.0.1", 1)
        assert known is client.get_node("127.0.0.1", ports[0])
        assert new.name == "127.0.0.1:1"
        assert new.name not in client.node_names
        assert settings_of(new) == settings_of(known) != {}


async def test_a_redirection_tells_the_owner_of_a_slot_that_had_another_or_none(any_cluster: Cluster) -> None:
    right, other = any_cluster.primaries[:2]
    async with client_of(any_cluster) as client:
        key = next(key for key in (f"{{{n:03x}}}:n" for n in range(4096)) if any_cluster.owner(key) is right)
        slot = client.keyslot(key)
        learnt = await client.learn_owner(MovedError(f"{slot} 127.0.0.1:{other.port}"))
        assert learnt is client.get_node("127.0.0.1", other.port) is client.get_node_from_key(key)
        client.nodes_manager.slots_cache.pop(slot)
        learnt = await client.learn_owner(MovedError(f"{slot} 127.0.0.1:{right.port}"))
        assert learnt is client.get_node("127.0.0.1", right.port) is client.get_node_from_key(key)
        learnt = await client.learn_owner(MovedError(f"{slot} 127.0.0.1:1"))
        assert learnt.name == "127.0.0.1:1"
        assert learnt.name in client.node_names


class Noting(ClusterNode):
    """Notes that it was asked."""

    def __init__(self, port: int, noted: list[str]) -> None:
        super().__init__("127.0.0.1", port, protocol=2)
        self.noted = noted

    async def execute_command(self, *words: Any, **options: Any) -> Any:
        self.noted.append(self.name)
        return await super().execute_command(*words, **options)


async def test_slots_are_read_from_the_failed_node_last(any_cluster: Cluster) -> None:
    names: list[str] = []
    failed, other = (Noting(node.port, names) for node in any_cluster.primaries[:2])
    async with client_of(any_cluster) as client:
        await forget_startup_nodes(client)
        for _ in range(10):  # the order of the others is random
            client.nodes_manager.startup_nodes = {node.name: node for node in (failed, other)}
            await client.read_slots(failed=failed.name)
    assert names == [other.name] * 10


async def test_an_address_that_was_added_is_asked_once_the_known_ones_are_gone(any_cluster: Cluster) -> None:
    async with client_of(any_cluster) as client:
        await forget_startup_nodes(client)
        gone = client.node_at("127.0.0.1", 1)
        client.nodes_manager.startup_nodes = {gone.name: gone}
        names, slots = set(client.node_names), client.nodes_manager.slots_cache
        with pytest.raises(RedisClusterException):
            await client.read_slots(failed=None)
        assert client.node_names == names
        assert client.nodes_manager.slots_cache is slots
        client.also_ask([("127.0.0.1", 1), ("127.0.0.1", any_cluster.primaries[0].port)])
        assert client.nodes_manager.startup_nodes[gone.name] is gone
        await client.read_slots(failed=None)
        assert client.nodes_manager.startup_nodes.keys() == names == client.node_names


async def test_a_node_that_is_asked_last_is_the_last_of_the_primaries(any_cluster: Cluster) -> None:
    async with client_of(any_cluster) as client:
        first, *others = client.get_primaries()
        client.ask_last(first)
        assert client.get_primaries() == [*others, first]
