"""Opens the server's connections to others: mail, webhooks, fetches. Commands need none of these."""

from __future__ import annotations

from outbound.address_policy import AddressPolicy
from outbound.client_keys import ClientKeys
from outbound.fetching import Fetcher
from outbound.mail.mailer import LATE_RETRIES, Mailer, SmtpServer, Spool
from outbound.webhooks.poster import WebhookSender
from outbound.webhooks.posting import Poster
from settings.declared import Settings
from store.wiring import Store

MAIL_FOLDER = "mail"
KEYS_SECONDS = 5.0
"""How long fetching the keys of an app may take."""


def open_webhooks(settings: Settings, store: Store) -> WebhookSender:
    """The sender of webhooks. The caller starts and closes it."""
    policy = AddressPolicy(settings.webhook_networks, loopback=settings.here_alone)
    poster = Poster(policy, settings.webhook_posts)
    return WebhookSender(store.deliveries, store.webhooks.target, poster, settings.webhook_posts)


def open_fetcher(settings: Settings) -> Fetcher:
    """Fetches the files that prove domains, from addresses that webhooks may go to."""
    return Fetcher(AddressPolicy(settings.webhook_networks, loopback=settings.here_alone))


def open_client_keys(settings: Settings) -> ClientKeys:
    """Fetches the keys of apps, from addresses that webhooks may go to. A client waits for it, so not for long."""
    policy = AddressPolicy(settings.webhook_networks, loopback=settings.here_alone)
    return ClientKeys(Fetcher(policy, whole=KEYS_SECONDS))


def open_mailer(settings: Settings, base_url: str) -> Mailer:
    """The mailer: uses the mail server of the settings, or else writes to the data directory."""
    sender = settings.sender(base_url)
    if settings.smtp_url:
        server = SmtpServer(settings.smtp_url, settings.smtp_timeout)
        return Mailer(server, sender, confirms=True, late=LATE_RETRIES)
    # On a developer's machine the console shows the links. Elsewhere a log with links would give accounts away.
    spool = Spool(settings.data_dir / MAIL_FOLDER, show=settings.here_alone)
    return Mailer(spool, sender, confirms=False)
