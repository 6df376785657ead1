"""Client ID metadata documents: their URLs, what they may say, and how long they count.
draft-ietf-oauth-client-id-metadata-document.

The client id on the wire is the document's URL; in keys and tokens it is a digest (`store/apps/client_ids.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis

from store import keys
from store.apps.client_ids import LONGEST_URL, inner_id
from store.apps.redirect_uris import InvalidRedirectURI, host_of
from store.apps.registration import DOCUMENT, Registration
from store.apps.self_registered.kept import REFRESH_DAYS
from store.apps.self_registered.metadata import KEY, NOTHING, registration_of
from store.errors import wrapped
from store.json_text import Ambiguous, NotJSON, decode_strictly
from store.lifetimes import DAY, DOCUMENT_PAUSE, MINUTE, SECOND
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.urls import InvalidWebhookUrl, check_webhook_url, is_loopback_url

DOCUMENT_BYTES = 5 * 1024
LEAST_FRESH, MOST_FRESH = 5 * MINUTE, DAY
"""Bounds in ms of how long a document counts before it is read again."""
STALE = 7 * DAY
"""How much longer, in ms, a token request accepts a document that can't be read again."""
_DOTS = re.compile(r"(?:^|/)(?:\.|%2[Ee]){1,2}(?:$|[/;])")
_SECRETS = ("client_secret", "client_secret_expires_at")
_AGE = re.compile(r"[0-9]{1,9}")
BAD_URL = Phrase("Its address isn't one of a metadata document.")
NOT_JSON = Phrase("It isn't a JSON object.")
OTHER_ID = Phrase("It names another client_id than its own address.")
SECRET = Phrase("It has a secret, which everybody can read.")
OTHER_HOST = Phrase("It names a redirect URI of another site.")
FETCHING = "fetching"
"""The mark while a process fetches; afterwards it is the reason why that failed."""


def check_document_url(url: str, *, loopback: bool = False) -> None:
    """Raises ValueError unless this is the URL of a document (section 3). `loopback`: whether it may be on this
    machine."""
    try:
        check_webhook_url(url, loopback=loopback)
    except InvalidWebhookUrl:
        raise ValueError(BAD_URL) from None
    path = urlsplit(url).path
    if not url.startswith("https://") or len(url) > LONGEST_URL or not path or _DOTS.search(path):
        raise ValueError(BAD_URL)


def read_document(
    text: bytes, url: str, fresh_until: int, base_url: str, own: str, *, loopback: bool = False
) -> Registration:
    """The registration in the document at a URL, which counts until `fresh_until` (epoch ms). `own`: the server's name.
    Raises Refused, with a reason for people."""
    try:
        found = decode_strictly(text)
    except (Ambiguous, NotJSON):
        found = None
    if not isinstance(found, dict):
        raise Refused("invalid_client_metadata", NOT_JSON)
    # Section 4: compared as strings.
    if found.get("client_id") != url:
        raise Refused("invalid_client_metadata", OTHER_ID)
    # Section 4.1: everybody can read it.
    if any(name in found for name in _SECRETS):
        raise Refused("invalid_client_metadata", SECRET)
    metadata: dict[str, Any] = {"client_name": urlsplit(url).netloc[:100], "token_endpoint_auth_method": NOTHING}
    metadata |= {name: value for name, value in found.items() if value is not None}
    if metadata["token_endpoint_auth_method"] not in (NOTHING, KEY):
        raise Refused("invalid_client_metadata", f"token_endpoint_auth_method is {NOTHING} or {KEY}.")
    facts: dict[str, Any] = {"origin": DOCUMENT, "document_url": url, "fresh_until": fresh_until}
    facts["refresh_lifetime_days"] = REFRESH_DAYS
    app = registration_of(metadata, inner_id(url), base_url, own, loopback=loopback, **facts)
    check_own_uris(url, app.return_uris)
    return app


def check_own_uris(url: str, uris: Sequence[str]) -> None:
    """Section 8.1: addresses on the web are at the document's host or below it, and at its port; a scheme of its own is
    the reverse of such a domain. Programs at a loopback address are anybody's. Raises
    Refused("invalid_redirect_uri")."""
    home = urlsplit(url)
    for uri in uris:
        if is_loopback_url(uri) and uri.startswith("http:"):
            continue
        try:
            host = host_of(uri)
        except InvalidRedirectURI:
            host = ""
        if host.endswith(":"):
            host, port = ".".join(reversed(host[:-1].split("."))), home.port
        else:
            port = urlsplit(uri).port
        if not _is_at(host, home.hostname or "") or (port or 443) != (home.port or 443):
            raise Refused("invalid_redirect_uri", OTHER_HOST, value=uri)


def _is_at(host: str, home: str) -> bool:
    return bool(home) and (host == home or host.endswith(f".{home}"))


def fresh_for(headers: Mapping[str, str]) -> int:
    """How long, in ms, an answer with these headers counts (RFC 9111 4.2), within our bounds; the least time if they do
    not say. `headers` has lower-case names."""
    directives = dict(
        one.strip().lower().partition("=")[::2] for one in headers.get("cache-control", "").split(",") if one.strip()
    )
    if "no-store" in directives or "no-cache" in directives:
        return LEAST_FRESH
    seconds: float | None = None
    for name in ("s-maxage", "max-age"):
        if seconds is None and _AGE.fullmatch(said := directives.get(name, "").strip('"')):
            seconds = int(said)
    if seconds is None:
        seconds = _until_expires(headers)
    age = headers.get("age", "")
    seconds -= int(age) if _AGE.fullmatch(age) else 0
    return int(min(max(seconds * SECOND, LEAST_FRESH), MOST_FRESH))


def _until_expires(headers: Mapping[str, str]) -> float:
    try:
        ends, now = (parsedate_to_datetime(headers[name]) for name in ("expires", "date"))
        return (ends - now).total_seconds()
    except (LookupError, ValueError, TypeError, OverflowError):
        return 0.0


class DocumentFetches:
    """Marks of documents that are being fetched, or could not be a moment ago, for all processes. Every method raises
    StoreUnavailable."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def begin(self, client_id: str) -> bool:
        """Whether this process may fetch the document now."""
        with wrapped():
            return bool(await self._client.set(keys.fetching(client_id), FETCHING, nx=True, px=DOCUMENT_PAUSE))

    async def state(self, client_id: str) -> str:
        """FETCHING, the reason of the last failure, or empty."""
        with wrapped():
            found = await self._client.get(keys.fetching(client_id))
        return found.decode() if isinstance(found, bytes) else ""

    async def failed(self, client_id: str, reason: str) -> None:
        """Nobody fetches the document again for DOCUMENT_PAUSE."""
        with wrapped():
            await self._client.set(keys.fetching(client_id), str(reason), px=DOCUMENT_PAUSE)

    async def ended(self, client_id: str) -> None:
        """The document was fetched, or was not tried."""
        with wrapped():
            await self._client.delete(keys.fetching(client_id))
