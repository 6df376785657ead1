"""Replicated servers on loopback, watched by sentinels; clusters are in `dev/lab/clusters.py`."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, Self

import redis

from dev.lab.clusters import Cluster, Node
from dev.lab.engines import wait_until
from dev.lab.ports import HOST, free_port, free_ports
from tests.support.processes.engines import VALKEY, Engine

__all__ = ["SERVICE", "Cluster", "Node", "Replicated", "Sentinel"]

SERVICE = "latchkey"


DOWN_MS = 2000
"""A sentinel pings each server at this interval, or every second if that is shorter. If this were no longer than the
ping interval, one late answer on a busy machine would cause failovers to and fro."""


class Sentinel(Engine):
    """A sentinel that watches the server at `port`."""

    def __init__(self, binary: str, port: int, quorum: int) -> None:
        self.port = free_port()
        self._watch = [
            f"sentinel monitor {SERVICE} {HOST} {port} {quorum}",
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_MS}",
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
        """The server's store URL."""
        return f"redis+sentinel://{','.join(f'{HOST}:{one.port}' for one in self.sentinels)}/{SERVICE}"

    def primary(self) -> Engine:
        """The server that claims to be the primary."""
        return next(one for one in self.servers if one.runs and self._role(one) == b"master")

    def replica(self) -> Engine:
        """The other server, once it has caught up."""
        found = next(one for one in self.servers if one is not self.primary())
        self.wait_for_replica(found)
        return found

    def confirm(self, primary: Engine) -> None:
        """Waits until the replica has every write so far; writes a key."""
        with primary.client() as client:
            client.set("confirm", "x")
            assert client.wait(1, 5000) == 1

    def wait_for_primary(self, server: Engine) -> None:
        """Waits until every sentinel names this server as the primary, and the server agrees."""
        wait_until(lambda: all(self._named(by) is server for by in self.sentinels) and self._role(server) == b"master")

    def wait_for_departure(self, server: Engine) -> None:
        """Waits until none of our clients is connected to this server."""

        def left() -> bool:
            with server.client() as client:
                return not any(one["name"] == "latchkey" for one in client.client_list())

        wait_until(left)

    def wait_for_replica(self, server: Engine) -> None:
        """Waits until this server replicates the other."""
        wait_until(lambda: self._linked(server))

    def restore(self, server: Engine) -> None:
        """Makes a former primary a replica; the sentinels would take some ten seconds more."""
        port = self._ports[1 - self.servers.index(server)]
        with server.client() as client:
            client.execute_command("REPLICAOF", HOST, port)
        self.wait_for_replica(server)

    def _named(self, by: Sentinel) -> Engine:
        with by.client() as client:
            port = int(client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1])
            return self.servers[self._ports.index(port)]

    def fail_over(self) -> None:
        """Promotes the replica while the primary is healthy."""
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
