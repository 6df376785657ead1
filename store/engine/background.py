"""Background work that runs during a block of code and ends with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_NOTHING: AbstractContextManager[None] = nullcontext()


class _Watched:
    begin: Callable[[str], AbstractContextManager[Any]] | None = None


watched = _Watched()
"""`begin` watches a piece of background work, given its name, for a block; None if nobody does."""


def working(name: str) -> AbstractContextManager[Any]:
    """A piece of background work, for a block. `name` is a word of ours, which never names a person."""
    return _NOTHING if watched.begin is None else watched.begin(name)


async def ended(task: asyncio.Task[Any]) -> None:
    """Cancels a task whose result nobody needs any more, and waits for its end. Its error is dropped."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


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
