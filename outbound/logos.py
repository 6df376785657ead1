"""Fetches the logo of an app from an address that its owner or the operator typed."""

from __future__ import annotations

from outbound.fetching import Fetcher
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.urls import check_webhook_url

LOGO_BYTES = 2**20
TYPES = ("image/png", "image/jpeg", "image/webp")
LOGO_ADDRESS = Phrase("The address of a logo")


async def fetch_logo(fetcher: Fetcher, url: str, person: str = "", *, loopback: bool) -> bytes:
    """The file at this address, which nobody has decoded yet. `person`: who asked; `loopback`: whether it may be on
    this machine. Raises Refused("invalid_request") with a reason for people."""
    url = url.strip()
    try:
        check_webhook_url(url, loopback=loopback, what=LOGO_ADDRESS)
    except ValueError:
        raise Refused(
            "invalid_request",
            Phrase("Enter an https address such as https://app.example.com/logo.png, with the host in lower case."),
        ) from None
    found = await fetcher.fetch(url, LOGO_BYTES, person, TYPES)
    if found.error:
        raise Refused("invalid_request", Phrase("We couldn’t get that picture. %(reason)s", reason=found.error))
    return found.text
