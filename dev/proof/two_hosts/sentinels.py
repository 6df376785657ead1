"""A primary with two replicas, each on a host of its own with a sentinel."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dev.bench.measure import Unexpected
from dev.lab.engines import wait_until
from dev.proof.two_hosts.network import Host

SERVICE = "latchkey"
PORT, SENTINEL_PORT = 6379, 26379
# As docs/replication.md advises.
_OPTIONS = (
    *("--maxmemory-policy", "noeviction", "--lazyfree-lazy-expire", "yes", "--appendonly", "yes", "--save", ""),
    *("--min-replicas-to-write", "1", "--min-replicas-max-lag", "2", "--repl-diskless-sync-delay", "0"),
    *("--bind", "0.0.0.0", "--protected-mode", "no", "--port", str(PORT)),
)
_SENTINEL = """port {port}
bind 0.0.0.0
protected-mode no
dir {directory}
sentinel monitor {service} {primary} {redis} 2
sentinel down-after-milliseconds {service} 2000
sentinel failover-timeout {service} 5000
"""


class Node:
    """A server of the store with its sentinel, on one host."""

    def __init__(self, host: Host, directory: Path, primary: str) -> None:
        self.host, self._directory = host, directory / host.name
        self._directory.mkdir()
        follow = [] if host.address == primary else ["--replicaof", primary, str(PORT)]
        binary = shutil.which("redis-server")
        if binary is None:
            raise Unexpected("redis-server is not on this machine")
        self._store = [binary, "--dir", str(self._directory), *_OPTIONS, *follow]
        config = self._directory / "sentinel.conf"
        config.write_text(
            _SENTINEL.format(
                port=SENTINEL_PORT, directory=self._directory, service=SERVICE, primary=primary, redis=PORT
            )
        )
        self._sentinel = [binary, str(config), "--sentinel"]
        self._processes: list[subprocess.Popen[bytes]] = []

    def start_store(self) -> None:
        """Starts the server of the store."""
        self._start(self._store, "redis.log")
        wait_until(lambda: bool(self.asked(PORT, "PING")))

    def start_sentinel(self) -> None:
        """Starts the sentinel."""
        self._start(self._sentinel, "sentinel.log")
        wait_until(lambda: bool(self.asked(SENTINEL_PORT, "PING")))

    def _start(self, command: list[str], log: str) -> None:
        with (self._directory / log).open("ab") as sink:
            self._processes.append(self.host.start(command, sink, self._directory))

    def asked(self, port: int, *command: str) -> Any:
        """The answer to a command; None if there is none."""
        with (
            contextlib.suppress(redis.RedisError, OSError),
            redis.Redis(self.host.address, port, socket_timeout=1, protocol=2, retry=Retry(NoBackoff(), 0)) as client,
        ):
            client.response_callbacks.clear()
            return client.execute_command(*command)
        return None

    def kill(self) -> None:
        """kill -9 of everything on this host."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()


class SentinelSet:
    """The three nodes."""

    def __init__(self, hosts: list[Host], directory: Path) -> None:
        first = hosts[0].address
        self.nodes = [Node(host, directory, first) for host in hosts]
        try:
            for node in self.nodes:
                node.start_store()
            for node in self.nodes:
                node.start_sentinel()
            wait_until(lambda: all(self._knows_all(node) for node in self.nodes), 30)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The servers' setting."""
        hosts = ",".join(f"{node.host.address}:{SENTINEL_PORT}" for node in self.nodes)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    def primary(self) -> Node:
        """The node that the sentinels name. Raises Unexpected."""
        for node in self.nodes:
            found = node.asked(SENTINEL_PORT, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
            if found:
                return next(one for one in self.nodes if one.host.address == found[0].decode())
        raise Unexpected("no sentinel answers")

    def settled(self, gone: Node) -> bool:
        """Whether another node is the primary, in its own view too, with the last one as its replica."""
        others = [node for node in self.nodes if node is not gone]
        named = [node.asked(SENTINEL_PORT, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE) for node in others]
        if any(not found or found[0].decode() == gone.host.address for found in named):
            return False
        roles = [node.asked(PORT, "ROLE") for node in others]
        return sorted(role[0] if role else b"" for role in roles) == [b"master", b"slave"] and all(
            role[0] == b"master" or role[3] == b"connected" for role in roles
        )

    def _knows_all(self, node: Node) -> bool:
        found = node.asked(SENTINEL_PORT, "SENTINEL", "MASTER", SERVICE)
        facts = dict(zip(found[::2], found[1::2], strict=True)) if found else {}
        return (facts.get(b"num-other-sentinels"), facts.get(b"num-slaves")) == (b"2", b"2")

    def close(self) -> None:
        """Ends all of them."""
        for node in self.nodes:
            node.kill()
