"""One AI call: held, made, then settled or released, whatever happens on either side. SPEC 4.6."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from tornado.iostream import StreamClosedError

from handlers.ai.connection import STREAM, WHOLE, AppConnection, ClientGone, cost_of
from handlers.ai.errors import CHARGED, seconds_of
from handlers.core.errors import refusal_of
from observability.metrics.measures import Measures
from outbound.ai.events import BrokenStream, StreamEvent, WrittenRequest
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.failover import Failover
from outbound.ai.failure import UpstreamFailed
from outbound.ai.leftover import BREATH, meter_leftover
from outbound.ai.models import Asker, Model
from outbound.ai.openai_meter import METERS
from store.credits.calls import MAX_REPLY_BYTES, Calls, Charge, Hold, StoredReply
from store.credits.prices import TokenCounts
from store.errors import StoreUnavailable
from store.refused import Refused

log = logging.getLogger("latchkey.ai")

PARTING = 1.0
"""Seconds to send the end of an answer after the call's time is over."""
TOGETHER = 32
"""The most events that are sent to the app in one piece."""
REPORT = 2.0
"""Seconds that an accepted stream without its app has to report its input."""
SETTLE_PAUSES = (0.25, 0.5, 1.0, 2.0, 0.0)
"""Seconds between the attempts at a settlement in the background. Their sum is less than a hold outlives its call."""


