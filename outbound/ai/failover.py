"""The way of one call: which servers of its model are asked, one after the other, until one answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Self, TypeVar

from observability.metrics.measures import Measures
from outbound.ai.events import StreamEvent
from outbound.ai.failure import Elsewhere, Passing, UpstreamFailed
from outbound.ai.models import Asker, Model
from outbound.ai.ranking import ranked

log = logging.getLogger("latchkey.upstream")

T = TypeVar("T")

PAUSE = 0.1
"""Seconds before the second attempt at the only server of a model."""
MAX_PAUSE = 2.0
"""Seconds of a `Retry-After` that this attempt waits for; with a longer one the call fails."""


class Failover:
    """The servers for one call of a person and an app. The first by rank is asked, then each other one, as long as
    nothing was answered. An ejected server comes last, and one that asked for a pause gets no call. A model with one
    server gets a second attempt there."""

    def __init__(self, model: Model, person: str, app: str, measures: Measures) -> None:
        self._measures = measures
        self._candidates = ranked(model.candidates, person, app) if model.others else [model]
        self.model = self._candidates[0]
        """The model at the server that was asked last."""
        self._left = list(self._candidates)
        self._answered = self._again = False

    async def complete(self, request: Mapping[str, Any], asker: Asker) -> dict[str, Any]:
        """The whole reply. Raises UpstreamFailed."""
        return await self._ask(lambda model: model.upstream.complete(model, request, asker), asker)

    async def count_tokens(self, request: Mapping[str, Any], asker: Asker) -> int:
        """The number of tokens in a request. Raises UpstreamFailed."""
        return await self._ask(lambda model: model.upstream.count_tokens(model, request, asker), asker)

    def stream(self, request: Mapping[str, Any], asker: Asker) -> FailoverStream:
        """The events of the reply, as they arrive. No other server is asked after the first event."""

        async def begin(model: Model) -> tuple[AsyncGenerator[StreamEvent], StreamEvent]:
            events = model.upstream.stream(model, request, asker)
            try:
                first = await anext(events, None)
                if first is None:
                    raise Passing("upstream_error", f"{model.upstream.name}: the stream was empty")
            except BaseException:
                await events.aclose()
                raise
            return events, first

        return FailoverStream(lambda: self._ask(begin, asker))

    def succeed(self) -> None:
        """Notes that the answer is complete."""
        self.model.upstream.health.succeed()

    def fail(self, error: UpstreamFailed) -> None:
        """Notes a failure of the call. One that broke off an answer counts against the server that gave it."""
        if self._answered:
            self._note(error)

    async def _ask(self, attempt: Callable[[Model], Awaitable[T]], asker: Asker) -> T:
        """Asks one server after the other. Raises the last UpstreamFailed."""
        loop = asyncio.get_running_loop()
        following = self._next()
        if following is None:
            raise self._last(UpstreamFailed("overloaded", f"{self.model.model_id}: every server asked for a pause"))
        if len(self._candidates) == 1:
            # Both attempts together take no longer than one.
            asker.begins_by = loop.time() + following.upstream.limits.first_byte
        while True:
            model = self.model = following
            asker.ask(model.upstream.name)
            outcome = "cut"
            try:
                answer = await attempt(model)
                outcome, self._answered = "ok", True
                return answer
            except UpstreamFailed as error:
                outcome = error.code
                self._note(error)
                other = await self._after(error, asker)
                if other is None:
                    raise self._last(error) from None
                following = other
            finally:
                self._measures.attempted(model.upstream.name, model.model_id, outcome)

    def _next(self) -> Model | None:
        """The best server that was not asked yet and wants no pause."""
        ready = [one for one in self._left if not one.upstream.health.rests_for]
        best = min(ready, key=lambda one: one.upstream.health.ejected, default=None)
        self._left = [one for one in self._left if one is not best]
        return best

    async def _after(self, error: UpstreamFailed, asker: Asker) -> Model | None:
        """The model at the server to ask after a failure, if any."""
        if not isinstance(error, Elsewhere) or not asker.wanted:
            return None
        failed = self.model.upstream.name
        if len(self._candidates) > 1:
            if other := self._next():
                self._measures.failed_over(failed, other.model_id, error.code)
                log.warning("AI call goes on from %s to %s: %s", failed, other.upstream.name, error.detail)
            return other
        pause = max(PAUSE, error.retry_after or 0.0)
        if self._again or not isinstance(error, Passing) or pause > MAX_PAUSE:
            return None
        self._again = True
        await asyncio.sleep(pause)
        return self.model if asker.wanted else None

    def _note(self, error: UpstreamFailed) -> None:
        upstream = self.model.upstream
        if upstream.health.fail(error):
            self._measures.ejected(upstream.name)
            log.warning("%s failed several times in a row: other servers come first for a while", upstream.name)

    def _last(self, error: UpstreamFailed) -> UpstreamFailed:
        """The failure of the call. If all servers want a pause, the app learns when the first of them is back."""
        pause = min(one.upstream.health.rests_for for one in self._candidates)
        error.retry_after = pause or None
        return error


class FailoverStream:
    """The events of the server that answers. Costs an event nothing once the stream has begun."""

    def __init__(self, begin: Callable[[], Awaitable[tuple[AsyncGenerator[StreamEvent], StreamEvent]]]) -> None:
        self._begin: Callable[[], Awaitable[tuple[AsyncGenerator[StreamEvent], StreamEvent]]] | None = begin
        self._events: AsyncGenerator[StreamEvent] | None = None

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[StreamEvent]:
        return self._first() if self._events is None else self._events.__anext__()

    async def _first(self) -> StreamEvent:
        assert self._begin is not None
        self._events, first = await self._begin()
        self._begin = None  # it has the request
        return first

    async def aclose(self) -> None:
        """Ends the stream."""
        if self._events is not None:
            await self._events.aclose()
