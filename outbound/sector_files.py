"""Fetches what a sector identifier URI leads to, when an app registers. OpenID Connect Core 8.1."""

from __future__ import annotations

from collections.abc import Sequence

from outbound.fetching import Fetcher
from store.apps.sectors import SECTOR_FILE_BYTES, InvalidSector, check_sector_file

TYPES = ("application/json", "text/json", "text/plain")


async def check_sector(fetcher: Fetcher, uri: str, redirect_uris: Sequence[str]) -> None:
    """Raises InvalidSector unless the URI leads to a list that has all of these redirect URIs. The list is not read
    again later (OpenID Connect Registration 5)."""
    found = await fetcher.fetch(uri, SECTOR_FILE_BYTES, types=TYPES)
    if found.error:
        raise InvalidSector(f"the list at the sector identifier URI could not be read: {found.error}")
    check_sector_file(found.text, redirect_uris)
