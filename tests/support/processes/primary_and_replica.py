"""A primary with a replica, and their failures: the replica stops answering, the primary goes away."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, Self

import redis

from dev.lab.engines import wait_until
from dev.lab.ports import HOST, free_port
from tests.support.processes.engines import VALKEY, Engine


class Followed:
    """A primary and a replica that has caught up with it, as a context manager. `url` names the primary."""

    def __init__(self, binary: str = VALKEY) -> None:
        self._ports: dict[Engine, int] = {}
        self.primary = self._start(binary)
        try:
            self.replica = self._start(binary, "--replicaof", HOST, str(self._ports[self.primary]))
            self.wait_for_replica()
        except BaseException:
            self.close()
            raise

    def _start(self, binary: str, *words: str) -> Engine:
        port = free_port()
        options = ("--port", str(port), "--bind", HOST, "--repl-diskless-sync-delay", "0", *words)
        engine = Engine(binary, append_only=False, options=options)
        self._ports[engine] = port
        return engine

    @property
    def url(self) -> str:
        """The server's store URL."""
        return self.primary.url

    def wait_for_replica(self) -> None:
        """Waits until the replica is in sync."""

        def caught_up() -> bool:
            with contextlib.suppress(redis.RedisError, OSError), self.primary.client() as client:
                client.set("caught up", "x")
                return bool(client.wait(1, 1000) == 1)
            return False

        wait_until(caught_up)

    def cut(self) -> None:
        """Freezes the replica: no later write reaches it, and it does not answer."""
        self.replica.pause()
        with self.primary.client() as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "replica")

    def lose_primary(self) -> None:
        """Kills the primary and promotes the replica."""
        self.primary.kill()
        self.replica.resume()
        with self.replica.client() as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
        self.primary, self.replica = self.replica, self.primary

    def restore(self) -> None:
        """Restarts the former primary as a replica of the new one."""
        self.replica.start()
        with self.replica.client() as client:
            client.execute_command("REPLICAOF", HOST, self._ports[self.primary])
        self.wait_for_replica()

    def calls_of(self, command: str) -> int:
        """The number of times that the primary got a command since `forget`."""
        with self.primary.client() as client:
            row: Any = client.info("commandstats").get(f"cmdstat_{command}", {})
            return int(row.get("calls", 0))

    def forget(self) -> None:
        """Resets the counts."""
        with self.primary.client() as client:
            client.config_resetstat()

    def close(self) -> None:
        for engine in self._ports:
            engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
