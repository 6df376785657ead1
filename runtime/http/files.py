"""How many connections a process can hold."""

from __future__ import annotations

import resource


def room_for(connections: int, others: int) -> int:
    """Raises the process's limit of open files, up to the hard limit, to fit `connections` and the other files.
    Returns the number of connections that fit: `connections`, or fewer if the limit is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return connections
    wanted = connections + others
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(min(connections, soft - others), 1)
