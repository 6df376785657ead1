"""Work that goes on beside a block of code and ends with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs `work` beside the block, and cancels it behind the block."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        # Once may not do: the driver swallows a cancellation that comes while it connects.
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=0.05)
