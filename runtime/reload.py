"""Reloads the configuration file, the file of AI models and the keys on SIGHUP. All of it takes effect, or nothing does
and the log says why.

A single process reloads without closing a connection, and requests in progress continue with the old values. A
supervisor reads and checks everything, keeps it for workers that start later, hands it to the present ones, and passes
the signal on.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from handlers.ops.credits import Operations
from observability import logs
from outbound.ai.config import ConfigError, parse_models, read_models
from outbound.ai.models import Models
from outbound.breaches import Breaches
from runtime.handover import Handover
from runtime.listening import Listening
from runtime.notify import notify_ready, notify_reloading
from runtime.outbound_wiring import open_mailer
from runtime.process_state import Runtime
from runtime.wiring import document_quotas, owner_limits, person_bounds
from settings.declared import SETTINGS, Settings
from settings.reading import check
from settings.types import SettingsError
from store.crypto.keyring import KeyRing, KeyRingError
from store.errors import StartupError, StoreError
from store.wiring import Store

log = logging.getLogger("latchkey.reload")

# A body larger than `max_body` gets an answer that says so. A body larger than this many times `max_body` is cut off,
# because parsing a form blocks the event loop.
ABSURD_BODIES = 4
MARGIN_SECONDS = 5.0

WRONG = (SettingsError, ConfigError, KeyRingError, StartupError, StoreError, OSError)
"""Errors that mean: the new configuration is unusable."""


@dataclass(frozen=True)
class Fresh:
    """A checked configuration. `source` is the text of the file of AI models. `ring` and `models` are None if they
    don't change. `changed` names the settings with new values, `kept` those that take effect only after a restart."""

    settings: Settings
    source: str
    ring: KeyRing | None
    models: Models | None
    changed: tuple[str, ...]
    kept: tuple[str, ...]

    @classmethod
    def of(cls, before: Settings, settings: Settings, source: str, kept: tuple[str, ...] = ()) -> Fresh:
        """Compares `settings` with those in use, `before`. Raises ConfigError, KeyRingError."""
        changed = tuple(item.name for item in SETTINGS if getattr(before, item.name) != getattr(settings, item.name))
        return cls(
            settings,
            source,
            KeyRing.parse(settings.secret_keys) if "secret_keys" in changed else None,
            # Also if the file's name is unchanged: its content may differ.
            parse_models(settings.ai_config, source) if settings.ai_config or "ai_config" in changed else None,
            changed,
            kept,
        )

    def give(self, handover: Handover) -> None:
        """Hands the configuration to workers. Raises SettingsError if it is too large."""
        try:
            handover.give(pickle.dumps((self.settings, self.source)))
        except ValueError as error:
            raise SettingsError(f"the settings and the file of models are too large: {error}") from None

    @classmethod
    def take(cls, before: Settings, handover: Handover) -> Fresh | None:
        """The latest configuration handed over, already checked; None if there is none."""
        content = handover.take()
        # The bytes come from the supervisor, which forked this process.
        return None if content is None else cls.of(before, *pickle.loads(content))  # noqa: S301


def read_anew(before: Settings, reread: Callable[[], Settings]) -> Fresh:
    """Reads and checks everything, and changes nothing. Raises SettingsError, ConfigError, KeyRingError, OSError."""
    wanted = reread()
    wanted.require_keys()
    differ = [item for item in SETTINGS if getattr(before, item.name) != getattr(wanted, item.name)]
    # The source of keys changes only with a restart: a key file or configured keys.
    moved = bool(before.secret_keys) != bool(wanted.secret_keys)
    stay = {"secret_keys"} if moved else set()
    if before.here_alone and wanted.trusted_proxies:
        # The server started for its own machine only: it posts events there, and tests of apps may control it.
        stay.add("trusted_proxies")
    kept = tuple(item.name for item in differ if not item.live or item.name in stay)
    settings = replace(wanted, **{name: getattr(before, name) for name in kept})
    check(settings)
    return Fresh.of(before, settings, read_models(settings.ai_config), kept)


def keep(fresh: Fresh, runtime: Runtime) -> None:
    """Keeps the configuration for processes that start later, and applies the log settings."""
    runtime.settings = fresh.settings
    if fresh.ring is not None:
        runtime.keys.replace(fresh.ring)
    if fresh.models is not None:
        runtime.models = fresh.models
    logs.configure(fresh.settings.log_level, fresh.settings.log_format)


def tell(fresh: Fresh) -> None:
    """Logs the settings that changed and those that need a restart. No value is logged: it may be secret."""
    log.info("settings were read anew; others now: %s", ", ".join(fresh.changed) or "none")
    if fresh.kept:
        log.warning("these settings need a new start: %s", ", ".join(fresh.kept))


