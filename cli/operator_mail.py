"""Mails to people that commands cause."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.commands.context import Context
from handlers.core.brand.overrides import templates_of
from handlers.core.brand.reading import load_brand
from handlers.core.site import Site
from runtime.outbound_wiring import open_mailer

SECONDS = 10.0
"""How long the command waits for the mail server."""


@asynccontextmanager
async def mailing(context: Context) -> AsyncIterator[Site]:
    """A site that mails as the server does, or writes mails into its spool. The block's mails are sent at its end."""
    settings = context.settings
    base_url = settings.origin(settings.port)
    brand = load_brand(settings.brand)
    mailer = open_mailer(settings, base_url, brand)
    yield Site(context.store, base_url, mail=mailer, brand=brand, templates=templates_of(brand.templates))
    await mailer.close(SECONDS)
