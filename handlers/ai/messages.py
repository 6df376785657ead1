"""/api/v1/ai: calls of AI models that the person pays for, and other calls of the Messages API's official SDKs. SPEC
4.6."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from tornado.http1connection import HTTP1Connection

from handlers.ai.call import Call, ClientGone, credits_of
from handlers.ai.errors import envelope, seconds_of
from handlers.ai.limit_headers import NAMES, limit_headers
from handlers.ai.request import AIRequest, read_request
from handlers.core.api import ApiHandler
from handlers.core.base import EXPOSED
from handlers.core.format import iso
from handlers.core.params import FORM, media_type
from outbound.ai.dialects.messages_same import check, forwarded_headers
from outbound.ai.dialects.rules import Untranslatable
from outbound.ai.failover import Failover
from outbound.ai.failure import UpstreamFailed
from outbound.ai.models import Asker, Model
from runtime.http.tornado_private import answer_fields, put_fields
from store.credits.calls import CallEstimate, Charge, ReplayedCall, StoredReply
from store.credits.credits import CURRENCY, SCALE
from store.credits.prices import Price
from store.errors import StoreUnavailable
from store.refused import Refused
from store.results import Caller, Window

log = logging.getLogger("latchkey.ai")

SHOWN_PRICES = {
    "input": "input",
    "output": "output",
    "cache_read": "cacheRead",
    "cache_write": "cacheWrite",
    "cache_write_1h": "cacheWrite1h",
}
"""The kinds of tokens, and the names of their prices."""
IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
ACCESS_PREFIX = "lk_at_"
"""The prefix of access tokens. A header `X-Api-Key` with anything else is ignored."""
SDK_HEADERS = (
    *("Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "X-Api-Key"),
    *(f"X-Stainless-{name}" for name in ("Arch", "Lang", "OS", "Package-Version", "Retry-Count", "Runtime")),
    *("X-Stainless-Runtime-Version", "X-Stainless-Timeout", "X-Stainless-Helper-Method", "X-Stainless-Helper"),
)


class AIHandler(ApiHandler):
    """A call that concerns a model."""

    allowed_headers = f"{ApiHandler.allowed_headers}, {', '.join(SDK_HEADERS)}"

    constant_headers = (
        *(field for field in ApiHandler.constant_headers if field[0] != "Access-Control-Expose-Headers"),
        ("Access-Control-Expose-Headers", f"{EXPOSED}, {', '.join(NAMES)}"),
    )

    def write_window(self, window: Window) -> None:
        """Writes the figures under the names that SDKs know, too."""
        super().write_window(window)
        put_fields(answer_fields(self), limit_headers(window))

    @property
    def max_body(self) -> int:
        """Larger than for other requests, because conversations are long."""
        return self.site.max_ai_request

    async def caller(self) -> Caller:
        """As everywhere. Without `Authorization`, an access token in `X-Api-Key` counts as a bearer token: clients
        of the Messages API send their key there. Raises Refused."""
        headers = self.request.headers
        keys = headers.get_list("X-Api-Key")
        if len(keys) == 1 and keys[0].startswith(ACCESS_PREFIX) and "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {keys[0]}"
        return await super().caller()

    def model(self, model_id: str) -> Model:
        """The model with this id. Raises Refused("not_found")."""
        model = self.site.models.find(model_id)
        if model is None:
            raise Refused("not_found", "There is no model of this name; GET /api/v1/ai/models lists them.")
        return model

    call: Call | None = None
    forwarded_headers: Mapping[str, str] = {}
    """The headers of the request that go to the model's server."""

    def write_refusal(self, refusal: Refused) -> None:
        """Tells the SDKs, which retry after any 409 and 5xx, if a retry would fail or be charged again."""
        if refusal.code == "idempotency_reply_gone" or (self.call is not None and self.call.charged):
            self.set_header("X-Should-Retry", "false")
        super().write_refusal(refusal)

    async def read(
        self, caller: Caller, window: Window | None = None, *, counting: bool = False
    ) -> tuple[AIRequest, Model, int, Window | None]:
        """The request, its model, an upper bound of its input tokens, and the figures of the window that has counted
        it; see `read_body`. Sets `forwarded_headers`. Raises Refused."""

        def read() -> tuple[AIRequest, Model, int]:
            request = read_request(self.body(), form=media_type(self.request) == FORM, counting=counting)
            model = self.model(request.model)
            strict = model.refuses_unknown
            version, betas = (self.request.headers.get_list(name) for name in ("Anthropic-Version", "Anthropic-Beta"))
            try:
                if strict:
                    check(request.forwarded, strict=True)
                self.forwarded_headers = forwarded_headers(version[0] if version else "", betas, strict=strict)
            except Untranslatable as error:
                raise Refused("invalid_request", str(error)) from None
            bound = model.most_input(request.forwarded, request.size)
            if bound > model.max_input:
                raise Refused("invalid_request", f"This model reads at most {model.max_input} tokens.")
            return request, model, bound

        admit = partial(self.store.calls.check_call, caller, self.needed)
        (request, model, bound), window = await self.read_body(caller.user, read, admit, window)
        return request, model, bound, window


