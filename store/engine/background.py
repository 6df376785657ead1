"""Background work that runs during a block of code and ends with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs `work` in the background of the block, and cancels it afterwards."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        # One cancellation may not be enough: the driver swallows one that arrives while it connects.
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=0.05)
