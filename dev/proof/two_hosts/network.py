"""Hosts on this machine: network namespaces on a bridge, apart from the machine's own network.

The whole program moves into a namespace of its own first, so nothing here can reach, or be reached from, anything else.
Everything ends with the processes. Needs root and iproute2.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from dev.bench.measure import Unexpected
from dev.lab.engines import wait_until

_CLONE_NEWNET = 0x40000000
_NETWORK = "198.18.0"
"""Of RFC 2544: for benchmarks of networks, and routed nowhere."""
HERE = f"{_NETWORK}.1"
"""The address of the clients."""


def leave_the_network() -> None:
    """Moves this process into a network namespace with a bridge and nothing else. Raises Unexpected without root."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise Unexpected(f"no network namespace can be made here: {os.strerror(ctypes.get_errno())}; this needs root")
    _ip("link", "set", "lo", "up")
    _ip("link", "add", "bridge0", "type", "bridge")
    _ip("address", "add", f"{HERE}/24", "dev", "bridge0")
    _ip("link", "set", "bridge0", "up")


class Host:
    """A network namespace with an address on the bridge. `close` ends it."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.address = name, f"{_NETWORK}.{number}"
        # A process that holds the namespace.
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own, pid = Path(f"/proc/{self._holder.pid}/ns/net"), str(self._holder.pid)
        wait_until(lambda: own.readlink() != Path("/proc/self/ns/net").readlink())
        wire = f"wire{number}"
        _ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", pid)
        _ip("link", "set", wire, "master", "bridge0", "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{self.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            subprocess.run([*self._enter, "ip", *words], check=True)

    @property
    def _enter(self) -> list[str]:
        return ["nsenter", f"--target={self._holder.pid}", "--net", "--"]

    def start(
        self, command: Sequence[str], log: IO[bytes], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts a command on this host."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
        return subprocess.Popen(
            [*self._enter, *command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**inherited, **(environment or {})},
            start_new_session=True,
        )

    def close(self) -> None:
        """Ends the namespace; the wire goes with it."""
        self._holder.kill()
        self._holder.wait()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
