"""Ports for servers that need to know theirs before they listen."""

from __future__ import annotations

import contextlib
import socket
from secrets import SystemRandom

HOST = "127.0.0.1"
PORTS = range(10_000, 32_000)
"""Below the range for outgoing connections: no connection takes a port between its choice and its use."""

_random = SystemRandom()


def free_ports(number: int) -> list[int]:
    """Loopback ports that nobody listens on."""
    found: list[int] = []
    with contextlib.ExitStack() as probes:
        while len(found) < number:
            probe, port = probes.enter_context(socket.socket()), _random.choice(PORTS)
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                found.append(port)
    return found


def free_port() -> int:
    """A loopback port that nobody listens on."""
    return free_ports(1)[0]
