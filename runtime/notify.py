"""Tells systemd what the server is about (sd_notify(3)), where it was started by a unit of Type=notify."""

from __future__ import annotations

import contextlib
import os
import socket
import time

_address = ""


def keep_address() -> None:
    """Takes the address out of the environment: no child of this process may speak for it."""
    global _address
    _address = os.environ.pop("NOTIFY_SOCKET", "")


def forget_address() -> None:
    """In a worker: the supervisor speaks."""
    global _address
    _address = ""


def notify_ready() -> None:
    """The server listens, or has read its settings anew."""
    _notify("READY=1")


def notify_reloading() -> None:
    """It reads them."""
    _notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


def notify_stopping() -> None:
    """It is about to end."""
    _notify("STOPPING=1")


def _notify(text: str) -> None:
    if not _address:
        return
    address = "\0" + _address[1:] if _address.startswith("@") else _address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.sendto(text.encode(), address)
