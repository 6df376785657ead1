"""Sectors: the groups of apps for which a person has one pairwise id. OpenID Connect Core 8.1.

The sector of an app is the host of its redirect URIs or, if it named a sector identifier URI, the host of that. It is
fixed at registration, because another sector would make a stranger of everybody who uses the app.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import orjson

from store.apps.redirect_uris import host_of
from store.phrases import Phrase
from store.webhooks.urls import InvalidWebhookUrl, check_webhook_url

PUBLIC, PAIRWISE = "public", "pairwise"
SUBJECT_TYPES = (PUBLIC, PAIRWISE)
FIXED = "the subject type and the sector of an app are fixed at registration: another would make its people strangers"
SECTOR_FILE_BYTES = 65_536
"""The longest list of redirect URIs at a sector identifier URI."""


class InvalidSector(ValueError):
    """A subject type, a sector or its list breaks a rule; the message says which, for people."""


def check_subject_type(subject_type: str, sector_uri: str) -> None:
    """Raises InvalidSector unless a registration may have these."""
    if subject_type not in SUBJECT_TYPES:
        raise InvalidSector(f"subjectType is {' or '.join(SUBJECT_TYPES)}")
    if sector_uri:
        if subject_type != PAIRWISE:
            raise InvalidSector("a sector identifier URI is for the subject type pairwise")
        check_sector_uri(sector_uri, loopback=True)  # whoever registers the app decides about loopback


def check_sector_uri(uri: str, *, loopback: bool = False) -> None:
    """Raises InvalidSector unless a sector identifier URI has this form: https, or with `loopback` also http to this
    machine, which is a developer's."""
    try:
        check_webhook_url(uri, loopback=loopback)
    except InvalidWebhookUrl:
        said = "a sector identifier URI is an https address in ASCII, without user name and fragment"
        raise InvalidSector(said) from None


def check_one_host(redirect_uris: Sequence[str], sector_uri: str) -> None:
    """Raises InvalidSector for redirect URIs of several hosts without a sector identifier URI. A private-use scheme
    counts as a host."""
    hosts = sorted({host_of(uri) for uri in redirect_uris})
    if len(hosts) > 1 and not sector_uri:
        said = "the redirect URIs of a pairwise app have one host, or it names a sector identifier URI"
        raise InvalidSector(f"{said} (hosts: {', '.join(hosts[:5])})")


def check_told_at(sector: str, url: str) -> None:
    """Raises InvalidSector for a URL outside of a pairwise app's sector to which its owner wants events about people.
    By them, the owner of an app with the redirect URI of another site would learn that site's ids. Accepts everything
    without a sector."""
    if sector and url and urlsplit(url).hostname != sector.strip("[]"):
        raise InvalidSector(
            Phrase("An app that gets its own ID for each person can use only URLs at %(host)s here.", host=sector)
        )


def check_sector_file(text: bytes, redirect_uris: Sequence[str]) -> None:
    """Raises InvalidSector unless the content of a sector identifier URI is a JSON array with all redirect URIs."""
    try:
        listed = orjson.loads(text)
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not all(isinstance(uri, str) for uri in listed):
        raise InvalidSector("the sector identifier URI does not lead to a JSON array of redirect URIs")
    missing = [uri for uri in redirect_uris if uri not in listed]
    if missing:
        raise InvalidSector(f"the list at the sector identifier URI does not have {missing[0][:200]!a}")
