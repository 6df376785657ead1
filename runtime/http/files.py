"""How many connections a process can hold."""

from __future__ import annotations

import resource


def room_for(connections: int, beside: int) -> int:
    """Raises the process's limit of open files as far as it may, for so many connections and `beside` other files.
    Returns how many connections there is room for: `connections`, or fewer where the limit is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return connections
    wanted = connections + beside
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(min(connections, soft - beside), 1)
