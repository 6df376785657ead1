"""The routes of the MCP server."""

from __future__ import annotations

from handlers.core.policy import OPEN, Policy
from handlers.core.route import Route
from handlers.mcp.messages import McpHandler
from handlers.mcp.metadata import McpMetadataHandler
from store.names import SCOPES

ROUTES: tuple[Route, ...] = (
    # Each tool needs a scope of its own; other messages need any one.
    Route(r"/mcp", McpHandler, "mcp", Policy(scope=" ".join(SCOPES), window="mcp")),
    Route(r"/\.well-known/oauth-protected-resource/mcp", McpMetadataHandler, "mcp-metadata", OPEN),
)
