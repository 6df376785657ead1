"""What is held for clients that are slow: requests that are not all there, answers that are not taken."""

from __future__ import annotations

import asyncio
from typing import Protocol

# Who has been slow for so many seconds gives its connection up where others wait for one.
PATIENCE = 5.0


class BufferingConnection(Protocol):
    """A connection."""

    def close(self) -> None:
        """Cuts it."""


class Slow:
    """At most `most` bytes in all. Beyond it those are cut that have been slow for longest: who sends and reads at the
    speed of a network is slow for some milliseconds, and is hit by nobody's doing but a flood's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self.most = most
        """Bytes."""
        # In the order in which they became slow: bytes, and since when, in the loop's time.
        self._buffered: dict[BufferingConnection, tuple[int, float]] = {}
        self.total = 0
        """Bytes."""

    def __len__(self) -> int:
        return len(self._buffered)

    def buffers(self, connection: BufferingConnection, size: int) -> None:
        """So many bytes are held for a connection now; 0 when it is slow no longer."""
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
        """Cuts up to `most` that have been slow for a while."""
        late = self._loop.time() - PATIENCE
        for one in [one for one, (_, since) in self._buffered.items() if since <= late][:most]:
            self._cut(one)

    def _cut(self, one: BufferingConnection) -> None:
        self.total -= self._buffered.pop(one)[0]
        one.close()
