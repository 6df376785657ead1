"""Opens the keys and the store of the settings, for the server and the operator's command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from settings.declared import Settings
from settings.offers import DAY
from store.accounts.audit.trail import TrailBounds
from store.credits.credits import Bookkeeping
from store.crypto.keyring import KeyFile, KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.replicas import Wait
from store.errors import StoreError
from store.names import SCOPES
from store.wiring import Store

if TYPE_CHECKING:
    from store.documents.documents import Quotas

KEY_FILE = "keys"


def open_keys(settings: Settings) -> KeyFile | KeyRing:
    """The configured keys, or the data directory's key file, created if missing. Raises KeyRingError, OSError."""
    if settings.secret_keys:
        return KeyRing.parse(settings.secret_keys)
    return KeyFile.open_or_create(settings.data_dir / KEY_FILE)


def document_quotas(settings: Settings) -> Quotas:
    """How much one app, and all apps together, may keep for a person."""
    from store.documents.documents import PERSON_PART, Quotas

    return Quotas(
        settings.document_limit,
        settings.collection_limit,
        settings.storage_limit,
        settings.document_size,
        settings.person_document_limit or 4 * settings.document_limit,
        settings.person_storage_limit or 4 * settings.storage_limit,
        0 if settings.person_storage_limit else PERSON_PART,
    )


def limit_store(store: Store, settings: Settings) -> None:
    """Sets the store's limits, those that a reload may change: of a part that is made later, when it is made."""
    store.security.trail.bounds = TrailBounds(settings.audit_days, settings.audit_bytes)
    store.finish_parts(partial(limit_part, store, settings))


def limit_part(store: Store, settings: Settings, part: str) -> None:
    """Sets the limits of the part with this name."""
    match part:
        case "documents":
            store.documents.quotas = document_quotas(settings)
        case "hosting":
            from store.documents.hosting import OwnerLimits

            store.hosting.limits = OwnerLimits(settings.owner_document_limit, settings.owner_storage_limit)
        case "bounds":
            from store.bounds import Bounds

            most = settings.person_grant_limit, settings.person_session_limit, settings.person_family_limit
            store.bounds.take(Bounds(*most))
        case "sessions":
            store.sessions.required.owns_api = store.owned_apis.has_any
            store.sessions.required.who = settings.second_step  # type: ignore[assignment]  # the setting's choices
        case "calls":
            store.calls.most_each = settings.ai_calls_per_person
            store.calls.daily.per_person = settings.ai_spend_per_person_day
            store.calls.daily.per_app = settings.ai_spend_per_app_day
            store.calls.notices.low = settings.low_credits
        case "introspection_windows":
            asking = store.introspection_windows
            asking.group = replace(asking.group, limit=settings.introspections_per_minute)
        case "client_windows":
            acting = store.client_windows
            acting.group = replace(acting.group, limit=settings.app_calls_per_minute)
        case "limits":
            public = store.limits.public_clients
            store.limits.public_clients = replace(public, limit=settings.public_app_calls_per_minute)
            store.limits.registrations = replace(store.limits.registrations, limit=settings.registrations_per_hour)
            store.limits.documents = replace(store.limits.documents, limit=settings.client_documents_per_hour)
        case "apps":
            store.apps.documents = settings.client_metadata == "on"
            store.apps.forget()
        case "self_registered":
            store.self_registered.most = settings.self_registered_apps
            store.self_registered.scopes = tuple(one for one in SCOPES if one in settings.self_registered_scopes)
        case "rates":
            store.rates.take(
                oauth=settings.oauth_per_minute,
                data_read=settings.data_reads_per_minute,
                data_write=settings.data_writes_per_minute,
                data_list=settings.data_lists_per_minute,
                ai=settings.ai_calls_per_minute,
            )
        case "apis":
            store.apis.mcp = settings.mcp == "on"
            store.apis.stepped = settings.second_step_scopes
        case "signing_keys":
            store.signing_keys.days = settings.signing_key_days


@asynccontextmanager
async def open_store(settings: Settings, url: str, keys: Keys) -> AsyncIterator[Store]:
    """The store at `url`, which replaces the settings' URL; closed at the end. Raises StartupError."""
    hasher = PasswordHasher(
        settings.password_memory, settings.password_iterations, settings.password_workers, settings.password_queue
    )
    store = await Store.open(
        url,
        keys,
        hasher,
        timeout=settings.redis_timeout,
        connections=settings.redis_connections,
        session_idle=settings.session_idle,
        session_lifetime=settings.session_lifetime,
        refresh_lifetime=settings.refresh_lifetime,
        books=Bookkeeping(retention=settings.ledger_days * DAY * 1000),
        wait=Wait(settings.wait_replicas, settings.wait_timeout) if settings.wait_replicas else None,
    )
    limit_store(store, settings)
    try:
        yield store
    finally:
        await store.flush()
        with suppress(StoreError):
            await store.close()
