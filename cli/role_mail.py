"""The mail about a new role, sent by a command."""

from __future__ import annotations

from cli.commands.context import Context
from handlers.admin import operator_mails
from handlers.core.brand.overrides import templates_of
from handlers.core.brand.reading import load_brand
from handlers.core.site import Site
from runtime.outbound_wiring import open_mailer
from store.operators.roles import OperatorRole

SECONDS = 10.0
"""How long the command waits for the mail server."""


async def mail_role(context: Context, user: str, role: OperatorRole | None) -> None:
    """Mails a person about their role, as the server does, or writes the mail into its spool."""
    settings = context.settings
    base_url = settings.origin(settings.port)
    brand = load_brand(settings.brand)
    mailer = open_mailer(settings, base_url, brand)
    site = Site(context.store, base_url, mail=mailer, brand=brand, templates=templates_of(brand.templates))
    await operator_mails.role_changed(site, user, role)
    await mailer.close(SECONDS)
