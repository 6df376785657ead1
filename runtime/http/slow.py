"""Memory held for slow clients: unfinished requests and unread answers."""

from __future__ import annotations

import asyncio
from typing import Protocol

# Seconds after which a slow connection makes room for a waiting one.
PATIENCE = 5.0


class BufferingConnection(Protocol):
    """A connection that may hold memory."""

    def close(self) -> None:
        """Cuts the connection."""


class Slow:
    """Holds at most `most` bytes in all. Beyond that, the clients that have been slow for longest are cut. A client at
    network speed is slow only for milliseconds, so only a flood gets it cut."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self.most = most
        """Bytes."""
        # Ordered by when each became slow: bytes, and since when, in the loop's time.
        self._buffered: dict[BufferingConnection, tuple[int, float]] = {}
        self.total = 0
        """Bytes."""

    def __len__(self) -> int:
        return len(self._buffered)

    def buffers(self, connection: BufferingConnection, size: int) -> None:
        """Notes how many bytes are held for a connection; 0 when it is no longer slow."""
        before = self._buffered.get(connection)
        if before is None and not size:
            return
        self.total += size - (before[0] if before else 0)
        if size:
            self._buffered[connection] = size, before[1] if before else self._loop.time()
        else:
            del self._buffered[connection]
        while self.total > self.most:
            self._cut(next(iter(self._buffered)))

    def make_room(self, most: int) -> None:
        """Cuts up to `most` connections that have been slow for a while."""
        late = self._loop.time() - PATIENCE
        for one in [one for one, (_, since) in self._buffered.items() if since <= late][:most]:
            self._cut(one)

    def _cut(self, one: BufferingConnection) -> None:
        self.total -= self._buffered.pop(one)[0]
        one.close()
