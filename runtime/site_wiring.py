"""Makes the site that handlers use, at the start and again after a reload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handlers.core.brand.brand import Brand
from handlers.core.brand.overrides import templates_of
from handlers.core.concurrency import ConcurrencyLimit
from handlers.core.long.bodies import LongBodies
from handlers.core.site import ServerFacts, Site
from handlers.core.words.languages import shipped
from latchkey import __version__
from observability.metrics.measures import Measures
from outbound.ai.models import Models
from outbound.breaches import Breaches
from outbound.identity.providers import Providers
from outbound.webhooks.poster import WebhookSender
from runtime import demo
from runtime.mcp_wiring import open_mcp
from runtime.outbound_wiring import (
    open_client_documents,
    open_client_keys,
    open_fetcher,
    open_inbox,
    open_issuer_keys,
    open_mailer,
    open_payments,
    open_sign_in,
)
from runtime.process_state import Runtime
from settings.declared import Settings
from settings.in_force import explained, in_force
from store.oauth.assertions.issuers import TrustedIssuers
from store.wiring import Store

HOLD_MARGIN_SECONDS = 5.0
SCATTER_SECONDS = 2.0


def open_site(runtime: Runtime, store: Store, webhooks: WebhookSender) -> Site:
    """The site of a process that starts."""
    settings = runtime.settings
    return Site(
        store,
        runtime.base_url,
        session_lifetime=settings.session_lifetime,
        models=runtime.models,
        # A settlement may take two calls of the store, if the answer to the first is lost.
        hold_margin=2 * settings.call_seconds + HOLD_MARGIN_SECONDS,
        scatter=SCATTER_SECONDS,
        mail=open_mailer(settings, runtime.base_url, runtime.brand),
        inbox=open_inbox(settings),
        demo=demo.FACTS if settings.demo else None,
        fetcher=open_fetcher(settings),
        client_keys=open_client_keys(settings),
        issuer_keys=open_issuer_keys(settings),
        issuers=runtime.issuers,
        providers=runtime.providers,
        elsewhere=open_sign_in(settings),
        long_bodies=LongBodies(_body_memory(settings)),
        client_documents=open_client_documents(settings),
        ai_calls=ConcurrencyLimit(settings.ai_calls, settings.ai_calls_per_person),
        downloads=ConcurrencyLimit(settings.downloads, settings.downloads_per_person),
        measures=Measures(runtime.memory.place(runtime.number)),
        here_alone=settings.here_alone,
        facts=lambda: ServerFacts(__version__, runtime.settings.workers, in_force(runtime.settings), explained()),
        posts_events=settings.webhooks,
        wake_webhooks=webhooks.wake,
        brand_before=runtime.brand,
        payments=open_payments(settings, runtime.base_url),
        mcp=open_mcp(settings, runtime.base_url, runtime.brand.name),
        mcp_origins=settings.mcp_origins,
        **_live(settings, runtime.brand),
    )


def renewed(
    site: Site,
    settings: Settings,
    brand: Brand,
    models: Models | None,
    issuers: TrustedIssuers,
    providers: Providers,
) -> Site:
    """The site with reloaded settings and brand, and other models unless None. Requests in progress keep their places,
    and what is mailed keeps its mailer."""
    site.ai_calls.resize(settings.ai_calls, settings.ai_calls_per_person)
    site.long_bodies.memory.most = _body_memory(settings)
    site.downloads.resize(settings.downloads, settings.downloads_per_person)
    before = site.brand if site.brand != brand else site.brand_before
    payments = open_payments(settings, site.base_url, site.payments)
    live = _live(settings, brand)
    return replace(
        site,
        models=models or site.models,
        issuers=issuers,
        providers=providers,
        peers={},
        brand_before=before,
        payments=payments,
        **live,
    )


def _body_memory(settings: Settings) -> int:
    """Bytes. At least one body of the largest size has room."""
    return max(settings.ai_body_memory, settings.ai_request_size)


def _live(settings: Settings, brand: Brand) -> dict[str, Any]:
    """The parts of a site that a reload replaces."""
    return {
        "brand": brand,
        "templates": templates_of(brand.templates),
        "languages": shipped().only(settings.languages),
        "signup": settings.signup,
        "allowed_domains": settings.allowed_domains,
        "app_registration": settings.app_registration,
        "apps_per_person": settings.apps_per_person,
        "require_pkce": settings.require_pkce,
        "dpop_nonce_required": settings.dpop_nonce == "required",
        "dynamic_registration": settings.dynamic_registration,
        "trusted_proxies": settings.trusted_proxies,
        "hsts_subdomains": settings.hsts_include_subdomains,
        "max_body": settings.max_body,
        "max_ai_request": settings.ai_request_size,
        "purchases": (settings.purchase_least, settings.purchase_most),
        "breaches": Breaches(settings.password_ranges),
    }
