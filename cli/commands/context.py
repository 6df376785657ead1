"""The context of a command: settings, keys and store."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from cli.terminal.outcome import CommandResult
from settings.declared import Settings
from settings.types import EMBEDDED
from store.crypto.keyring import KeyFile, KeyRing
from store.engine.connect import unix_url
from store.engine.embedded import open_for_manage
from store.wiring import Store

SHOWN_ONCE = "is shown this once; the store holds only its hash."
ONLY_ONE = "This is now the only valid secret."
OLDER_STAYS = "The one before it stays valid until the next rotation."
SIGNING_ONCE = "is shown this once; it signs what is posted to the app."


@dataclass(frozen=True, slots=True)
class Context:
    """What a command needs. `server_runs`: a server uses the key file at the same time."""

    settings: Settings
    store: Store
    keys: KeyFile | KeyRing
    server_runs: bool


@contextlib.contextmanager
def store_url(settings: Settings) -> Iterator[tuple[str, bool]]:
    """The store's URL, and whether a server runs on the data directory. Starts an embedded store for the block if none
    runs. Raises StartupError."""
    if settings.redis_url != EMBEDDED:
        yield settings.redis_url, False
        return
    socket_path, started = open_for_manage(settings.data_dir)
    try:
        yield unix_url(socket_path), started is None
    finally:
        if started:
            started.stop()


CommandFunction = Callable[[Context, Namespace], Awaitable[CommandResult]]
