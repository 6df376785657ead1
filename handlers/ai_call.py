"""One AI call: held, made, and settled or released, whatever happens on either side of it. SPEC 4.6."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Protocol

from tornado.iostream import StreamClosedError

from handlers.ai_errors import envelope
from handlers.errors import refusal_of
from metrics.measures import Measures
from outbound.events import Event, encoded
from outbound.failure import UpstreamFailed
from outbound.meter import Meter
from outbound.models import Model
from store.calls import MAX_REPLY_BYTES, Calls, Charge, Hold, Kept
from store.errors import StoreUnavailable
from store.refused import Refused

log = logging.getLogger("latchkey.ai")

PARTING = 1.0
"""Seconds that the end of an answer may take where the time of the call is over."""
STREAM = "text/event-stream; charset=utf-8"
WHOLE = "application/json"
BREATH = 0.005
"""Seconds after which a stream lets others have their turn."""
SETTLE_PAUSES = (0.25, 0.5, 1.0, 2.0, 0.0)
"""Seconds between the attempts at a settlement that nobody waits for; in all less than a hold outlives its call."""


class ClientGone(Exception):
    """The app hung up while it was being answered."""


class Client(Protocol):
    """The app's side of the call."""

    async def send(self, media_type: str, piece: bytes) -> None:
        """Sends a piece of the answer and waits until it is on its way. Raises StreamClosedError."""


