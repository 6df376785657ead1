"""The stores under proof, and their nodes, which faults act on: one Redis, the embedded store, a cluster."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dev.lab.clusters import Cluster, Node
from dev.lab.engines import VALKEY, Engine, wait_until
from dev.proof.wire import Wire
from store.engine.datadir import Files, is_store, recorded_socket

PATIENCE = 30.0
"""Seconds for a store to recover."""
NODE_TIMEOUT_MS = 2000
MOUNT_MIB = 48
_OPTIONS = ("--maxmemory-policy", "noeviction", "--lazyfree-lazy-expire", "yes")


class Victim(Protocol):
    """A server of the store, as faults see it."""

    name: str

    def client(self) -> redis.Redis: ...

    def kill(self) -> None: ...

    def revive(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def fill_disk(self) -> None: ...

    def empty_disk(self) -> None: ...


class StoreUnderProof(Protocol):
    """A store with the server settings for it. `kind` is redis, embedded or cluster."""

    kind: str
    title: str
    options: list[str]
    """The settings of a server."""
    wire: Wire | None
    """The relay of the store's answers, if they can be lost on the way."""

    def victims(self) -> Sequence[Victim]: ...

    def settle(self) -> None:
        """Waits until the store has recovered."""

    def owners(self) -> dict[tuple[int, int], str]:
        """Who serves which slots; empty without slots."""

    def close(self) -> None: ...


class EngineVictim:
    """A server that we started."""

    def __init__(self, name: str, engine: Engine) -> None:
        self.name, self.engine = name, engine

    def client(self) -> redis.Redis:
        """A client with short timeouts."""
        path = self.engine.socket_path
        return redis.Redis(unix_socket_path=path, protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=2)

    def kill(self) -> None:
        """kill -9."""
        self.engine.kill()

    def revive(self) -> None:
        """Starts the server if it does not run."""
        self.engine.kill()  # clears up if the server ended by itself
        self.engine.start()

    def pause(self) -> None:
        """SIGSTOP."""
        self.engine.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self.engine.resume()

    def fill_disk(self) -> None:
        """Stops files from growing: a write to the append-only file fails."""
        files = (self.engine.directory / "appendonlydir").glob("*.aof")
        self.engine.limit_files(max((file.stat().st_size for file in files), default=0))

    def empty_disk(self) -> None:
        """Lifts that limit; restarts a server that ended because of it."""
        self.engine.limit_files(None)
        if not self.answers():
            self.revive()

    def answers(self) -> bool:
        """Whether the server runs."""
        with contextlib.suppress(redis.RedisError, OSError), self.client() as client:
            return bool(client.ping())
        return False


class RedisUnderProof:
    """One Redis that writes to disk before it answers. With `durable` false it keeps nothing on disk: the proof must
    fail."""

    kind = "redis"

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        binary = shutil.which("redis-server") or VALKEY
        always = ("--appendfsync", "always") if durable else ()
        self.engine = Engine(binary, append_only=durable, options=[*_OPTIONS, *always])
        with self.engine.client() as client:
            found = client.info("server")
            name = "Valkey" if "valkey_version" in found else "Redis"
            version = found.get("valkey_version") or found["redis_version"]
        kept = "appendfsync always" if durable else "nothing on disk"
        self.title = f"{name} {version}, {kept}"
        self.wire: Wire | None = Wire(self.engine.socket_path)
        self.options = ["--redis-url", self.wire.url]
        self._victim = EngineVictim("the store", self.engine)

    def victims(self) -> Sequence[Victim]:
        return [self._victim]

    def settle(self) -> None:
        wait_until(self._victim.answers, PATIENCE)

    def owners(self) -> dict[tuple[int, int], str]:
        return {}

    def close(self) -> None:
        self.engine.close()


