"""The state that a server process starts with."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from handlers.core.brand.brand import Brand
from observability.metrics.memory import MetricsMemory
from outbound.ai.models import Models
from outbound.identity.providers import Providers
from runtime.early_stop import EarlyStop
from runtime.handover import Handover
from runtime.hangup import Hangup
from settings.declared import Settings
from store.crypto.keyring import Keys
from store.engine.embedded import EmbeddedStore
from store.oauth.assertions.issuers import TrustedIssuers


@dataclass
class Runtime:
    """The state of a process. Workers inherit it."""

    settings: Settings
    store_url: str
    keys: Keys
    sockets: list[socket.socket]
    bound: str
    base_url: str
    embedded: EmbeddedStore | None
    models: Models
    brand: Brand = field(default_factory=Brand)
    issuers: TrustedIssuers = field(default_factory=TrustedIssuers)
    """Identity providers whose assertions connect apps."""
    providers: Providers = field(default_factory=Providers)
    """Identity providers with which people sign in."""
    supervisor: int | None = None
    """Its process id, noted before the first fork: a worker that asks for its parent may already be an orphan."""
    ops_sockets: list[socket.socket] = field(default_factory=list)
    """Sockets of the operations port; empty if the port is off."""
    metrics_sockets: list[socket.socket] = field(default_factory=list)
    """Sockets of the metrics port; empty if the port is off."""
    passed: bool = False
    """Whether systemd passed `sockets`, and keeps them."""
    memory: MetricsMemory = field(default_factory=MetricsMemory)
    """Shared memory for the counts of all workers. A worker's number is its place."""
    number: int = 0
    """The number of this process among the workers."""
    reread: Callable[[], Settings] = Settings
    """Reads the settings again, from the same sources. Raises SettingsError."""
    early: EarlyStop = field(default_factory=EarlyStop)
    """A signal that came before the process could stop in good order."""
    hangup: Hangup = field(default_factory=Hangup)
    handover: Handover = field(default_factory=Handover)
    """Passes reloaded settings from the supervisor to its workers."""
