"""What a server process serves with."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from observability.metrics.memory import MetricsMemory
from outbound.ai.models import Models
from runtime.handover import Handover
from runtime.hangup import Hangup
from settings.declared import Settings
from store.crypto.keyring import Keys
from store.engine.embedded import EmbeddedStore


@dataclass
class Runtime:
    """What a process serves with: inherited by workers."""

    settings: Settings
    store_url: str
    keys: Keys
    sockets: list[socket.socket]
    bound: str
    base_url: str
    embedded: EmbeddedStore | None
    models: Models
    supervisor: int | None = None
    """Its process id, noted before there is a worker: one that asks for its parent may be an orphan already."""
    exit_code: int = 0
    ops_sockets: list[socket.socket] = field(default_factory=list)
    """Of the operations port; none where it is off."""
    metrics_sockets: list[socket.socket] = field(default_factory=list)
    """Of the metrics port; none where it is off."""
    memory: MetricsMemory = field(default_factory=MetricsMemory)
    """Where all workers count, each at the place of its number."""
    number: int = 0
    """Of this process among the workers."""
    reread: Callable[[], Settings] = Settings
    """Reads the settings anew, as they were read first. Raises SettingsError."""
    hangup: Hangup = field(default_factory=Hangup)
    handover: Handover = field(default_factory=Handover)
    """What a supervisor gives to its workers when it has read the settings anew."""
