"""SIGHUP: the configuration file, the file of AI models and the keys are read anew. Either all of it is taken up, or
everything stays as it was and the log says why.

One process does that in its place: no connection notices, and what is under way goes on as it began. The supervisor of
several workers reads and checks everything, keeps it for workers that it starts later, hands it to those of now, and
passes the signal on.
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
from runtime.process_state import Runtime
from runtime.wiring import document_quotas, open_mailer, owner_limits, person_bounds
from settings.declared import SETTINGS, Settings
from settings.reading import check
from settings.types import SettingsError
from store.crypto.keyring import KeyRing, KeyRingError
from store.errors import StartupError, StoreError
from store.wiring import Store

log = logging.getLogger("latchkey.reload")

# What is larger than `max_body` is told so; what is larger than this many times it is cut off, since reading a form
# takes the event loop its time.
ABSURD_BODIES = 4
MARGIN_SECONDS = 5.0

WRONG = (SettingsError, ConfigError, KeyRingError, StartupError, StoreError, OSError)
"""What may be wrong with what is read anew."""


@dataclass(frozen=True)
class Fresh:
    """What was read anew, and may be taken up. `source` is what the file of AI models says. `ring` and `models` are
    None where they stay. `changed` names the settings that are others now, `kept` those that are not, since they need a
    new start."""

    settings: Settings
    source: str
    ring: KeyRing | None
    models: Models | None
    changed: tuple[str, ...]
    kept: tuple[str, ...]

    @classmethod
    def of(cls, before: Settings, settings: Settings, source: str, kept: tuple[str, ...] = ()) -> Fresh:
        """What it means to who has had those settings before. Raises ConfigError, KeyRingError."""
        changed = tuple(item.name for item in SETTINGS if getattr(before, item.name) != getattr(settings, item.name))
        return cls(
            settings,
            source,
            KeyRing.parse(settings.secret_keys) if "secret_keys" in changed else None,
            # Also where the file has its old name: it may say something else.
            parse_models(settings.ai_config, source) if settings.ai_config or "ai_config" in changed else None,
            changed,
            kept,
        )

    def give(self, handover: Handover) -> None:
        """Hands it to workers. Raises SettingsError where there is too much of it."""
        try:
            handover.give(pickle.dumps((self.settings, self.source)))
        except ValueError as error:
            raise SettingsError(f"the settings and the file of models are too large: {error}") from None

    @classmethod
    def take(cls, before: Settings, handover: Handover) -> Fresh | None:
        """What was handed over last, which has been checked; None where nothing was."""
        content = handover.take()
        # It comes from the supervisor, of which this process is a fork.
        return None if content is None else cls.of(before, *pickle.loads(content))  # noqa: S301


def read_anew(before: Settings, reread: Callable[[], Settings]) -> Fresh:
    """Reads and checks everything, and changes nothing. Raises SettingsError, ConfigError, KeyRingError, OSError."""
    wanted = reread()
    wanted.require_keys()
    differ = [item for item in SETTINGS if getattr(before, item.name) != getattr(wanted, item.name)]
    # Keys that were in a file and are configured now, or the other way round, come from somewhere else.
    moved = bool(before.secret_keys) != bool(wanted.secret_keys)
    stay = {"secret_keys"} if moved else set()
    if before.here_alone and wanted.trusted_proxies:
        # At the start the server was opened to its own machine: it posts events there, and tests of apps may drive it.
        stay.add("trusted_proxies")
    kept = tuple(item.name for item in differ if not item.live or item.name in stay)
    settings = replace(wanted, **{name: getattr(before, name) for name in kept})
    check(settings)
    return Fresh.of(before, settings, read_models(settings.ai_config), kept)


def keep(fresh: Fresh, runtime: Runtime) -> None:
    """Notes it for what this process starts from now on, and logs as it says."""
    runtime.settings = fresh.settings
    if fresh.ring is not None:
        runtime.keys.replace(fresh.ring)
    if fresh.models is not None:
        runtime.models = fresh.models
    logs.configure(fresh.settings.log_level, fresh.settings.log_format)


def tell(fresh: Fresh) -> None:
    """One line for what was taken up, one for what was not. No value is named: it may be secret."""
    log.info("settings were read anew; others now: %s", ", ".join(fresh.changed) or "none")
    if fresh.kept:
        log.warning("these settings need a new start: %s", ", ".join(fresh.kept))


def refuse(error: Exception) -> None:
    """Says why nothing was taken up; where it came from, too, if that is a defect."""
    reason = str(error) if isinstance(error, WRONG) else type(error).__name__
    defect = None if isinstance(error, WRONG) else error
    log.error("nothing was reloaded, everything stays as it was: %s", reason, exc_info=defect)


def site_facts(settings: Settings) -> dict[str, Any]:
    """What handlers know of the settings, as far as it may change."""
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
    """The bytes beyond which a body is cut off: of the service, of the operations port."""
    bodies = ABSURD_BODIES * settings.max_body
    return max(bodies, 2 * settings.document_size, 2 * settings.ai_request_size), bodies


class Reloads:
    """What a process that serves does about it. `listening` are the service first, and beside it the
    ports of operations and of metrics where they are on.
    `alone`: nobody else tells what was taken up."""

    def __init__(self, runtime: Runtime, store: Store, listening: Sequence[Listening], *, alone: bool) -> None:
        self._runtime, self._store, self._listening, self._alone = runtime, store, listening, alone
        # What calls under way still use.
        self._retired: set[asyncio.Task[None]] = set()

    async def follow(self, asked: asyncio.Event) -> None:
        """Does it whenever it is asked for."""
        while True:
            await asked.wait()
            asked.clear()
            if self._alone:
                notify_reloading()
            try:
                await self.reload()
            except Exception as error:  # whatever it is, the server serves on, and the next time is another one
                refuse(error)
            if self._alone:
                notify_ready()

    async def reload(self) -> None:
        """Once. Raises one of WRONG, and nothing has changed then."""
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
        # From here on nothing fails.
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
        """Drops their connections when no call can be using them any more."""
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
        """At the end."""
        retired = tuple(self._retired)
        for task in retired:
            task.cancel()
        await asyncio.gather(*retired, return_exceptions=True)