class MessagesHandler(AIHandler):
    """Makes a call: hold, call, settle."""

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
        request, model, input_tokens, counted = await self.read(caller)
        price = model.price()
        assert price is not None
        forwarded = {**request.forwarded, "max_tokens": request.max_tokens}
        estimate = CallEstimate(
            model=model.model_id,
            price=price,
            input_tokens=input_tokens,
            output_tokens=min(request.max_tokens, model.max_output),
            least_output=request.least_output,
            lasts=round((model.total + self.site.hold_margin) * 1000),
            key=key,
            body=self.request.body,
        )
        try:
            held = await self.store.calls.hold(caller, self.needed, estimate, counted=counted is not None)
        except StoreUnavailable:
            self.site.in_background(self.store.calls.abandon(caller, estimate))
            raise
        self.write_window(held.window)
        if isinstance(held, ReplayedCall):
            self.set_header("Idempotent-Replayed", "true")
            return self.write_reply(held.stored, held.charge, reads=held.reads_credits)
        del estimate
        self.request.body = b""  # a call may take minutes, and keeps the part that it forwards
        deadline = began + model.total
        call = Call(self.store.calls, held, model, forwarded, deadline, self.site.measures)
        call.headers = self.forwarded_headers
        await self.make(call, request.stream, reads=held.reads_credits)

    async def make(self, call: Call, stream: bool, *, reads: bool) -> None:
        """Makes the call that is on hold."""
        self.step_aside()
        self.call = call
        self.site.endings.add(call.stop)
        if self.gone:
            call.hang_up()
        try:
            if not stream:
                return self.write_reply(*await call.reply(), reads=reads)
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

    def write_reply(self, stored: StoredReply, charge: Charge, *, reads: bool) -> None:
        """Writes the whole answer, with the cost in its place."""
        self.set_header("Content-Type", stored.media_type)
        self.finish(stored.head + credits_of(charge, reads=reads) + stored.tail)

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


class ModelsHandler(AIHandler):
    """The models and their prices."""

    async def get(self) -> None:
        """Answers with all models. Prices are in micro-dollars per million tokens."""
        self.write_window(await self.store.calls.check(await self.caller(), self.needed))
        models = []
        for model in self.site.models.all():
            price = model.price()
            assert price is not None
            prices = {"version": price.version, **prices_of(price)}
            models.append(
                {
                    "id": model.model_id,
                    "displayName": model.display_name,
                    "maxInputTokens": model.max_input,
                    "maxOutputTokens": model.max_output,
                    "pricePerMillionTokens": {**prices, "currency": CURRENCY, "scale": SCALE},
                }
            )
        self.write_json({"models": models})


class SdkHandler(AIHandler):
    """An address that the SDKs use. Errors are in the format that they know."""

    def set_default_headers(self) -> None:
        """Puts the request id where the SDKs look for it."""
        super().set_default_headers()
        self.set_header("Request-Id", self.request_id)

    @classmethod
    def error_body(cls, refusal: Refused, request_id: str) -> dict[str, Any]:
        """The error in the SDKs' format."""
        return {**envelope(refusal), "request_id": request_id}


class SdkMessagesHandler(SdkHandler, MessagesHandler):
    """The same call, at the SDKs' address."""


class SdkCountHandler(SdkHandler):
    """Counts the tokens of a request."""

    async def post(self) -> None:
        """Answers with the number. Charges nothing. Raises Refused."""
        caller = await self.caller()
        self.write_window(window := await self.store.calls.check(caller, self.needed))
        request, model, *_ = await self.read(caller, window, counting=True)
        try:
            with self.site.ai_calls.place(caller.user, window=window):
                self.step_aside()
                asker = Asker()
                asker.headers = self.forwarded_headers
                failover = Failover(model, caller.user, caller.client, self.site.measures)
                async with asyncio.timeout(model.total):
                    number = await failover.count_tokens(request.forwarded, asker)
        except TimeoutError:
            raise Refused("upstream_timeout", window=window) from None
        except UpstreamFailed as error:
            log.warning("counting tokens failed: %s: %s", error.code, error.detail)
            after = seconds_of(error.retry_after)
            raise Refused(error.code, error.description, window=window, retry_after=after) from None
        self.write_json({"input_tokens": number})


class SdkModelsHandler(SdkHandler):
    """The models in the SDKs' format."""

    async def get(self) -> None:
        """Answers with all models on one page."""
        self.write_window(await self.store.calls.check(await self.caller(), self.needed))
        models = [described(model) for model in self.site.models.all()]
        ids = [model["id"] for model in models]
        page = {
            "object": "list",
            "first_id": ids[0] if ids else None,
            "last_id": ids[-1] if ids else None,
            "has_more": False,
        }
        self.write_json({"data": models, **page})


class SdkModelHandler(SdkHandler):
    """One model in the SDKs' format."""

    async def get(self, model_id: str) -> None:
        """Answers with the model."""
        self.write_window(await self.store.calls.check(await self.caller(), self.needed))
        self.write_json(described(self.model(model_id)))


def described(model: Model) -> dict[str, Any]:
    """A model in the formats of the Messages API and of the OpenAI API, with its prices."""
    price = model.price()
    assert price is not None
    return {
        "type": "model",
        "id": model.model_id,
        "display_name": model.display_name,
        "created_at": iso(model.created_at),
        "object": "model",
        "owned_by": "latchkey",
        "created": int(model.created_at.timestamp()),
        **prices_of(price),
    }


def prices_of(price: Price) -> dict[str, int]:
    """The price of each kind of tokens, in micro-dollars per million."""
    return {shown: price.of(kind) for kind, shown in SHOWN_PRICES.items()}
