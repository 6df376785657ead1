"""The long bodies of a process: their memory, and the helper process that reads them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from handlers.core.concurrency import OVERLOADED, later
from handlers.core.long.helper import Helper, HelperFailed
from handlers.core.long.memory import BodyMemory, LongBody
from store.keyed_semaphore import KeyedSemaphore
from store.refused import Refused

LONG_REQUEST = 2**20
"""Bytes. A longer body is long: it is admitted before it arrives, and a helper process reads it."""
MEMORY = 256 * 2**20
WAIT_SECONDS = 30.0
"""Seconds that a body waits for the helper."""
READ_SECONDS = 15.0
"""Seconds that the helper may take for one body. The most hostile one of 32 MiB takes some three."""
IDLE_SECONDS = 60.0
"""Seconds after which a helper without work ends, so that it gives its memory back."""


class LongBodies:
    """`memory` is the share of long bodies. One helper process reads them, one after the other; each person has one
    body in its line."""

    def __init__(self, most: int = MEMORY, helper: Helper | None = None) -> None:
        self.memory = BodyMemory(most)
        self.helper = helper or Helper("handlers.ai.long_helper")
        self._people = KeyedSemaphore(1)
        self._turn = asyncio.Semaphore(1)
        self._idle: asyncio.TimerHandle | None = None

    async def ask(self, person: str, job: bytes, body: LongBody, gone: Callable[[], bool] = bool) -> bytes:
        """The helper's answer to a job about a person's body. Nothing is read for somebody who is `gone` when it is
        their turn. Raises Refused("temporarily_unavailable") if it takes too long."""
        try:
            async with asyncio.timeout(WAIT_SECONDS) as waiting, self._people.place(person), self._turn:
                waiting.reschedule(None)
                if gone():
                    raise Refused("invalid_request", "The connection was closed.")  # no sign of an overload
                return await asyncio.shield(asyncio.to_thread(self._ask, job, os.dup(body.file.fileno())))
        except (TimeoutError, HelperFailed):
            raise Refused(OVERLOADED.code, OVERLOADED.description, retry_after=later()) from None
        finally:
            self._rest_later()

    def _ask(self, job: bytes, file: int) -> bytes:
        # A copy of the body's file: nobody may be left to wait for this, and the body may be closed.
        try:
            return self.helper.ask(job, file, READ_SECONDS)
        finally:
            os.close(file)

    def _rest_later(self) -> None:
        loop = asyncio.get_running_loop()
        if self._idle is not None:
            self._idle.cancel()
        self._idle = loop.call_later(IDLE_SECONDS, loop.run_in_executor, None, self.helper.rest)

    def close(self) -> None:
        """Ends the helper."""
        if self._idle is not None:
            self._idle.cancel()
        self.helper.close()
