"""Opens the MCP server. Its SDK takes a second to load, so only a server that has it on loads it, before it listens."""

from __future__ import annotations

import importlib
from typing import Any

from latchkey import __version__
from settings.declared import Settings
from store.errors import StartupError


def load_sdk(settings: Settings) -> Any:
    """The module that speaks the protocol, or None if the MCP server is off. Raises StartupError without the SDK."""
    if settings.mcp == "off":
        return None
    try:
        return importlib.import_module("handlers.mcp.protocol")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise StartupError("--mcp on needs the SDK: pip install 'latchkey[mcp]'") from None


def open_mcp(settings: Settings, base_url: str, name: str) -> Any:
    """The MCP server, or None if it is off. Raises StartupError without the SDK."""
    protocol = load_sdk(settings)
    return protocol and protocol.McpServer(name, base_url, __version__, settings.mcp_scopes)
