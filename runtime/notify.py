"""Reports the server's state to systemd (sd_notify(3)), if a unit of Type=notify started it."""

from __future__ import annotations

import contextlib
import os
import socket
import time

_address = ""


def keep_address() -> None:
    """Removes the address from the environment, so that no child reports in this process's name."""
    global _address
    _address = os.environ.pop("NOTIFY_SOCKET", "")


def forget_address() -> None:
    """Called in a worker: only the supervisor reports."""
    global _address
    _address = ""


def notify_ready() -> None:
    """The server listens, or has reloaded its settings."""
    _notify("READY=1")


def notify_reloading() -> None:
    """The server is reloading its settings."""
    _notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


def notify_stopping() -> None:
    """The server is stopping."""
    _notify("STOPPING=1")


def _notify(text: str) -> None:
    if not _address:
        return
    address = "\0" + _address[1:] if _address.startswith("@") else _address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.sendto(text.encode(), address)
