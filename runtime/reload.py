"""Reloads the configuration file, the files that it names and the keys on SIGHUP. All of it takes effect, or nothing
does and the log says why.

A single process reloads without closing a connection, and requests in progress continue with the old values. A
supervisor reads and checks everything, keeps it for workers that start later, hands it to the present ones, and passes
the signal on.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from handlers.core.brand.brand import Brand
from handlers.core.brand.reading import BrandError, load_brand
from handlers.ops.operations import Operations
from observability import logs
from outbound.ai.config import ConfigError, parse_models, read_models
from outbound.ai.models import Models, OldModels
from outbound.assertion_issuers import IssuersError, load_issuers
from outbound.identity.config import ProvidersError, ProvidersFile, parse_providers, read_providers
from outbound.identity.providers import Providers
from runtime.handover import Handover
from runtime.listening import Listening, body_bounds
from runtime.notify import notify_ready, notify_reloading
from runtime.outbound_wiring import open_mailer
from runtime.process_state import Runtime
from runtime.site_wiring import renewed
from runtime.wiring import limit_store
from settings.declared import SETTINGS, Settings
from settings.reading import check, sources_of, with_sources
from settings.types import SettingsError
from store.crypto.keyring import KeyRing, KeyRingError
from store.errors import StartupError, StoreError
from store.oauth.assertions.issuers import TrustedIssuers
from store.wiring import Store

log = logging.getLogger("latchkey.reload")

MARGIN_SECONDS = 5.0
OF_MAIL = {"smtp_url", "mail_from", "smtp_timeout"}
"""The settings that a mailer is made of."""
WRONG = (
    *(SettingsError, BrandError, IssuersError, ProvidersError, ConfigError, KeyRingError),
    *(StartupError, StoreError, OSError),
)
"""Errors that mean: the new configuration is unusable."""


class ConfiguredFiles(NamedTuple):
    """The content of files that settings name: the text of that of AI models, the brand, the issuers of assertions, and
    that of identity providers, whose secrets are in the environment."""

    source: str
    brand: Brand
    issuers: TrustedIssuers
    providers: ProvidersFile


@dataclass(frozen=True)
class Fresh:
    """A checked configuration. `ring` and `models` are None if they don't change, and `files` may have the present
    brand, issuers and providers. `changed` names the settings with new values, `kept` those that take effect only after
    a restart."""

    settings: Settings
    files: ConfiguredFiles
    ring: KeyRing | None
    models: Models | None
    providers: Providers
    changed: tuple[str, ...]
    kept: tuple[str, ...]

    @classmethod
    def of(cls, before: Settings, settings: Settings, files: ConfiguredFiles, kept: tuple[str, ...] = ()) -> Fresh:
        """Compares `settings` with those in use, `before`. Raises ConfigError, ProvidersError,
        KeyRingError."""
        changed = _differing(before, settings)
        ring = KeyRing.parse(settings.secret_keys) if "secret_keys" in changed else None
        # Also if the file's name is unchanged: its content may differ.
        reads = settings.ai_config or "ai_config" in changed
        models = parse_models(settings.ai_config, files.source) if reads else None
        providers = parse_providers(settings.identity_config, files.providers)
        return cls(settings, files, ring, models, providers, changed, kept)

    def give(self, handover: Handover) -> None:
        """Hands the configuration to workers. Raises SettingsError if it is too large."""
        handover.give(pickle.dumps((self.settings, self.files)))

    @classmethod
    def take(cls, before: Settings, handover: Handover) -> Fresh | None:
        """The latest configuration handed over, already checked; None if there is none."""
        content = handover.take()
        if content is None:
            return None
        return cls.of(before, *pickle.loads(content))  # noqa: S301  # from the supervisor, which forked this process

    def keep(self, runtime: Runtime) -> None:
        """Keeps the configuration for processes that start later, and applies the log settings."""
        runtime.settings, runtime.brand, runtime.issuers = self.settings, self.files.brand, self.files.issuers
        runtime.providers = self.providers
        if self.ring is not None:
            runtime.keys.replace(self.ring)
        runtime.models = self.models or runtime.models
        logs.configure(self.settings.log_level, self.settings.log_format)

    def tell(self) -> None:
        """Logs the settings that changed and those that need a restart. No value is logged: it may be secret."""
        log.info("configuration reloaded; changed: %s", ", ".join(self.changed) or "none")
        if self.kept:
            log.warning("these settings need a restart: %s", ", ".join(self.kept))


def _differing(before: Settings, after: Settings) -> tuple[str, ...]:
    return tuple(item.name for item in SETTINGS if getattr(before, item.name) != getattr(after, item.name))


def read_checked(before: Settings, reread: Callable[[], Settings]) -> Fresh:
    """Reads and checks everything, and changes nothing. Raises SettingsError, BrandError, IssuersError, ProvidersError,
    ConfigError, KeyRingError, OSError."""
    wanted = reread()
    wanted.require_keys()
    stay = {item.name for item in SETTINGS if not item.live}
    # The source of keys changes only with a restart: a key file or configured keys.
    if bool(before.secret_keys) != bool(wanted.secret_keys):
        stay.add("secret_keys")
    # The server started for its own machine only: it posts events there, and tests of apps may control it.
    if before.here_alone and wanted.trusted_proxies:
        stay.add("trusted_proxies")
    kept = tuple(name for name in _differing(before, wanted) if name in stay)
    settings = replace(wanted, **{name: getattr(before, name) for name in kept})
    sources = {name: source for name, source in sources_of(wanted).items() if name not in kept}
    with_sources(settings, sources | {name: sources_of(before)[name] for name in kept if name in sources_of(before)})
    check(settings)
    models, issuers = read_models(settings.ai_config), load_issuers(settings.assertion_issuers)
    files = ConfiguredFiles(models, load_brand(settings.brand), issuers, read_providers(settings.identity_config))
    return Fresh.of(before, settings, files, kept)


@contextmanager
def attempt() -> Iterator[None]:
    """Tells systemd of a reload, and logs why it failed, with a traceback if the cause is a defect. Whatever it is, the
    server continues, and the next reload may succeed."""
    notify_reloading()
    try:
        yield
    except Exception as error:
        expected = isinstance(error, WRONG)
        reason = str(error) if expected else type(error).__name__
        log.error("reload failed, configuration unchanged: %s", reason, exc_info=not expected)
    notify_ready()


class Reloads:
    """Reloads a serving process. `listening` has the service first, then the operations and metrics ports that are on.
    `alone`: there is no supervisor that reads the configuration."""

    def __init__(self, runtime: Runtime, store: Store, listening: Sequence[Listening], *, alone: bool) -> None:
        self._runtime, self._store, self._listening, self._alone = runtime, store, listening, alone
        self._old_models = OldModels()

    async def follow(self, requested: asyncio.Event) -> None:
        """Reloads whenever the event is set."""
        while True:
            await requested.wait()
            requested.clear()
            with attempt():
                await self.reload()

    async def reload(self) -> None:
        """Reloads once. If it raises one of WRONG, nothing has changed."""
        runtime = self._runtime
        if not self._alone:
            if fresh := Fresh.take(runtime.settings, runtime.handover):
                self._take_up(fresh)
            return
        fresh = read_checked(runtime.settings, runtime.reread)
        if fresh.ring is not None:
            await self._store.key_state.check(fresh.ring)
        self._take_up(fresh)
        fresh.tell()

    def _take_up(self, fresh: Fresh) -> None:
        runtime, settings, (_, brand, issuers, _) = self._runtime, fresh.settings, fresh.files
        other = OF_MAIL.intersection(fresh.changed) or brand != runtime.brand
        mailer = open_mailer(settings, runtime.base_url, brand) if other else None
        # Nothing below can fail.
        fresh.keep(runtime)
        limit_store(self._store, settings)
        site = self._listening[0].application.site
        if mailer is not None:
            site.mail.turn_into(mailer)
        if fresh.models is not None:
            fresh.models.keep_health(site.models)
            self._old_models.add(site.models, settings.call_seconds + MARGIN_SECONDS)
        site = renewed(site, settings, brand, fresh.models, issuers, fresh.providers)
        largest, bodies = body_bounds(settings)
        for one in self._listening:
            one.application.site = site
            one.adjust(settings, largest if one is self._listening[0] else bodies)
            if isinstance(one.application, Operations):
                one.application.take_keys(settings.operator_keys)

    async def close(self) -> None:
        """Closes all old models at shutdown."""
        await self._old_models.close()
