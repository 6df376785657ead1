"""The logo in the options of `app create` and `app update`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from settings.declared import Settings
from store.webhooks.urls import is_loopback_url


async def given_logo(settings: Settings, args: Namespace) -> bytes | None:
    """The encoded logo in the options, empty to remove it; None if the options have none. Raises Refused, ValueError
    for a file that cannot be read."""
    if not hasattr(args, "logo_from"):
        return None
    if not args.logo_from:
        return b""
    from handlers.core.pictures.image_upload import app_logo_of  # Pillow takes longer to load than most commands run

    return app_logo_of(await _file(settings, args.logo_from))


async def _file(settings: Settings, given: str) -> bytes:
    from handlers.core.pictures.image_upload import MOST_LOGO

    if given.startswith(("https://", "http://")):
        from outbound.logos import fetch_logo  # aiohttp, too
        from runtime.outbound_wiring import open_fetcher

        loopback = not settings.base_url or is_loopback_url(settings.base_url)
        return await fetch_logo(open_fetcher(settings), given, loopback=loopback)
    try:
        with Path(given).open("rb") as opened:
            file = opened.read(MOST_LOGO + 1)
    except OSError as error:
        raise ValueError(f"{given} cannot be read: {error.strerror}") from None
    if len(file) > MOST_LOGO:
        raise ValueError(f"{given} is larger than 1 MiB")
    return file
