"""Takes listening sockets that systemd passes (sd_listen_fds(3)), instead of binding the configured address.

The socket stays with systemd, so a restart refuses no connection: clients wait in its queue until the server is back.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from ipaddress import ip_address

from settings.declared import Settings
from store.errors import StartupError

FIRST = 3
"""The file descriptor of the first socket (SD_LISTEN_FDS_START)."""
MOST = 64


def passed_sockets(environ: MutableMapping[str, str], first: int = FIRST) -> list[socket.socket]:
    """The sockets that were passed to this process, in order; none without LISTEN_FDS, or if LISTEN_PID names another
    process. Removes the variables, so that no child takes them for its own. Raises StartupError for descriptors that
    are no listening TCP sockets."""
    pid, count, _ = (environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"))
    if not count or pid != str(os.getpid()):
        return []
    if not count.isascii() or not count.isdigit() or not 1 <= int(count) <= MOST:
        raise StartupError(f"LISTEN_FDS must be a number from 1 to {MOST}")
    return [_listening(number) for number in range(first, first + int(count))]


def _listening(number: int) -> socket.socket:
    try:
        found = socket.socket(fileno=number)
    except OSError as error:
        raise StartupError(f"descriptor {number}, passed by LISTEN_FDS, is no socket: {error.strerror}") from None
    internet = found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM
    if not internet or not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        found.detach()
        raise StartupError(f"descriptor {number}, passed by LISTEN_FDS, is no listening TCP socket")
    found.set_inheritable(False)  # the embedded store must not hold it
    found.setblocking(False)
    return found


def check_passed(sockets: list[socket.socket], settings: Settings) -> None:
    """Checks that the settings suit the sockets. Raises StartupError.

    A server that believes it serves only this machine shows mailed links in its log. So `host` must not say loopback
    while a socket listens elsewhere."""
    if sockets and settings.reuse_port:
        raise StartupError("sockets were passed by LISTEN_FDS: --reuse-port has no use with them")
    for one in sockets:
        address = one.getsockname()[0]
        if settings.here_alone and not ip_address(address.partition("%")[0]).is_loopback:
            raise StartupError(
                f"a socket that listens on {address} was passed, but host is {settings.host}: "
                "set --host to its address, or --base-url to the public address"
            )
