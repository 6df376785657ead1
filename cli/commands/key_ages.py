"""Since when the secret keys are in use, as `keys list` shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cli.commands.context import store_url
from cli.terminal.outcome import CommandResult
from settings.declared import Settings
from settings.types import EMBEDDED
from store.clock import wall
from store.engine import backup
from store.engine.connect import connect
from store.engine.scripts import Scripts
from store.keystate import KeyState

COLUMNS = ("id", "front", "since")
NOT_KNOWN = "not known"


def listed(keys: Sequence[Mapping[str, Any]], note: str = "") -> CommandResult:
    """The keys with `id`, `front` and `since` (RFC 3339, None if unknown); people read their age too."""
    rows = [{name: key[name] for name in COLUMNS} for key in keys]
    return CommandResult({"keys": rows}, COLUMNS, note, {"keys": [{**key, "since": age(key["since"])} for key in rows]})


def age(since: str | None) -> str:
    """The day since when a key is in use (UTC), and how many days ago that was."""
    if since is None:
        return NOT_KNOWN
    began = datetime.fromisoformat(since)
    days = max(0, (wall.utc().date() - began.date()).days)
    ago = "today" if days == 0 else "1 day ago" if days == 1 else f"{days} days ago"
    return f"{began:%Y-%m-%d}, {ago}"


def known_since(settings: Settings) -> dict[int, int]:
    """When a server first had each key (epoch ms), 0 for unknown; nothing without a store. Only reads, so keys that the
    store does not know yet stay unknown to it. Raises StartupError, StoreError, OSError."""
    if settings.redis_url == EMBEDDED and not backup.has_store(settings.data_dir):
        return {}
    with store_url(settings) as (url, _):
        return asyncio.run(_read(url, settings.redis_timeout))


async def _read(url: str, timeout: float) -> dict[int, int]:
    client = await connect(url, socket_timeout=timeout, max_connections=1)
    try:
        return await KeyState(Scripts(client)).since()
    finally:
        await client.aclose()
