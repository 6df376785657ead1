"""How streams of OpenAI's API are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbound.ai.events import encoded

DONE = b"data: [DONE]\n\n"
"""The end of a stream of chat/completions."""


def chunk(data: Mapping[str, Any]) -> bytes:
    """A chunk of chat/completions."""
    return b"data: %b\n\n" % encoded(data)


def event(data: Mapping[str, Any]) -> bytes:
    """An event of responses or of the Messages API, whose name is its type."""
    return b"event: %b\ndata: %b\n\n" % (str(data["type"]).encode(), encoded(data))
