"""The settings of one process. `settings/serving.py` and `settings/offers.py` declare each once: its default, its check
and its documentation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from urllib.parse import urlsplit

import settings.types as to
from settings.offers import Offers
from settings.types import EMBEDDED, MEMORY, PREFIX, Setting, SettingsError

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Settings(Offers):
    """The settings of one process. `Settings()` is the defaults; `load` reads, parses and checks."""

    @property
    def shared_store(self) -> bool:
        """True if other hosts can use the same store, so that they don't share this data directory."""
        return self.redis_url not in (EMBEDDED, MEMORY)

    @property
    def call_seconds(self) -> float:
        """The longest time in seconds of one call to the store. A call that waits for replicas waits for its turn
        too."""
        return self.redis_timeout * (2 if self.wait_replicas else 1)

    @property
    def testable(self) -> bool:
        """True if tests of apps may control the server over HTTP: nothing is kept, and only this machine is served."""
        return self.redis_url == MEMORY and self.here_alone and self.workers == 1 and not self.demo

    @property
    def here_alone(self) -> bool:
        """True if only this machine is served, also not through a proxy. The base URL alone doesn't prove it: without
        one, the default is a loopback address."""
        here = self.host in LOOPBACK_HOSTS and (urlsplit(self.base_url).hostname or "localhost") in LOOPBACK_HOSTS
        return here and not self.trusted_proxies

    def origin(self, port: int) -> str:
        """Return `base_url`, or the default origin for the listening port."""
        return self.base_url or to.origin(f"http://localhost:{port}")

    def sender(self, base_url: str) -> str:
        """Return `mail_from`, or noreply at the host of the base URL."""
        host = urlsplit(base_url).hostname or ""
        literal = f"[IPv6:{host}]" if ":" in host else f"[{host}]" if host.rpartition(".")[2].isdigit() else host
        return self.mail_from or f"noreply@{literal}"

    def require_keys(self) -> None:
        """Raise SettingsError if the store is shared and no secret keys are configured.

        Not part of `load`, because `latchkey keys generate` must run without keys.
        """
        if self.shared_store and not self.secret_keys:
            raise SettingsError(
                "secret_keys must be set with the URL of a store, the same on every host: "
                f"set {PREFIX}SECRET_KEYS to what `latchkey keys generate` prints"
            )


SETTINGS: tuple[Setting, ...] = tuple(Setting(name=item.name, **item.metadata) for item in fields(Settings))
