"""The context of a command: settings, keys and store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cli.terminal.outcome import CommandResult
from settings.declared import Settings
from store.crypto.keyring import KeyFile, KeyRing
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


CommandFunction = Callable[[Context, Namespace], Awaitable[CommandResult]]
