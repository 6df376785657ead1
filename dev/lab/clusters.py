"""Clusters of real servers on loopback, and what an operator does with them: reshard, fail over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from redis.crc import key_slot

from dev.lab.engines import Engine, valkey, wait_until
from dev.lab.ports import HOST, free_ports

SLOTS = 16384
PATIENT_MS = 5000
"""Time without a response after which a node counts as failed. Tests of failovers set it lower to wait less."""

MakeEngine = Callable[..., Engine]


class Node:
    """A server of a cluster. Clients reach it at `port`; the cluster announces it at `announced`."""

    def __init__(self, make: MakeEngine, options: Sequence[str], announced: int | None, timeout: int) -> None:
        self.port, self.bus = free_ports(2)
        self.announced = announced or self.port
        words = ["--port", str(self.port), "--bind", HOST, "--cluster-enabled", "yes", "--cluster-port", str(self.bus)]
        words += ["--cluster-node-timeout", str(timeout), "--cluster-announce-port", str(self.announced)]
        # A replica that has just lost its primary promotes itself however much it missed, so tests need not wait.
        words += ["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"]
        # A primary that gave its last slot away does not become a replica either.
        words += ["--cluster-allow-replica-migration", "no", "--lazyfree-lazy-expire", "yes"]
        self.engine = make(options=[*words, *options])
        self.id: str = self.run("CLUSTER", "MYID").decode()

    def run(self, *words: Any) -> Any:
        """The node's raw answer to a command, without redis-py's conversion."""
        with self.engine.client() as client:
            client.response_callbacks.clear()
            return client.execute_command(*words)

    def facts(self) -> dict[str, str]:
        """CLUSTER INFO."""
        text: str = self.run("CLUSTER", "INFO").decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def calls(self, command: str) -> int:
        """Calls of a command since the statistics were reset, without rejected ones."""
        with self.engine.client() as client:
            row = client.info("commandstats").get(f"cmdstat_{command}", {})
            return int(row.get("calls", 0))

    def confirm(self, key: str) -> None:
        """Waits until a replica has every write made here so far; writes this key."""
        with self.engine.client() as client:
            client.set(key, "x")
            assert client.wait(1, 5000) == 1

    def follows(self) -> int | None:
        """The port of its primary, if it has one."""
        role = self.run("ROLE")
        return int(role[2]) if role[0] == b"slave" else None

    def is_primary(self) -> bool:
        """Whether the node says that it is a replica."""
        return bool(self.run("ROLE")[0] == b"master")


class Cluster:
    """Three primaries with `replicas` replicas each, as a context manager. `url` names two of the nodes."""

    def __init__(
        self,
        make: MakeEngine = valkey,
        *,
        replicas: int = 0,
        options: Sequence[str] = (),
        announced: Sequence[int] = (),
        node_timeout: int = PATIENT_MS,
    ) -> None:
        def make_node(announce: int | None = None) -> Node:
            return Node(make, options, announce, node_timeout)

        self._make_node = make_node
        self.nodes: list[Node] = []
        try:
            self._form(replicas, announced)
        except BaseException:
            self.close()
            raise

    def _form(self, replicas: int, announced: Sequence[int]) -> None:
        self.primaries = [self._make_node(port) for port in announced or (None, None, None)]
        self.nodes = list(self.primaries)
        share = -(-SLOTS // len(self.primaries))
        for number, node in enumerate(self.primaries):
            node.run("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            node.run("CLUSTER", "ADDSLOTSRANGE", number * share, min((number + 1) * share, SLOTS) - 1)
        self.replicas = [(self._make_node(), primary) for primary in self.primaries for _ in range(replicas)]
        self.nodes += [replica for replica, _ in self.replicas]
        self._meet()
        for replica, primary in self.replicas:
            replica.run("CLUSTER", "REPLICATE", primary.id)
        self.settle()
        wait_until(lambda: all(b"connected" in replica.run("ROLE") for replica, _ in self.replicas))

    def _meet(self) -> None:
        for node in self.nodes[1:]:
            self.nodes[0].run("CLUSTER", "MEET", HOST, node.port, node.bus)
        known = str(len(self.nodes))
        wait_until(lambda: all(node.facts()["cluster_known_nodes"] == known for node in self.nodes))

    def add_node(self) -> Node:
        """A primary without slots."""
        node = self._make_node()
        self.nodes.append(node)
        self._meet()
        self.settle()
        # A node can report slots as served before it has heard who owns them.
        wait_until(lambda: len({each.facts()["cluster_slots_assigned"] for each in self.running()}) == 1)
        return node

    @property
    def url(self) -> str:
        """The server's store URL for this cluster."""
        return "redis+cluster://" + ",".join(f"{HOST}:{node.announced}" for node in self.nodes[:2])

    def settle(self, seconds: float = 15.0) -> None:
        """Waits until every running node reports that every slot is served."""
        wait_until(lambda: all(node.facts()["cluster_state"] == "ok" for node in self.running()), seconds)

    def running(self) -> list[Node]:
        return [node for node in self.nodes if node.engine.runs]

    def owner(self, key: str | int) -> Node:
        """The node that owns the slot of a key, according to the running nodes."""
        slot = key if isinstance(key, int) else key_slot(key.encode())
        for first, last, primary, *_ in self.running()[0].run("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.id == primary[2].decode())
        raise AssertionError(f"slot {slot} has no owner")

    def wait_for_owner(self, key: str, node: Node, of: Sequence[Node] = ()) -> None:
        """Waits until every running node, or each of those given, names this node as the owner of the key's slot and
        serves."""
        slot = key_slot(key.encode())

        def named(by: Node) -> bool:
            rows = by.run("CLUSTER", "SLOTS")
            return any(row[0] <= slot <= row[1] and row[2][2].decode() == node.id for row in rows)

        nodes = of or self.running()
        wait_until(lambda: all(named(by) and by.facts()["cluster_state"] == "ok" for by in nodes))

    def wait_without(self, node: Node) -> None:
        """Waits until no node depends on one that is gone: every other node reports that all slots are served without
        it."""

        def done(by: Node) -> bool:
            owners = {row[2][2].decode() for row in by.run("CLUSTER", "SLOTS")}
            return node.id not in owners and by.facts()["cluster_state"] == "ok"

        wait_until(lambda: all(done(by) for by in self.running()))

    def replica_of(self, primary: Node) -> Node:
        """A replica that has caught up with its primary."""
        found = next(replica for replica in self.running() if replica.follows() == primary.announced)
        wait_until(lambda: b"connected" in found.run("ROLE"))
        return found

    def subscribed_at(self) -> Node:
        """The running node that has a subscription, as soon as there is one."""
        found: list[Node] = []

        def looked() -> bool:
            found[:] = [node for node in self.running() if node.run("CLIENT", "LIST", "TYPE", "pubsub")]
            return bool(found)

        wait_until(looked)
        return found[0]

    def move_slot(self, key: str, target: Node, batch: int = 10) -> Iterator[int]:
        """Moves the slot of a key as `redis-cli --cluster reshard` does. Each step yields the number of keys moved. The
        first step opens the slot and yields 0; after the last, the target owns the slot."""
        slot, source = key_slot(key.encode()), self.owner(key)
        target.run("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.run("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        yield 0
        while keys := source.run("CLUSTER", "GETKEYSINSLOT", slot, batch):
            source.run("MIGRATE", HOST, target.port, "", 0, 5000, "KEYS", *keys)
            yield len(keys)
        for node in (target, source, *(node for node in self.running() if node not in (source, target))):
            if node.is_primary():
                node.run("CLUSTER", "SETSLOT", slot, "NODE", target.id)

    def migrate_slot(self, key: str, target: Node) -> None:
        """Moves the slot of a key in one step, as Valkey 9 does."""
        slot = key_slot(key.encode())
        self.owner(key).run("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)
        self.wait_for_owner(key, target)

    def empty(self) -> None:
        """Forgets all data and scripts."""
        for node in self.running():
            if node.is_primary():
                node.run("FLUSHALL")
            node.run("SCRIPT", "FLUSH")

    def close(self) -> None:
        for node in self.nodes:
            node.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
