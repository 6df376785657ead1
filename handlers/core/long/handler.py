"""A handler that takes long bodies: their sender is admitted before the body is read."""

from __future__ import annotations

from typing import Any, cast

from handlers.core.api import ApiHandler
from handlers.core.long.bodies import LONG_REQUEST
from handlers.core.long.memory import LongBody
from runtime.http.tornado_private import field_of, has_field
from store.refused import Refused
from store.results import Caller, Window


class LongBodyHandler(ApiHandler):
    """Before a body of more than LONG_REQUEST bytes is read, its token is checked, the window counts the request, and
    its length is taken from the memory for long bodies. Until the request ends, that memory has the body."""

    takes_long = True
    long: LongBody | None = None
    """The long body, from its admission on."""
    admitted: tuple[Caller, Window] | None = None
    """Who sends the long body, and the window that counted it."""
    over = False
    """Whether the request has ended."""

    async def count(self, caller: Caller) -> Window:
        """Checks the token and counts the request before its body is read. Raises Refused."""
        raise NotImplementedError

    async def caller(self) -> Caller:
        """As everywhere; a long body's sender is known already."""
        return self.admitted[0] if self.admitted is not None else await super().caller()

    async def admit(self, length: int | None) -> None:
        """Admits a long body; `length` is None if it comes in chunks. Otherwise answers with the refusal."""
        await self.before_body(self._admit(length))

    async def _admit(self, length: int | None) -> None:
        connection, memory = cast(Any, self.request.connection), self.site.long_bodies.memory
        size = self.max_body if length is None else length
        # A body that is too large is refused here, in the format of the address, and not by the server.
        connection.set_max_body_size(max(size, self.max_body) + LONG_REQUEST)
        connection.body_counts = False
        try:
            if size > self.max_body:
                raise Refused(self.too_large)
            caller = await self.caller()
            memory.require(size)  # the window does not count a request that finds no room
            window = await self.count(caller)
            if not self.over:
                self.long = LongBody(memory.take(caller.user, size, window))
                self.admitted = caller, window
                self.step_aside()
        except Exception:
            if not self.over:  # otherwise nobody reads the answer
                raise

    def receive(self, piece: bytes) -> None:
        """Takes a piece of the long body, unless it was refused."""
        if self.long is None or self.over:
            return
        try:
            if self.long.size + len(piece) > self.max_body:
                raise Refused(self.too_large)
            self.long.write(piece)
        except (Refused, OSError) as error:
            self.refuse_body(error)

    def complete(self) -> bool:
        """Called when the body has arrived. Returns whether the request is still to be answered."""
        if self.long is not None and not self.over:
            self.long.now_has(self.long.size)
        return not self.over

    def lost(self) -> None:
        """Called when the client leaves before its body has arrived."""
        self.gone = True
        if not self.head_sent:
            self.on_finish()

    def on_finish(self) -> None:
        """Frees the memory, once."""
        if not self.over:
            self.over = True
            if self.long is not None:
                self.long.close()
            super().on_finish()


def long_length(headers: Any) -> tuple[bool, int | None]:
    """Whether a body is long or may be, by its head, and its length if that is known."""
    if has_field(headers, "Transfer-Encoding"):
        return True, None
    length = field_of(headers, "Content-Length")
    return (True, int(length)) if length.isdecimal() and int(length) > LONG_REQUEST else (False, None)