def refuse(error: Exception) -> None:
    """Logs why nothing was reloaded, with a traceback if the cause is a defect."""
    reason = str(error) if isinstance(error, WRONG) else type(error).__name__
    defect = None if isinstance(error, WRONG) else error
    log.error("nothing was reloaded, everything stays as it was: %s", reason, exc_info=defect)


def site_facts(settings: Settings) -> dict[str, Any]:
    """The settings that handlers use, as far as a reload may change them."""
    return {
        "signup": settings.signup,
        "app_registration": settings.app_registration,
        "apps_per_person": settings.apps_per_person,
        "require_pkce": settings.require_pkce,
        "trusted_proxies": settings.trusted_proxies,
        "hsts_subdomains": settings.hsts_include_subdomains,
        "max_body": settings.max_body,
        "max_ai_request": settings.ai_request_size,
        "breaches": Breaches(settings.password_ranges),
    }


def body_bounds(settings: Settings) -> tuple[int, int]:
    """The bytes at which a body is cut off: for the service, and for the operations port."""
    bodies = ABSURD_BODIES * settings.max_body
    return max(bodies, 2 * settings.document_size, 2 * settings.ai_request_size), bodies


class Reloads:
    """Reloads a serving process. `listening` has the service first, then the operations and metrics ports that are on.
    `alone`: there is no supervisor that logs the result."""

    def __init__(self, runtime: Runtime, store: Store, listening: Sequence[Listening], *, alone: bool) -> None:
        self._runtime, self._store, self._listening, self._alone = runtime, store, listening, alone
        # Tasks that close old models once no call uses them.
        self._retired: set[asyncio.Task[None]] = set()

    async def follow(self, asked: asyncio.Event) -> None:
        """Reloads whenever the event is set."""
        while True:
            await asked.wait()
            asked.clear()
            if self._alone:
                notify_reloading()
            try:
                await self.reload()
            except Exception as error:  # whatever it is, the server continues, and the next reload may succeed
                refuse(error)
            if self._alone:
                notify_ready()

    async def reload(self) -> None:
        """Reloads once. If it raises one of WRONG, nothing has changed."""
        runtime = self._runtime
        fresh: Fresh | None
        if self._alone:
            fresh = read_anew(runtime.settings, runtime.reread)
            if fresh.ring is not None:
                await self._store.key_state.check(fresh.ring)
        else:
            fresh = Fresh.take(runtime.settings, runtime.handover)
        if fresh is not None:
            self._take_up(fresh)

    def _take_up(self, fresh: Fresh) -> None:
        runtime = self._runtime
        mailer = None
        if {"smtp_url", "mail_from", "smtp_timeout"} & set(fresh.changed):
            mailer = open_mailer(fresh.settings, runtime.base_url)
        # Nothing below can fail.
        keep(fresh, runtime)
        settings = fresh.settings
        self._store.documents.quotas = document_quotas(settings)
        self._store.hosting.limits = owner_limits(settings)
        self._store.bounds.take(person_bounds(settings))
        site = self._listening[0].application.site
        self._store.calls.most_each = settings.ai_calls_per_person
        site.ai_calls.resize(settings.ai_calls, settings.ai_calls_per_person)
        site.downloads.resize(settings.downloads, settings.downloads_per_person)
        changed = {**site_facts(settings), "peers": {}}
        if fresh.models is not None:
            changed["models"] = fresh.models
            self._retire(site.models)
        if mailer is not None:
            site.mail.turn_into(mailer)
        site = replace(site, **changed)
        largest, bodies = body_bounds(settings)
        for one in self._listening:
            one.application.site = site
            one.adjust(settings, largest if one is self._listening[0] else bodies)
            if isinstance(one.application, Operations):
                one.application.take_keys(settings.operator_keys)
        if self._alone:
            tell(fresh)

    def _retire(self, models: Models) -> None:
        """Closes the connections of old models after the longest call that may use them."""
        longest = max((model.upstream.limits.total for model in models.all()), default=0.0)
        wait = longest + self._runtime.settings.call_seconds + MARGIN_SECONDS

        async def close() -> None:
            try:
                await asyncio.sleep(wait)
            finally:
                await models.close()

        task = asyncio.ensure_future(close())
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)

    async def close(self) -> None:
        """Closes all old models at shutdown."""
        retired = tuple(self._retired)
        for task in retired:
            task.cancel()
        await asyncio.gather(*retired, return_exceptions=True)