class Call(Asker):
    """A call with a hold. `deadline` is in the loop's time; `envelope` writes an error in the app's dialect. Once the
    model's server has accepted the call, it is charged, whatever happens. If the app hangs up, a whole reply still runs
    to its end, and so does a stream with an idempotency key, so that a retry finds the reply, and one whose input or
    hidden thinking only its end reports. Any other stream ends when its app hangs up."""

    def __init__(
        self,
        calls: Calls,
        hold: Hold,
        model: Model,
        exchange: ModelExchange,
        deadline: float,
        measures: Measures,
        envelope: Callable[[Refused], dict[str, Any]],
    ) -> None:
        self._calls = calls
        self._measures = measures
        self._failover = Failover(model, hold.user, hold.client, measures)
        self._server = self._failover.model.upstream.name
        self._asked_at: float | None = None
        self._hold = hold
        self._model = model
        self._exchange = exchange
        self._envelope = envelope
        self._request = exchange.ask(hold.output_tokens)
        self.headers, self.dialect = exchange.headers, exchange.asks
        self._deadline = deadline
        self._meter = METERS[exchange.asks](exchange.request)
        self._gone = self._stopped = self._streams = self._sending = self._begun = False
        self._ended, self._accepted = False, 0
        self._body = bytearray()
        self._limit: asyncio.Timeout | None = None
        self._stored: bytearray | None = bytearray() if hold.keyed else None
        self.charged = False
        """Whether the ledger has an entry for this call."""

    def hang_up(self) -> None:
        """The app is gone: a stream without a key ends as soon as its input is known."""
        self._gone = True
        self._hurry()

    def stop(self) -> None:
        """The server is stopping: ends the call at once, even with a key."""
        self._gone = self._stopped = True
        self._end_within(0.0)

    def accept(self) -> None:
        """The model's server answered 200: from now on the call costs the operator money, so it is charged."""
        self._accepted += 1
        self._hurry()

    def refuse(self) -> None:
        """The current attempt costs nothing after all. An earlier accepted attempt still does."""
        self._accepted -= 1

    def receive(self, body: bytearray) -> None:
        """The received part of a whole reply, or of a broken stream, is charged even if nobody can read it."""
        self._body = body

    @property
    def wanted(self) -> bool:
        """Whether anybody still wants a second attempt."""
        return self._hold.keyed or not self._gone

    def _hurry(self) -> None:
        # Servers report the input right after their 200. An app that hangs up before that must not get it for free.
        if self._cut and self._accepted:
            self._end_within(0.0 if self._meter.begun else REPORT)

    def _end_within(self, seconds: float) -> None:
        limit, until = self._limit, asyncio.get_running_loop().time() + seconds
        if limit is not None and not limit.expired() and until < (limit.when() or self._deadline):
            limit.reschedule(until)

    @property
    def _cut(self) -> bool:
        """Whether this is a stream that nobody wants any more, and whose charge needs no report of its end."""
        late = self._exchange.late and self._accepted and not self._stopped
        return self._streams and not self.wanted and not late

    def ask(self, server: str) -> None:
        """A server of the model is asked from now on."""
        self._server = server
        self._asked_at = asyncio.get_running_loop().time()

    def _require_app(self) -> None:
        """Raises ClientGone if nobody wants the reply."""
        if not self.wanted:
            raise ClientGone

    async def reply(self) -> tuple[StoredReply, Charge]:
        """The whole reply and its cost. Raises Refused, StoreUnavailable, and ClientGone if the app hung up before the
        model's server was asked."""
        try:
            async with asyncio.timeout_at(self._deadline) as self._limit:
                self._require_app()
                reply = await self._failover.complete(self._request, self)
            self._body = bytearray()
            self._over("ok")
            self._limit = None
            self._meter.see_reply(reply)
            await self._meter.count_input()
            tokens = self._meter.used()
            try:
                stored = StoredReply(WHOLE, *self._exchange.whole(reply, tokens))
            except BrokenStream as error:
                raise self._senseless(error) from None
            return stored, await self._settle(tokens, stored)
        except (UpstreamFailed, TimeoutError) as error:
            self._limit = None
            raise await self._failed(error) from None
        finally:
            self._limit = None
            await self._release()

    async def stream(self, client: AppConnection) -> None:
        """Passes the reply on, event by event. Its end gets the cost.

        Raises Refused and StoreUnavailable before anything is sent; a later failure is an event of the stream. Raises
        ClientGone if the app hung up or stopped reading. Once the model's server has accepted it, an incomplete stream
        is charged its input and the output received.
        """
        self._streams = True
        try:
            self._require_app()
            await self._pass_in_time(client)
            self._over("ok")
            self._limit = None
            await self._end_stream(client)
        except (ClientGone, TimeoutError, UpstreamFailed, StoreUnavailable) as error:
            self._limit = None
            if self._left_by(error):
                await self._settle_received()
                raise ClientGone from None
            refusal = error if isinstance(error, StoreUnavailable) else await self._failed(error)
            if not self._begun:
                raise refusal from None
            await self._release()
            await self._send_last(client, self._exchange.fail(self._envelope(refusal_of(500, refusal))))
        finally:
            self._limit = None
            await self._release()

    def _left_by(self, error: Exception) -> bool:
        """Whether the app is gone: it hung up, or did not read until the time was over."""
        return isinstance(error, ClientGone) or (isinstance(error, TimeoutError) and (self._cut or self._sending))

    def _senseless(self, error: BrokenStream) -> UpstreamFailed:
        """The failure of a call whose answer makes no sense."""
        return UpstreamFailed("upstream_error", f"{self._server}: {error}")

    async def _pass_in_time(self, client: AppConnection) -> None:
        """Passes events on within the call's time. If the app is gone, meters what was on its way to the app."""
        async with aclosing(self._failover.stream(self._request, self)) as events:
            try:
                async with asyncio.timeout_at(self._deadline) as self._limit:
                    await self._pass_all(client, events)
            except BrokenStream as error:
                raise self._senseless(error) from None
            except (ClientGone, TimeoutError) as error:
                self._limit = None
                if self._begun and self._left_by(error) and not self._stopped:
                    await meter_leftover(events, self._meter)
                raise

    async def _pass_all(self, client: AppConnection, events: AsyncIterator[StreamEvent]) -> None:
        """Passes on all events except the end, which carries the charge. Raises BrokenStream."""
        exchange, meter, loop = self._exchange, self._meter, asyncio.get_running_loop()
        breath = loop.time() + BREATH
        pieces: list[bytes] = []
        async for event in events:
            meter.see(event)
            try:
                if piece := exchange.feed(event):
                    pieces.append(piece)
            except BrokenStream:
                await self._pass_pieces(client, pieces)
                raise
            # Events that arrived together are sent together: most of the cost of an event is handing it to the system.
            if event.more and not exchange.done and len(pieces) < TOGETHER:
                continue
            await self._pass_pieces(client, pieces)
            if exchange.done:
                return
            # Nobody asks again, and a stream may wait for minutes.
            if isinstance(asked := self._request, WrittenRequest) and asked:
                self._meter.let_go(self._exchange.let_go(asked))
            # Fast events never block here, so yield to other requests.
            if loop.time() >= breath:
                await asyncio.sleep(0)
                breath = loop.time() + BREATH
        raise BrokenStream("the stream ended before its end")

    async def _pass_pieces(self, client: AppConnection, pieces: list[bytes]) -> None:
        if pieces:
            piece = b"".join(pieces)
            pieces.clear()
            self._keep(piece)
            self._begun = True
            await self._send(client, piece)

    async def _send(self, client: AppConnection, piece: bytes) -> None:
        """Raises ClientGone, unless the call continues without the app, if only until its input is known."""
        if not self._gone:
            self._sending = True
            try:
                await client.send(STREAM, piece)
            except StreamClosedError:
                self._gone = True
            self._sending = False
        if self._cut and self._meter.begun:
            raise ClientGone

    async def _send_last(self, client: AppConnection, piece: bytes) -> None:
        """Sends the end of an answer. An app that doesn't read it in time counts as gone."""
        until = max(self._deadline, asyncio.get_running_loop().time() + PARTING)
        try:
            async with asyncio.timeout_at(until):
                await self._send(client, piece)
        except TimeoutError:
            raise ClientGone from None

    async def _end_stream(self, client: AppConnection) -> None:
        await self._meter.count_input()
        tokens = self._meter.used()
        try:
            head, tail = self._exchange.end(tokens)
        except BrokenStream as error:
            raise self._senseless(error) from None
        self._keep(head)
        stored = StoredReply(STREAM, bytes(self._stored), tail) if self._stored is not None else None
        charge = await self._settle(tokens, stored)
        await self._send_last(client, head + cost_of(self._exchange, charge, reads=self._hold.reads_credits) + tail)

    def _keep(self, piece: bytes) -> None:
        if self._stored is not None:
            self._stored += piece
            if len(self._stored) > MAX_REPLY_BYTES:
                self._stored = None

    async def _settle_received(self) -> None:
        """Charges a call that was cut short for its use so far, unless it was charged before or never accepted. Nobody
        waits for this, so it retries while the store is away."""
        if self._ended or not self._accepted:
            return
        if self._body:
            await asyncio.to_thread(self._meter.see_bytes, self._body, self._hold.output_tokens)
        await self._meter.count_input()
        for pause in SETTLE_PAUSES:
            try:
                await self._settle(self._meter.used_so_far())
                return
            except StoreUnavailable:
                await asyncio.sleep(pause)
            except UpstreamFailed:
                break
        log.warning("hold %s ended before its settlement: the call is not charged", self._hold.hold_id)

    async def _settle(self, tokens: TokenCounts, stored: StoredReply | None = None) -> Charge:
        charge = await self._calls.settle(self._hold, tokens, stored)
        self._ended = True
        if charge is None:
            raise UpstreamFailed("upstream_timeout", f"{self._hold.hold_id}: its hold had ended")
        self.charged = charge.charged > 0
        self._measures.charged(self._server, self._hold.estimate.model, tokens.prompt, tokens.output, charge.charged)
        if self._meter.shrank:
            log.warning("AI call %s: %s reports less than before", self._hold.hold_id, self._server)
        if self._hold.estimate.price.cost(tokens) > charge.charged:
            figures = self._hold.hold_id, self._server, tokens.prompt, tokens.output
            log.warning("AI call %s: %s reports %d and %d tokens, more than was held", *figures)
        return charge

    async def _release(self) -> None:
        """Ends the hold if nothing else did. While the store is away, the hold expires by itself."""
        self._over("cut")
        if not self._ended:
            self._ended = True
            try:
                await self._calls.release(self._hold)
            except StoreUnavailable:
                log.warning("hold %s was not released and expires by itself", self._hold.hold_id)

    def _over(self, outcome: str) -> None:
        """Notes how the model's server ended the call. Only the first outcome counts."""
        if self._asked_at is not None:
            seconds = asyncio.get_running_loop().time() - self._asked_at
            self._asked_at = None
            self._measures.called_upstream(self._server, self._hold.estimate.model, outcome, seconds)
            if outcome == "ok":
                self._failover.succeed()

    async def _failed(self, error: Exception) -> Refused:
        """The catalogue's error for a failed call. Charges its use if the model's server had accepted it."""
        if isinstance(error, UpstreamFailed):
            code, description, detail, param = error.code, error.description, error.detail, error.param
            self._failover.fail(error)
            retry_after = error.retry_after
        else:
            code, description, param, retry_after = "upstream_timeout", "", None, None
            detail = f"{self._server}: more than {self._model.total:g} s"
            detail = "the server stopped" if self._stopped else detail
        self._over("cut" if self._stopped else code)
        log.warning("AI call %s failed: %s: %s", self._hold.hold_id, code, detail)
        await self._settle_received()
        if self.charged:
            description = CHARGED[code]
        after = seconds_of(retry_after)
        return Refused(code, description, window=self._hold.window, retry_after=after, param=param)
