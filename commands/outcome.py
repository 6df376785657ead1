"""What commands work with, and what they answer."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from settings.declared import Settings
from store.keyring import KeyFile, KeyRing
from store.opened import Store

SHOWN_ONCE = "is shown this once; the store holds only its hash."
SIGNING_ONCE = "is shown this once; it signs what is posted to the app."


@dataclass(frozen=True, slots=True)
class Context:
    """What a command works with. `server_runs`: a server uses the key file at the same time."""

    settings: Settings
    store: Store
    keys: KeyFile | KeyRing
    server_runs: bool


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """What a command answers: the JSON object, which columns a table of its rows shows to people (of those a row has),
    a note for them, what they are shown in place of values of the object, and the exit status."""

    record: dict[str, Any]
    columns: tuple[str, ...] = ()
    note: str = ""
    words: dict[str, Any] = field(default_factory=dict)
    status: int = 0


Command = Callable[[Context, Namespace], Awaitable[Outcome]]
