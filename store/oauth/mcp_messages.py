"""Messages of the Model Context Protocol that need nothing else from the store."""

from __future__ import annotations

from store.engine.scripts import Scripts
from store.lifetimes import MCP_MESSAGES
from store.oauth.guard import check_token
from store.results import Caller, Window


class McpMessages:
    """Admits messages to the MCP server."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def admit(self, caller: Caller, needed: str) -> Window:
        """Admits a message and counts it in a window of the pair. Raises Refused("invalid_token", "insufficient_scope"
        or "rate_limited")."""
        return await check_token(self._scripts, caller, needed, MCP_MESSAGES, caller.client)
