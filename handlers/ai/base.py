"""What all calls that concern AI models share: who calls, the figures of their window, the size of a body."""

from __future__ import annotations

from handlers.ai.asked import find_model
from handlers.ai.call import Call
from handlers.ai.limit_headers import NAMES, limit_headers
from handlers.core.api import ApiHandler
from handlers.core.base import EXPOSED
from outbound.ai.models import Model
from runtime.http.tornado_private import answer_fields, put_fields
from store.refused import Refused
from store.results import Caller, Window

ACCESS_PREFIX = "lk_at_"
"""The prefix of access tokens. A header `X-Api-Key` with anything else is ignored."""
SDK_HEADERS = (
    *("Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "X-Api-Key"),
    *("OpenAI-Beta", "OpenAI-Organization", "OpenAI-Project"),
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
        return find_model(self.site.models, model_id)

    call: Call | None = None

    def write_refusal(self, refusal: Refused) -> None:
        """Tells the SDKs, which retry after any 409 and 5xx, if a retry would fail or be charged again."""
        if refusal.code == "idempotency_reply_gone" or (self.call is not None and self.call.charged):
            self.set_header("X-Should-Retry", "false")
        super().write_refusal(refusal)
