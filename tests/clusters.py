"""Clusters and replicated sets of real servers on loopback, and what an operator does with them: reshard, fail over."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import redis
from redis.crc import key_slot

from tests.engines import VALKEY, Engine, valkey
from tests.processes import wait_until

SLOTS = 16384
HOST = "127.0.0.1"
PATIENT_MS = 5000
"""After this long without a word a node counts as failed. Tests of failovers take less, and wait less."""
SERVICE = "latchkey"

MakeEngine = Callable[..., Engine]


def free_ports(number: int) -> list[int]:
    """So many ports of loopback that nobody listens on."""
    with contextlib.ExitStack() as probes:
        found = [probes.enter_context(socket.socket()) for _ in range(number)]
        for probe in found:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in found]


class Node:
    """A server of a cluster. `port` is where clients find it, `announced` where the cluster says it is."""

    def __init__(self, make: MakeEngine, options: Sequence[str], announced: int | None, timeout: int) -> None:
        self.port, self.bus = free_ports(2)
        self.announced = announced or self.port
        words = ["--port", str(self.port), "--bind", HOST, "--cluster-enabled", "yes", "--cluster-port", str(self.bus)]
        words += ["--cluster-node-timeout", str(timeout), "--cluster-announce-port", str(self.announced)]
        # A replica that just lost its primary promotes itself whatever it missed, so that tests need not wait.
        words += ["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"]
        # Nor does a primary that gave its last slot away become somebody's replica.
        words += ["--cluster-allow-replica-migration", "no", "--lazyfree-lazy-expire", "yes"]
        self.engine = make(options=[*words, *options])
        self.id: str = self.run("CLUSTER", "MYID").decode()

    def run(self, *words: Any) -> Any:
        """What the node answers to a command, whatever redis-py makes of such answers left out."""
        with self.engine.client() as client:
            client.response_callbacks.clear()  # type: ignore[attr-defined]
            return client.execute_command(*words)  # type: ignore[no-untyped-call]

    def facts(self) -> dict[str, str]:
        """CLUSTER INFO."""
        text: str = self.run("CLUSTER", "INFO").decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def calls(self, command: str) -> int:
        """How often it was sent a command since its statistics were reset, those left out that it refused to run."""
        with self.engine.client() as client:
            row = client.info("commandstats").get(f"cmdstat_{command}", {})
            return int(row.get("calls", 0))

    def confirm(self, key: str) -> None:
        """Waits until a replica has everything that was written here so far; writes this key."""
        with self.engine.client() as client:
            client.set(key, "x")
            assert client.wait(1, 5000) == 1

    def follows(self) -> int | None:
        """The port of its primary, if it has one."""
        role = self.run("ROLE")
        return int(role[2]) if role[0] == b"slave" else None

    def is_primary(self) -> bool:
        """Whether it says that it is one."""
        return bool(self.run("ROLE")[0] == b"master")


class Cluster:
    """Three primaries, each with so many replicas, as a context manager. `url` names two of the nodes."""

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
        return node

    @property
    def url(self) -> str:
        """What a server is told."""
        return "redis+cluster://" + ",".join(f"{HOST}:{node.announced}" for node in self.nodes[:2])

    def settle(self, seconds: float = 15.0) -> None:
        """Waits until every node that runs finds that every slot is served."""
        wait_until(lambda: all(node.facts()["cluster_state"] == "ok" for node in self.running()), seconds)

    def running(self) -> list[Node]:
        return [node for node in self.nodes if node.engine.runs]

    def owner(self, key: str | int) -> Node:
        """The node that owns the slot of a key, by what the nodes that run say."""
        slot = key if isinstance(key, int) else key_slot(key.encode())
        for first, last, primary, *_ in self.running()[0].run("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.id == primary[2].decode())
        raise AssertionError(f"slot {slot} has no owner")

    def wait_for_owner(self, key: str, node: Node, of: Sequence[Node] = ()) -> None:
        """Waits until every node that runs, or those given, names this one as the owner of the key's slot, and
        serves."""
        slot = key_slot(key.encode())

        def named(by: Node) -> bool:
            rows = by.run("CLUSTER", "SLOTS")
            return any(row[0] <= slot <= row[1] and row[2][2].decode() == node.id for row in rows)

        asked = of or self.running()
        wait_until(lambda: all(named(by) and by.facts()["cluster_state"] == "ok" for by in asked))

    def wait_without(self, node: Node) -> None:
        """Waits until nothing is left for a node that is gone: every other one says that all is served without it."""

        def done(by: Node) -> bool:
            owners = {row[2][2].decode() for row in by.run("CLUSTER", "SLOTS")}
            return node.id not in owners and by.facts()["cluster_state"] == "ok"

        wait_until(lambda: all(done(by) for by in self.running()))

    def replica_of(self, primary: Node) -> Node:
        """A replica that has caught up with a primary."""
        found = next(replica for replica in self.running() if replica.follows() == primary.announced)
        wait_until(lambda: b"connected" in found.run("ROLE"))
        return found

    def subscribed_at(self) -> Node:
        """The node that runs and has a subscription, as soon as there is one."""
        found: list[Node] = []

        def looked() -> bool:
            found[:] = [node for node in self.running() if node.run("CLIENT", "LIST", "TYPE", "pubsub")]
            return bool(found)

        wait_until(looked)
        return found[0]

    def move_slot(self, key: str, target: Node, batch: int = 10) -> Iterator[int]:
        """Moves the slot of a key as `redis-cli --cluster reshard` does. Each step yields how many keys it moved, the
        first, with which the slot is open, none; behind the last the slot is the target's."""
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
        """Moves the slot of a key in one piece, as Valkey 9 does."""
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


