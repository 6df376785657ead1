"""Parts of the store: each is made, and its module imported, when it is first asked for.

A command needs a few of some hundred parts, and imports no others. A server makes all at its start (`wire_all`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from redis.asyncio import Redis

from store.accounts.audit.recorded import RecordedEvents
from store.accounts.audit.security_log import SecurityLog
from store.crypto.keyring import Keys
from store.crypto.seal import Sealer
from store.engine.connect import acknowledged
from store.engine.memory import Headroom
from store.engine.replicas import Wait
from store.engine.scripts import Scripts
from store.webhooks.relay_wakeup import RelayWakeup

if TYPE_CHECKING:
    from store.credits.credits import Bookkeeping
    from store.crypto.passwords import PasswordHasher
    from store.documents.documents import Quotas

T = TypeVar("T")


class PartsBase:
    """What all parts share. `session_idle` and `session_lifetime` are in seconds, `refresh_lifetime` is in days
    (0: none); with `wait`, a durable script waits for replicas before it answers."""

    def __init__(
        self,
        client: Redis,
        keys: Keys,
        hasher: PasswordHasher,
        *,
        session_idle: int,
        session_lifetime: int,
        refresh_lifetime: int = 0,
        quotas: Quotas | None = None,
        books: Bookkeeping | None = None,
        wait: Wait | None = None,
    ) -> None:
        self.client = client
        self.keys = keys
        self.hasher = hasher
        self.scripts = scripts = Scripts(client, durable=acknowledged(client, wait))
        self.security = security = SecurityLog(scripts, keys)
        scripts.hear, scripts.noted_as = security.heard, security.noted_as
        self.recorded_events, self.activity_figures = RecordedEvents(client, security), security.trail.figures
        self.sealer = Sealer(keys)
        self.headroom = Headroom()
        self._idle, self._lifetime = session_idle * 1000, session_lifetime * 1000
        self._refresh_lifetime, self._quotas, self._books = refresh_lifetime, quotas, books
        self._wakeup, self._changed = RelayWakeup(), RelayWakeup()
        scripts.changed = self._changed.add_key
        self._finish: Callable[[str], None] | None = None

    def wired(self, name: str) -> bool:
        """Whether the part with this name was made."""
        return name in vars(self)

    def wire_all(self) -> None:
        """Makes every part and reads every script now, as a server does at its start: no request waits for a file, and
        none sees files of the next release. Raises ScriptError."""
        self.scripts.read_all()
        for owner in type(self).__mro__:
            for name, found in vars(owner).items():
                if isinstance(found, part):
                    getattr(self, name)

    def finish_parts(self, finish: Callable[[str], None]) -> None:
        """Calls `finish` with the name of each part: now for those that were made, later when one is made."""
        self._finish = finish
        for name in tuple(vars(self)):
            finish(name)


class part(Generic[T]):
    """A method that makes a part of the store. It runs once, when the part is first asked for, and imports what the
    part needs."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._name = make, make.__name__

    @overload
    def __get__(self, store: None, owner: type) -> Self: ...

    @overload
    def __get__(self, store: PartsBase, owner: type) -> T: ...

    def __get__(self, store: PartsBase | None, owner: type) -> Self | T:
        if store is None:
            return self
        made = self._make(store)
        vars(store)[self._name] = made  # from now on, the attribute is found before this descriptor
        if store._finish is not None:
            store._finish(self._name)
        return made
