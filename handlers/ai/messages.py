"""/api/v1/ai: calls in the dialect of the Messages API, also at the address that its official SDKs use."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from handlers.ai.calls import CallHandler, ExchangeHandler
from handlers.ai.errors import envelope, seconds_of
from outbound.ai.failover import Failover
from outbound.ai.failure import UpstreamFailed
from outbound.ai.models import Asker
from store.refused import Refused
from store.results import Caller, Window

log = logging.getLogger("latchkey.ai")


class MessagesHandler(CallHandler):
    """Makes a call."""

    def version(self) -> str:
        """The first one, if there are several."""
        return (*self.request.headers.get_list("Anthropic-Version"), "")[0]


class SdkHandler(ExchangeHandler):
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


class SdkCountHandler(SdkMessagesHandler):
    """Counts the tokens of a request."""

    reader = "count"

    async def count(self, caller: Caller) -> Window:
        """Counts the request among those that charge nothing. Raises Refused."""
        return await self.store.calls.check(caller, self.needed)

    async def post(self) -> None:
        """Answers with the number. Charges nothing. Raises Refused."""
        caller = await self.caller()
        window = self.admitted[1] if self.admitted else await self.count(caller)
        self.write_window(window)
        exchange, model, *_ = await self.read(caller, window)
        try:
            with self.site.ai_calls.place(caller.user, window=window):
                self.step_aside()
                asker = Asker()
                asker.headers = exchange.headers
                servers = Failover(model, caller.user, caller.client, self.site.measures)
                async with asyncio.timeout(model.total):
                    number = await servers.count_tokens(exchange.request, asker)
        except TimeoutError:
            raise Refused("upstream_timeout", window=window) from None
        except UpstreamFailed as error:
            log.warning("counting tokens failed: %s: %s", error.code, error.detail)
            after = seconds_of(error.retry_after)
            raise Refused(error.code, error.description, window=window, retry_after=after) from None
        self.write_json({"input_tokens": number})