class Sentinel(Engine):
    """A sentinel that watches the server at `port`."""

    def __init__(self, binary: str, port: int, quorum: int) -> None:
        self.port = free_ports(1)[0]
        self._watch = [
            f"sentinel monitor {SERVICE} {HOST} {port} {quorum}",
            f"sentinel down-after-milliseconds {SERVICE} 500",
            f"sentinel failover-timeout {SERVICE} 1000",
        ]
        super().__init__(binary, append_only=False)

    def _words(self, binary: str) -> list[str]:
        file = self.directory / "sentinel.conf"
        lines = [f"port {self.port}", f"bind {HOST}", f"unixsocket {self.socket_path}", f"dir {self.directory}"]
        file.write_text("\n".join([*lines, *self._watch, ""]))
        return [binary, str(file), "--sentinel"]


class Replicated:
    """A primary, a replica and three sentinels, as a context manager."""

    def __init__(self, binary: str = VALKEY) -> None:
        self._ports = free_ports(2)
        self.servers: list[Engine] = []
        self.sentinels: list[Sentinel] = []
        try:
            for port in self._ports:
                follow = ("--replicaof", HOST, str(self._ports[0])) if self.servers else ()
                words = ("--port", str(port), "--bind", HOST, "--repl-diskless-sync-delay", "0", *follow)
                self.servers.append(Engine(binary, append_only=True, options=words))
            self.wait_for_replica(self.servers[1])
            self.sentinels = [Sentinel(binary, self._ports[0], quorum=2) for _ in range(3)]
            wait_until(lambda: all(self._knows_all(sentinel) for sentinel in self.sentinels))
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """What a server is told."""
        return f"redis+sentinel://{','.join(f'{HOST}:{one.port}' for one in self.sentinels)}/{SERVICE}"

    def primary(self) -> Engine:
        """The server that says it is the primary."""
        return next(one for one in self.servers if one.runs and self._role(one) == b"master")

    def replica(self) -> Engine:
        """The other one, which has caught up."""
        found = next(one for one in self.servers if one is not self.primary())
        self.wait_for_replica(found)
        return found

    def confirm(self, primary: Engine) -> None:
        """Waits until the replica has everything that was written so far; writes a key."""
        with primary.client() as client:
            client.set("confirm", "x")
            assert client.wait(1, 5000) == 1

    def wait_for_primary(self, server: Engine) -> None:
        """Waits until every sentinel names this one, and it says so itself."""
        wait_until(lambda: all(self._named(by) is server for by in self.sentinels) and self._role(server) == b"master")

    def wait_for_departure(self, server: Engine) -> None:
        """Waits until no client of ours is connected to this server."""

        def left() -> bool:
            with server.client() as client:
                return not any(one["name"] == "latchkey" for one in client.client_list())

        wait_until(left)

    def wait_for_replica(self, server: Engine) -> None:
        """Waits until this one follows the other."""
        wait_until(lambda: self._linked(server))

    def restore(self, server: Engine) -> None:
        """Makes a former primary a replica, which the sentinels would do some ten seconds later."""
        port = self._ports[1 - self.servers.index(server)]
        with server.client() as client:
            client.execute_command("REPLICAOF", HOST, port)
        self.wait_for_replica(server)

    def _named(self, by: Sentinel) -> Engine:
        with by.client() as client:
            port = int(client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1])
            return self.servers[self._ports.index(port)]

    def fail_over(self) -> None:
        """Has the replica take over from a primary that is well."""
        with self.sentinels[0].client() as client:
            client.execute_command("SENTINEL", "FAILOVER", SERVICE)

    def _role(self, server: Engine) -> bytes:
        with server.client() as client:
            role: bytes = client.execute_command("ROLE")[0]
            return role

    def _linked(self, server: Engine) -> bool:
        with contextlib.suppress(redis.RedisError, OSError), server.client() as client:  # sentinels cut connections
            return b"connected" in client.execute_command("ROLE")
        return False

    def _knows_all(self, sentinel: Sentinel) -> bool:
        with sentinel.client() as client:
            found: Any = client.sentinel_master(SERVICE)
            return bool(found["num-other-sentinels"] == 2 and found["num-slaves"] == 1)

    def close(self) -> None:
        for one in (*self.sentinels, *self.servers):
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
