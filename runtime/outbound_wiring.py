"""Opens the server's connections to others: mail, webhooks, fetches. Commands need none of these."""

from __future__ import annotations

from collections.abc import Callable

from handlers.core.brand.brand import Brand
from outbound.address_policy import AddressPolicy
from outbound.audit_export import AuditExport
from outbound.client_documents import ClientDocuments
from outbound.client_keys import ClientKeys
from outbound.fetching import Fetcher
from outbound.identity.sign_in import SignInElsewhere
from outbound.issuer_keys import IssuerKeys
from outbound.log_collector import LogCollector
from outbound.mail.inbox import Inbox
from outbound.mail.mailer import LATE_RETRIES, Mailer, SmtpServer, Spool
from outbound.payments.provider import PaymentProvider
from outbound.payments.stripe_checkout import StripeAccount, StripeCheckout
from outbound.webhooks.poster import WebhookSender
from outbound.webhooks.posting import Poster
from settings.declared import Settings
from store.apps.webhooks import Target
from store.webhooks.deliveries import Delivery
from store.wiring import Store

MAIL_FOLDER = "mail"
KEYS_SECONDS = 5.0
"""How long fetching the keys of an app, or its metadata document, may take."""


def open_webhooks(settings: Settings, store: Store, base_url: str) -> WebhookSender:
    """The sender of webhooks and logout tokens. The caller starts and closes it."""

    async def sign_logout(delivery: Delivery, target: Target, now: int) -> str:
        facts = delivery.client_id, delivery.sub, delivery.details["sid"], target.algorithm
        return await store.logout_tokens.sign(base_url, *facts, now)

    policy = AddressPolicy(settings.webhook_networks, loopback=settings.here_alone)
    poster = Poster(policy, settings.webhook_posts)
    return WebhookSender(store.deliveries, store.webhooks.target, poster, settings.webhook_posts, sign_logout)


def open_audit_export(current: Callable[[], Settings], store: Store) -> AuditExport | None:
    """The export of the security log to the operator's collector; None without one. The caller runs it. `current` gives
    the present settings: a reload changes the header."""
    url = current().audit_otlp
    if not url:
        return None
    collector = LogCollector(url, lambda: current().audit_otlp_header)
    return AuditExport(store.security_events, store.export_turns, collector)


def open_fetcher(settings: Settings) -> Fetcher:
    """Fetches the files that prove domains, from addresses that webhooks may go to."""
    return Fetcher(AddressPolicy(settings.webhook_networks, loopback=settings.here_alone))


def open_client_keys(settings: Settings) -> ClientKeys:
    """Fetches the keys of apps, from addresses that webhooks may go to. A client waits for it, so not for long."""
    policy = AddressPolicy(settings.webhook_networks, loopback=settings.here_alone)
    return ClientKeys(Fetcher(policy, whole=KEYS_SECONDS))


def open_issuer_keys(settings: Settings) -> IssuerKeys:
    """Fetches the keys of issuers of assertions, from addresses that webhooks may go to. An app waits for it."""
    policy = AddressPolicy(settings.webhook_networks, loopback=settings.here_alone)
    return IssuerKeys(Fetcher(policy, whole=KEYS_SECONDS))


def open_sign_in(settings: Settings) -> SignInElsewhere:
    """Signs people in at identity providers, at addresses that webhooks may go to and at the providers' own."""
    return SignInElsewhere(settings.webhook_networks, loopback=settings.here_alone)


def open_client_documents(settings: Settings) -> ClientDocuments:
    """Fetches Client ID metadata documents, from addresses that webhooks may go to. A browser waits for it."""
    policy = AddressPolicy(settings.webhook_networks, loopback=settings.here_alone)
    return ClientDocuments(Fetcher(policy, whole=KEYS_SECONDS))


def open_inbox(settings: Settings) -> Inbox | None:
    """The mails of a demo, which go to the data directory."""
    return Inbox(settings.data_dir / MAIL_FOLDER) if settings.demo and not settings.smtp_url else None


def open_mailer(settings: Settings, base_url: str, brand: Brand) -> Mailer:
    """The mailer: uses the mail server of the settings, or else writes to the data directory."""
    sender = settings.sender(base_url)
    if settings.smtp_url:
        server = SmtpServer(settings.smtp_url, settings.smtp_timeout)
        return Mailer(server, sender, confirms=True, name=brand.sender, late=LATE_RETRIES)
    # On a developer's machine the console shows the links. Elsewhere a log with links would give accounts away.
    spool = Spool(settings.data_dir / MAIL_FOLDER, show=settings.here_alone)
    return Mailer(spool, sender, confirms=False, name=brand.sender)


def open_payments(settings: Settings, base_url: str, before: PaymentProvider | None = None) -> PaymentProvider | None:
    """The payment provider; None without one. It is `before` if its account is the same."""
    if not settings.stripe_key:
        return None
    secrets = settings.stripe_webhook_secret
    account = StripeAccount(settings.stripe_key, secrets, base_url, settings.stripe_api, settings.stripe_page)
    if isinstance(before, StripeCheckout) and before.account == account:
        return before
    return StripeCheckout(account)
