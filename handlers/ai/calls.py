"""Calls of AI models that the person pays for, in any dialect: read, hold, call, settle. SPEC 4.6."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any, cast

from tornado.http1connection import HTTP1Connection

from handlers.ai.asked import Sent, read_exchange
from handlers.ai.base import AIHandler
from handlers.ai.call import Call
from handlers.ai.connection import ClientGone, cost_of
from handlers.ai.errors import envelope
from handlers.ai.long_call import read_long
from handlers.ai.long_jobs import ReadJob
from handlers.core.long.handler import LongBodyHandler
from handlers.core.long.memory import LongBody
from handlers.core.params import media_type
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.models import Model
from store.credits.calls import CallEstimate, Charge, ReplayedCall, StoredReply
from store.errors import StoreUnavailable
from store.refused import Refused
from store.results import Caller, Window

IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
ReadCall = tuple[ModelExchange, Model, int, Window | None]


class ExchangeHandler(LongBodyHandler, AIHandler):
    """A request whose body is for a model."""

    reader = "messages"
    """The name of the reader in `handlers/ai/asked.py`."""
    betas = "Anthropic-Beta"
    """The header with betas of the API."""
    dialect = ""
    """The API of the request, for the digest of a call with an idempotency key; empty for the Messages API."""
    digest = ""
    """The digest of a long request with an idempotency key."""

    async def count(self, caller: Caller) -> Window:
        """Counts the request before its body is read. Raises Refused."""
        return await self.store.calls.check_call(caller, self.needed)

    def sent(self) -> Sent:
        """The request, without a long body."""
        request = self.request
        betas = request.headers.get_list(self.betas)
        return Sent(self.reader, media_type(request), request.body, self.version(), betas)

    def version(self) -> str:
        """The version of the API that the app speaks; empty if it names none."""
        return ""

    async def read(self, caller: Caller, window: Window | None = None) -> ReadCall:
        """The request, its model, an upper bound of its input tokens, and the figures of the window that has counted
        it; see `read_body`. Raises Refused."""
        if self.long is not None and self.admitted is not None:
            return await self._read_long(caller, self.long, self.admitted[1])
        sent, models = self.sent(), self.site.models
        (exchange, model, bound), window = await self.read_body(
            caller.user, lambda: read_exchange(sent, models), partial(self.count, caller), window
        )
        return exchange, model, bound, window

    async def _read_long(self, caller: Caller, body: LongBody, window: Window) -> ReadCall:
        try:
            keyed = "Idempotency-Key" in self.request.headers
            job = ReadJob(self.sent(), tuple(self.site.models.all()), self.dialect, keyed)
            found = await read_long(self.site, caller.user, job, body, lambda: self.gone)
        except Refused as refusal:
            refusal.window = window
            raise
        self.digest = found.digest
        return found.exchange, found.model, found.bound, window


class CallHandler(ExchangeHandler):
    """Makes a call: hold, call, settle."""

    @classmethod
    def envelope(cls, refusal: Refused) -> dict[str, Any]:
        """An error in the middle of a stream, in the app's dialect."""
        return envelope(refusal)

    async def post(self) -> None:
        """Answers with the reply, whole or in events, and its cost."""
        began = asyncio.get_running_loop().time()
        caller = await self.caller()
        # Take a place before anything is held. The holds themselves limit each person's calls.
        with self.site.ai_calls.place():
            await self.answer_call(caller, began)

    async def answer_call(self, caller: Caller, began: float) -> None:
        """Makes the call. Its time counts from `began`, in the loop's time."""
        key = self.idempotency_key()
        exchange, model, input_tokens, counted = await self.read(caller)
        price = model.price()
        assert price is not None
        estimate = CallEstimate(
            model=model.model_id,
            price=price,
            input_tokens=model.max_input * (1 + exchange.searches) if exchange.searches else input_tokens,
            output_tokens=exchange.most_output * exchange.choices,
            least_output=exchange.least_output,
            lasts=round((model.total + self.site.hold_margin) * 1000),
            key=key,
            body=b"" if key is None else self.request.body,
            digest=self.digest,
            dialect=self.dialect,
            fee=exchange.searches * (price.web_search or 0),
        )
        try:
            held = await self.store.calls.hold(caller, self.needed, estimate, counted=counted is not None)
        except StoreUnavailable:
            self.site.in_background(self.store.calls.abandon(caller, estimate))
            raise
        self.write_window(held.window)
        if isinstance(held, ReplayedCall):
            self.set_header("Idempotent-Replayed", "true")
            return self.write_reply(exchange, held.stored, held.charge, reads=held.reads_credits)
        del estimate
        self.request.body = b""  # a call may take minutes, and keeps the part that it forwards
        deadline = began + model.total
        call = Call(self.store.calls, held, model, exchange, deadline, self.site.measures, self.envelope)
        await self.make(call, exchange, reads=held.reads_credits)

    async def make(self, call: Call, exchange: ModelExchange, *, reads: bool) -> None:
        """Makes the call that is on hold."""
        self.step_aside()
        self.call = call
        self.site.endings.add(call.stop)
        if self.gone:
            call.hang_up()
        try:
            if not exchange.stream:
                return self.write_reply(exchange, *await call.reply(), reads=reads)
            await call.stream(self)
        except ClientGone:
            # A client that still reads must not take the part so far for the whole.
            cast(Any, self.request.connection).close()
        finally:
            self.site.endings.discard(call.stop)
        self.finish()

    async def send(self, media_type: str, piece: bytes) -> None:
        """A piece of a stream. Raises StreamClosedError."""
        if not self.head_sent:
            self.set_header("Content-Type", media_type)
            self.set_header("X-Accel-Buffering", "no")  # otherwise a proxy may hold events back
            # Otherwise TCP would hold each event back until the app has acknowledged the last. Tornado resets this at
            # the end.
            cast(HTTP1Connection, self.request.connection).stream.set_nodelay(True)
        self.streamed += len(piece)
        self.write(piece)
        await self.flush()

    def write_reply(self, exchange: ModelExchange, stored: StoredReply, charge: Charge, *, reads: bool) -> None:
        """Writes the whole answer, with the cost in its place."""
        body = stored.head + cost_of(exchange, charge, reads=reads) + stored.tail
        self.write_whole(body, {"Content-Type": stored.media_type})

    def on_connection_close(self) -> None:
        """Called when the app hangs up."""
        super().on_connection_close()
        if self.call is not None:
            self.call.hang_up()

    def idempotency_key(self) -> str | None:
        """The key with which the app may retry. Raises Refused("invalid_request")."""
        keys = self.request.headers.get_list("Idempotency-Key")
        if not keys:
            return None
        if len(keys) > 1 or not IDEMPOTENCY_KEY.fullmatch(keys[0]):
            raise Refused("invalid_request", "Idempotency-Key is 1 to 255 printable ASCII characters without spaces.")
        return keys[0]
