"""A server that speaks the APIs of OpenAI, chat/completions and responses, over HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from outbound.ai.dialects.same import is_measured, pictures
from outbound.ai.messages import OVERHEAD_TOKENS, MessagesUpstream
from outbound.ai.models import NOBODY, Asker, Model
from outbound.ai.tokens import count_aside

IMAGE_TOKENS = 50_000
"""The most that a known model reads for one image: eight tiles of 5,667 tokens, and 2,833 more."""
_VERSION = re.compile(r"/v[0-9]+[a-z0-9]*(?:/|$)")


class OpenAIUpstream(MessagesUpstream):
    """One server. `url` is the part before `/chat/completions`; without a version in its path, `/v1` is added. `key` is
    sent as a bearer token."""

    dialect = "openai"

    @staticmethod
    def address(url: str) -> str:
        """The URL with its version."""
        path = url.partition("://")[2].partition("/")[2]
        return url if _VERSION.search(f"/{path}") else f"{url}/v1"

    @staticmethod
    def headers_with(key: str) -> dict[str, str]:
        """The headers of each request, with the key unless it is empty."""
        return {"authorization": f"Bearer {key}"} if key else {}

    async def count_tokens(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> int:
        """Our own count: these servers have none."""
        return await count_aside(request, model.max_input)

    def most_input(self, model: Model, request: Mapping[str, Any], size: int) -> int:
        """A token has at least one byte. Images count separately. A file and what lies at an address may fill the
        model's window."""
        content = request.get("messages") or request.get("input")
        if not is_measured(content):
            return model.max_input
        return min(model.max_input, size + OVERHEAD_TOKENS + IMAGE_TOKENS * pictures(content))