class Call:
    """A call that is held. `deadline` is in the loop's time. With an idempotency key it runs to its end though the app
    hung up, so that the app finds the reply when it asks again."""

    def __init__(
        self,
        calls: Calls,
        hold: Hold,
        model: Model,
        request: Mapping[str, Any],
        deadline: float,
        measures: Measures,
    ) -> None:
        self._calls = calls
        self._measures = measures
        self._server = model.upstream.name
        self._asked_at: float | None = None
        self._hold = hold
        self._model = model
        self._request = {**request, "max_tokens": hold.output_tokens}
        self._deadline = deadline
        self._meter = Meter(request)
        self._gone = self._stopped = self._sending = self._begun = self._ended = False
        self._passed_on = 0.0
        self._limit: asyncio.Timeout | None = None
        self._kept: bytearray | None = bytearray() if hold.keyed else None

    def hang_up(self) -> None:
        """The app is gone, and the call ends now, unless it has a key."""
        self._gone = True
        if self._cut:
            self._end_now()

    def stop(self) -> None:
        """The server ends. So does a call with a key, which costs nothing then: the app asks again."""
        self._gone = self._stopped = True
        self._end_now()

    def _end_now(self) -> None:
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    @property
    def _flowing(self) -> bool:
        """Whether something goes out, and more than pings."""
        silent = asyncio.get_running_loop().time() - self._passed_on
        return self._begun and not self._gone and silent <= self._model.upstream.limits.between_events

    @property
    def _cut(self) -> bool:
        """Whether nobody is left for whom the call could go on."""
        return self._gone and not self._hold.keyed

    async def reply(self) -> tuple[Kept, Charge]:
        """The whole reply and what it cost. Raises Refused, StoreUnavailable, ClientGone; nothing is charged then."""
        try:
            async with asyncio.timeout_at(self._deadline) as self._limit:
                self._go_on()
                self._asked_at = asyncio.get_running_loop().time()
                reply = await self._model.upstream.complete(self._model, self._request)
            self._over("ok")
            self._limit = None
            self._meter.see_reply(reply)
            reply = {**reply, "model": self._model.model_id}
            reply.pop("credits", None)
            kept = Kept(WHOLE, encoded(reply)[:-1] + b',"credits":', b"}")
            return kept, await self._settle(*self._meter.used(), kept)
        except (UpstreamFailed, TimeoutError) as error:
            self._limit = None
            if isinstance(error, TimeoutError) and self._cut:
                raise ClientGone from None
            raise self._refusal(error) from None
        finally:
            self._limit = None
            await self._release()

    async def stream(self, client: Client) -> None:
        """Passes the reply on, event by event, with what it cost on the last `message_delta`.

        Raises Refused and StoreUnavailable as long as nothing has gone out; after that a failure is an event of the
        stream. Nothing is charged for a failure. Raises ClientGone when the app hung up: what it was sent is charged.
        """
        try:
            async with asyncio.timeout_at(self._deadline) as self._limit:
                last = await self._pass_all(client)
            self._over("ok")
            self._limit = None
            await self._end_stream(client, last)
        except (ClientGone, TimeoutError, UpstreamFailed, StoreUnavailable) as error:
            self._limit = None
            # Who stops reading until the time is over has got what was sent before, and pays for it.
            if isinstance(error, ClientGone) or (isinstance(error, TimeoutError) and (self._cut or self._sending)):
                await self._settle_delivered()
                raise ClientGone from None
            refusal = error if isinstance(error, StoreUnavailable) else self._refusal(error)
            if isinstance(error, TimeoutError) and self._flowing:
                # The limit is ours, and no failure of the server's: what went out is charged.
                await self._settle_delivered()
                refusal = Refused("upstream_timeout", _TOO_LONG)
            if not self._begun:
                raise refusal from None
            await self._release()
            await self._send_last(client, error_event(refusal_of(500, refusal)))
        finally:
            self._limit = None
            await self._release()

    async def _pass_all(self, client: Client) -> Event:
        """Passes on all but the last `message_delta`, which is returned: the charge belongs on it."""
        self._go_on()
        last = None
        loop = asyncio.get_running_loop()
        self._asked_at = loop.time()
        breath = loop.time() + BREATH
        async with aclosing(self._model.upstream.stream(self._model, self._request)) as events:
            async for event in events:
                self._meter.see_event(event.data)
                if event.name == "message_stop":
                    if last is None:
                        break
                    return last
                if last is not None and event.name != "ping":
                    await self._pass_on(client, last)
                    last = None
                if event.name == "message_delta":
                    last = event
                else:
                    await self._pass_on(client, self._named(event))
                # Nothing here waits while events come as fast as they go: other requests have their turn all the same.
                if loop.time() >= breath:
                    await asyncio.sleep(0)
                    breath = loop.time() + BREATH
        raise UpstreamFailed("upstream_error", f"{self._server}: the stream ended before its end")

    async def _pass_on(self, client: Client, event: Event) -> None:
        piece = event.encoded()
        self._keep(piece)
        await self._send(client, piece)
        self._begun = True
        if event.name != "ping":
            self._passed_on = asyncio.get_running_loop().time()
        self._meter.delivered(event.data)

    async def _send(self, client: Client, piece: bytes) -> None:
        """Raises ClientGone unless the call goes on without the app."""
        if not self._gone:
            self._sending = True
            try:
                await client.send(STREAM, piece)
            except StreamClosedError:
                self._gone = True
            self._sending = False
        self._go_on()

    def _go_on(self) -> None:
        """Raises ClientGone unless there is somebody to go on for."""
        if self._cut:
            raise ClientGone

    async def _send_last(self, client: Client, piece: bytes) -> None:
        """The end of an answer. Who does not take it in time is gone, too."""
        until = max(self._deadline, asyncio.get_running_loop().time() + PARTING)
        try:
            async with asyncio.timeout_at(until):
                await self._send(client, piece)
        except TimeoutError:
            raise ClientGone from None

    async def _end_stream(self, client: Client, last: Event) -> None:
        data = {name: value for name, value in last.data.items() if name != "credits"}
        head = b'event: message_delta\ndata: %b,"credits":' % encoded(data)[:-1]
        tail = b'}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
        self._keep(head)
        kept = Kept(STREAM, bytes(self._kept), tail) if self._kept is not None else None
        charge = await self._settle(*self._meter.used(), kept)
        await self._send_last(client, head + credits_of(charge) + tail)

    def _keep(self, piece: bytes) -> None:
        if self._kept is not None:
            self._kept += piece
            if len(self._kept) > MAX_REPLY_BYTES:
                self._kept = None

    def _named(self, event: Event) -> Event:
        """The beginning of a message names the model as the app knows it."""
        message = event.data.get("message")
        if event.name != "message_start" or not isinstance(message, dict):
            return event
        return Event(event.name, {**event.data, "message": {**message, "model": self._model.model_id}})

    async def _settle_delivered(self) -> None:
        """Charges what went out to an app that is gone, unless all was charged before; nobody waits, so a store that is
        away is asked again."""
        if self._ended:
            return
        for pause in SETTLE_PAUSES:
            try:
                await self._settle(*self._meter.used_so_far())
                return
            except StoreUnavailable:
                await asyncio.sleep(pause)
            except UpstreamFailed:
                break
        log.warning("hold %s ended before it was settled: what was delivered is not charged", self._hold.hold_id)

    async def _settle(self, input_tokens: int, output_tokens: int, kept: Kept | None = None) -> Charge:
        charge = await self._calls.settle(self._hold, input_tokens, output_tokens, kept)
        self._ended = True
        if charge is None:
            raise UpstreamFailed("upstream_timeout", f"{self._hold.hold_id}: its hold had ended")
        self._measures.charged(self._server, self._hold.asked.model, input_tokens, output_tokens, charge.charged)
        if self._hold.asked.price.cost(input_tokens, output_tokens) > charge.charged:
            log.warning(
                "AI call %s: %s reports %d and %d tokens, more than was held",
                self._hold.hold_id,
                self._server,
                input_tokens,
                output_tokens,
            )
        return charge

    async def _release(self) -> None:
        """Ends the hold if nothing else did. Where the store is away it ends by itself."""
        self._over("cut")
        if not self._ended:
            self._ended = True
            try:
                await self._calls.release(self._hold)
            except StoreUnavailable:
                log.warning("hold %s was not released and ends by itself", self._hold.hold_id)

    def _over(self, outcome: str) -> None:
        """The server has done with the call; the first who says so knows how."""
        if self._asked_at is not None:
            seconds = asyncio.get_running_loop().time() - self._asked_at
            self._asked_at = None
            self._measures.called_upstream(self._server, self._hold.asked.model, outcome, seconds)

    def _refusal(self, error: Exception) -> Refused:
        """The catalogue's error for a failed call."""
        if isinstance(error, UpstreamFailed):
            code, description, detail = error.code, error.description, error.detail
        else:
            code, description = "upstream_timeout", ""
            detail = f"{self._server}: more than {self._model.upstream.limits.total:g} s"
            detail = "the server stopped" if self._stopped else detail
        self._over("cut" if self._stopped else code)
        log.warning("AI call %s failed: %s: %s", self._hold.hold_id, code, detail)
        return Refused(code, description, window=self._hold.window)


_TOO_LONG = "The call took too long in all. What was sent until then was charged."


def credits_of(charge: Charge) -> bytes:
    """What a reply says of its cost, in micro-dollars."""
    return encoded({"charged": charge.charged, "remaining": charge.remaining})


def error_event(refusal: Refused) -> bytes:
    """A failure after the stream has begun."""
    return b"event: error\ndata: %b\n\n" % encoded(envelope(refusal))
