"""Faults: each is one function that breaks something, says what, and mends it when resumed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from dev.lab.engines import wait_until
from dev.proof.calling import Clients
from dev.proof.servers import Keeper, Server
from dev.proof.stores import PATIENCE, ClusterUnderProof, EmbeddedUnderProof, StoreUnderProof, Victim
from store.engine.script_source import own_scripts

ALL = ("redis", "embedded", "cluster")
SETTLEMENTS = 4
"""Settlements whose answers are lost, one after another."""


@dataclass
class Scene:
    """What a fault can break."""

    store: StoreUnderProof
    servers: Sequence[Server]
    keeper: Keeper
    clients: Clients
    dice: random.Random

    async def off(self, work: Callable[..., Any], *args: Any) -> Any:
        """Runs blocking work in a thread, off the event loop."""
        return await asyncio.to_thread(work, *args)

    async def victim(self) -> Victim:
        """A server of the store; in a cluster, a primary."""
        found: Victim = self.dice.choice(await self.off(self.store.victims))
        return found

    async def well(self) -> None:
        """Waits until servers and store answer. Raises AssertionError, Unexpected."""
        await self.off(self.store.settle)
        await self.keeper.wait()


Break = Callable[[Scene], AsyncGenerator[str]]


class Kind(NamedTuple):
    """A fault: its name on the command line, its title, the stores it fits, and its length in seconds."""

    name: str
    title: str
    stores: Sequence[str]
    lasts: tuple[float, float]
    breaks: Break


KINDS: dict[str, Kind] = {}


def fault(
    name: str, title: str, lasts: tuple[float, float] = (0.5, 1.5), stores: Sequence[str] = ALL
) -> Callable[[Break], Break]:
    """Registers a function as a fault."""

    def entered(breaks: Break) -> Break:
        KINDS[name] = Kind(name, title, stores, lasts, breaks)
        return breaks

    return entered


def possible(store: StoreUnderProof) -> dict[str, Kind]:
    """The faults that fit a store on this machine."""
    found = {name: kind for name, kind in KINDS.items() if store.kind in kind.stores}
    if isinstance(store, EmbeddedUnderProof) and not store.mounted:
        found.pop("disk")
    return found


@fault("server", "kill -9 of a server process")
async def kill_server(scene: Scene) -> AsyncGenerator[str]:
    server = scene.dice.choice(scene.servers)
    pids = await scene.off(server.processes)
    if pids:
        server.kill_one(scene.dice.choice(pids))
    yield server.name
    await scene.keeper.wait()


@fault("supervisor", "kill -9 of the supervisor, which owns the store", stores=("embedded",))
async def kill_supervisor(scene: Scene) -> AsyncGenerator[str]:
    server = scene.servers[0]
    await scene.off(server.kill)
    yield server.name
    await scene.well()


@fault("restart", "a server is stopped and started again")
async def restart_server(scene: Scene) -> AsyncGenerator[str]:
    server = scene.dice.choice(scene.servers)
    await scene.off(server.stop)
    yield server.name
    await scene.well()


@fault("connections", "every connection to the store is cut")
async def cut_connections(scene: Scene) -> AsyncGenerator[str]:
    def cut() -> int:
        count = 0
        for victim in scene.store.victims():
            with victim.client() as client:
                count += client.execute_command("CLIENT", "KILL", "TYPE", "normal")
        return count

    yield f"{await scene.off(cut)} of them"


@fault("hang-up", "clients cut their connections in the middle of requests, again and again")
async def hang_up(scene: Scene) -> AsyncGenerator[str]:
    async def again_and_again() -> None:
        while True:
            scene.clients.hang_up()
            await asyncio.sleep(scene.dice.uniform(0.01, 0.1))

    cutting = asyncio.ensure_future(again_and_again())
    yield ""
    cutting.cancel()


@fault("answers", "settlements reach the store and its answers are lost", lasts=(0.2, 1.0), stores=("redis",))
async def lose_answers(scene: Scene) -> AsyncGenerator[str]:
    """Each settlement whose answer is lost is sent again: a second charge would show."""
    wire = scene.store.wire
    assert wire is not None
    settlement = own_scripts()["settle_hold"].sha.encode()

    async def again_and_again() -> None:
        for _ in range(SETTLEMENTS):
            await wire.lose_answer_to(settlement)
            await asyncio.sleep(scene.dice.uniform(0.02, 0.2))
            wire.cut()

    losing = asyncio.ensure_future(again_and_again())
    yield f"{SETTLEMENTS} times"
    try:
        async with asyncio.timeout(PATIENCE):
            await losing
    finally:
        losing.cancel()
        wire.cut()


@fault("store", "kill -9 of the store, which is started again")
async def kill_store(scene: Scene) -> AsyncGenerator[str]:
    victim = await scene.victim()
    await scene.off(victim.kill)
    yield victim.name
    await scene.off(victim.revive)
    await scene.well()


@fault("pause", "the store stands still (SIGSTOP)", lasts=(0.5, 5.0))
async def pause_store(scene: Scene) -> AsyncGenerator[str]:
    victim = await scene.victim()
    victim.pause()
    yield victim.name
    victim.resume()
    await scene.well()


@fault("memory", "the store's memory is full (maxmemory, noeviction)", lasts=(1.5, 3.0))
async def fill_memory(scene: Scene) -> AsyncGenerator[str]:
    """Meanwhile everybody revokes, signs out and deletes, which a full store accepts: `dev/proof/checks/full.py`."""
    victim = await scene.victim()

    def fill() -> None:
        with victim.client() as client:
            used = int(client.info("memory")["used_memory"])
            client.config_set("maxmemory", used * 9 // 10)

    def lift() -> bool:
        # The store may have ended with its server, which found it full on restart.
        with contextlib.suppress(RedisError), victim.client() as client:
            return bool(client.config_set("maxmemory", 0))
        return False

    await scene.off(fill)
    scene.clients.ending = True
    try:
        yield victim.name
    finally:
        scene.clients.ending = False
    await scene.off(wait_until, lift, PATIENCE)
    await scene.well()


@fault("disk", "the disk of the store's append-only file is full", lasts=(1.0, 3.0))
async def fill_disk(scene: Scene) -> AsyncGenerator[str]:
    victim = await scene.victim()
    await scene.off(victim.fill_disk)
    yield victim.name
    await scene.off(victim.empty_disk)
    await scene.well()


@fault("failover", "kill -9 of a primary until its replica has taken over", stores=("cluster",))
async def fail_over(scene: Scene) -> AsyncGenerator[str]:
    store = _cluster(scene)
    node = scene.dice.choice(await scene.off(store.primaries))
    await scene.off(node.engine.kill)
    yield store.victim(node).name
    await _taken_over(scene, node.id)
    await scene.off(node.engine.start)
    await scene.well()


@fault(
    "lagging",
    "a primary loses its replica, goes on alone, and is killed: the replica takes over",
    lasts=(0.8, 1.6),
    stores=("cluster",),
)
async def fail_over_behind(scene: Scene) -> AsyncGenerator[str]:
    """The replica is frozen while its connection is cut, so later writes to the primary never reach it."""
    store = _cluster(scene)
    node = scene.dice.choice(await scene.off(store.primaries))
    replica = await scene.off(store.cluster.replica_of, node)

    def part() -> None:
        replica.engine.pause()
        node.run("CLIENT", "KILL", "TYPE", "replica")

    await scene.off(part)
    yield store.victim(node).name
    await scene.off(node.engine.kill)
    replica.engine.resume()
    await _taken_over(scene, node.id)
    await scene.off(node.engine.start)
    await scene.well()


@fault("handover", "a replica takes over in good order (CLUSTER FAILOVER)", stores=("cluster",))
async def hand_over(scene: Scene) -> AsyncGenerator[str]:
    store = _cluster(scene)
    node = scene.dice.choice(await scene.off(store.primaries))
    replica = await scene.off(store.cluster.replica_of, node)
    await scene.off(replica.run, "CLUSTER", "FAILOVER")
    yield f"from {store.victim(node).name}"
    await _taken_over(scene, node.id)
    await scene.well()


@fault("replica", "kill -9 of a replica, which is started again", lasts=(1.0, 2.5), stores=("cluster",))
async def kill_replica(scene: Scene) -> AsyncGenerator[str]:
    store = _cluster(scene)
    serving = await scene.off(store.primaries)
    node = scene.dice.choice([node for node in store.cluster.nodes if node not in serving])
    await scene.off(node.engine.kill)
    yield store.victim(node).name
    await scene.off(node.engine.start)
    await scene.well()


def _cluster(scene: Scene) -> ClusterUnderProof:
    assert isinstance(scene.store, ClusterUnderProof)
    return scene.store


async def _taken_over(scene: Scene, node_id: str) -> None:
    """Waits until the others say that this node serves nothing."""

    def gone() -> bool:
        owners = scene.store.owners()
        return bool(owners) and node_id not in owners.values()

    await scene.off(wait_until, gone, PATIENCE)
