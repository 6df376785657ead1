"""Meters the rest of a stream that nobody reads any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from outbound.ai.events import StreamEvent
from outbound.ai.failure import UpstreamFailed
from outbound.ai.meter import Meter

SECONDS = 0.5
MAX_BYTES = 4 * 2**20
BREATH = 0.005
"""Seconds after which a stream yields to others."""


async def meter_leftover(events: AsyncIterator[StreamEvent], meter: Meter) -> None:
    """Reads on for at most SECONDS and MAX_BYTES: output in our buffers and the server's is already paid for."""
    loop, left = asyncio.get_running_loop(), MAX_BYTES
    breath = loop.time() + BREATH
    with suppress(TimeoutError, UpstreamFailed):
        async with asyncio.timeout(SECONDS):
            async for event in events:
                meter.see(event)
                left -= len(event.raw)
                if left <= 0:
                    return
                if loop.time() >= breath:
                    await asyncio.sleep(0)
                    breath = loop.time() + BREATH