class EmbeddedUnderProof:
    """The store that a server starts for itself; on a small file system, if requested and if we may mount one."""

    kind = "embedded"
    title = "embedded Valkey, appendfsync everysec"
    wire: Wire | None = None
    name = "the store"

    def __init__(self, directory: Path, *, small: bool = True) -> None:
        self.data_dir = directory / "data"
        self.data_dir.mkdir()
        self.mounted = small and self._mount()
        self.options = ["--data-dir", str(self.data_dir)]

    def _mount(self) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"size={MOUNT_MIB}m,mode=700", "tmpfs", str(self.data_dir)]
        return bool(shutil.which("mount")) and subprocess.run(command, capture_output=True, check=False).returncode == 0

    @property
    def _pid(self) -> int | None:
        files = Files(self.data_dir.resolve())
        with contextlib.suppress(OSError, ValueError):
            pid = int(files.pid.read_text())
            return pid if is_store(pid, files) else None
        return None

    def _signal(self, number: signal.Signals) -> None:
        if pid := self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def client(self) -> redis.Redis:
        path = recorded_socket(Files(self.data_dir.resolve())) or ""
        return redis.Redis(unix_socket_path=path, protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=2)

    def kill(self) -> None:
        """kill -9. The server ends with its store, and the next server starts another."""
        self._signal(signal.SIGKILL)

    def revive(self) -> None:
        """Does nothing: the next server starts the store."""

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def fill_disk(self) -> None:
        """Fills the file system completely."""
        with contextlib.suppress(OSError), (self.data_dir / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"\0" * 65536)

    def empty_disk(self) -> None:
        (self.data_dir / "filler").unlink(missing_ok=True)

    def victims(self) -> Sequence[Victim]:
        return [self]

    def settle(self) -> None:
        wait_until(self._answers, PATIENCE)

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError, OSError), self.client() as client:
            return bool(client.ping())
        return False

    def owners(self) -> dict[tuple[int, int], str]:
        return {}

    def close(self) -> None:
        """Kills a store that was left running, and unmounts the file system."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGKILL)
        deadline = time.monotonic() + 5
        while self._pid and time.monotonic() < deadline:
            time.sleep(0.02)
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.data_dir)], capture_output=True, check=False)


class ClusterUnderProof:
    """Three Valkey primaries with a replica each."""

    kind = "cluster"
    wire: Wire | None = None

    def __init__(self, directory: Path, *, min_replicas: int = 0) -> None:
        options = ["--appendonly", "yes", "--appendfsync", "everysec", *_OPTIONS]
        if min_replicas:
            options += ["--min-replicas-to-write", str(min_replicas), "--min-replicas-max-lag", "2"]

        def make(options: Sequence[str]) -> Engine:
            return Engine(VALKEY, append_only=True, options=options)

        self.cluster = Cluster(make, replicas=1, options=options, node_timeout=NODE_TIMEOUT_MS)
        self.title = "cluster of 3 + 3 Valkey, appendfsync everysec"
        if min_replicas:
            self.title += f", min-replicas-to-write {min_replicas}"
        self.options = ["--redis-url", self.cluster.url]
        self._names = {node.id: f"node {number}" for number, node in enumerate(self.cluster.nodes, 1)}

    def victim(self, node: Node) -> EngineVictim:
        """A node, as faults see it."""
        return EngineVictim(self._names[node.id], node.engine)

    def primaries(self) -> list[Node]:
        """The nodes that serve slots now."""
        serving = set(self.owners().values())
        return [node for node in self.cluster.nodes if node.id in serving]

    def victims(self) -> Sequence[Victim]:
        return [self.victim(node) for node in self.primaries()]

    def settle(self) -> None:
        wait_until(self._well, PATIENCE)

    def _well(self) -> bool:
        with contextlib.suppress(redis.RedisError, OSError):
            nodes = self.cluster.nodes
            serving = set(self.owners().values())
            roles = {node.id: node.run("ROLE") for node in nodes}
            served = all(node.facts()["cluster_state"] == "ok" for node in nodes)
            linked = all(role[0] == b"master" or b"connected" in role for role in roles.values())
            split = {node_id for node_id, role in roles.items() if role[0] == b"master"} == serving
            return served and linked and split and len(serving) == 3
        return False

    def owners(self) -> dict[tuple[int, int], str]:
        """Who serves which slots, from the first node that answers."""
        for node in self.cluster.nodes:
            with contextlib.suppress(redis.RedisError, OSError), self.victim(node).client() as client:
                client.response_callbacks.clear()
                rows = client.execute_command("CLUSTER", "SLOTS")
                return {(first, last): primary[2].decode() for first, last, primary, *_ in rows}
        return {}

    def close(self) -> None:
        self.cluster.close()
