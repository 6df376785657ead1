"""Verified domains of apps: the allowed domains, and the required content of the file.

A proof says only that the server at the domain names the app. So it counts only for redirect URIs at the domain or
below it, and ends with a change of the app's name or redirect URIs. A domain can change hands, so the file is read
again daily. A proof lasts 90 days from the last check that found the app, and ends after two checks in a row that found
no file, or a file without the app.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from store.apps.redirect_uris import web_host
from store.apps.registration import Registration
from store.lifetimes import DOMAIN_CHECK, DOMAIN_PROOF
from store.names import is_domain
from store.phrases import Phrase
from store.refused import Refused

PATH = "/.well-known/latchkey-app-verification.txt"
FILE_BYTES = 16_384
"""A larger file proves nothing: 16 KiB name some 700 apps."""
MOST_MISSES = 2
"""Failed checks in a row; the last of these ends the proof."""


class File(Protocol):
    """The answer of a domain: the text of the file, or an error for people. `answered`: a server of the domain gave the
    answer, without an error of its own."""

    @property
    def text(self) -> bytes:
        """The file."""

    @property
    def error(self) -> str:
        """Why there is no file; empty if there is one."""

    @property
    def answered(self) -> bool:
        """Whether the answer shows if there is a file."""


def provable(app: Registration) -> tuple[str, ...]:
    """The hosts of the app's redirect URIs that can be verified, each once."""
    hosts = (web_host(uri) for uri in app.redirect_uris)
    return tuple(dict.fromkeys(host for host in hosts if host and is_domain(host)))


def check_domain(app: Registration, typed: str) -> str:
    """The typed domain, if the app may prove it: it is the host of a redirect URI of the app, or above one. Raises
    Refused("invalid_request")."""
    domain = typed.strip().lower()
    if not is_domain(domain):
        raise Refused(
            "invalid_request",
            Phrase("Enter a domain such as example.com. Write an international one in its xn-- form."),
        )
    if not any(within(host, domain) for host in provable(app)):
        raise Refused(
            "invalid_request",
            Phrase("This app has no https redirect URI without a port at this domain or a subdomain of it."),
        )
    return domain


def within(host: str, domain: str) -> bool:
    """Whether a host is the domain or a subdomain of it."""
    return host == domain or host.endswith(f".{domain}")


def names_app(file: bytes, client_id: str) -> bool:
    """Whether a line of the file is the client id."""
    return client_id.encode() in (line.strip() for line in file.splitlines())


def proven(app: Registration, domain: str, seen: Registration, now: int) -> Registration:
    """The registration with a domain proven at `now` (epoch ms). Raises Refused("invalid_request") if the app differs
    from `seen`, its state before the file was fetched."""
    if (app.name, app.redirect_uris) != (seen.name, seen.redirect_uris):
        raise Refused("invalid_request", Phrase("The app changed while we checked its domain. Check again."))
    return app.with_domain(domain, now)


def is_due(app: Registration, now: int) -> bool:
    """Whether the proven domain of the app has to be checked again."""
    return bool(app.domain) and (app.domain_checked + DOMAIN_CHECK <= now or 0 < app.domain_until <= now)


def rechecked(app: Registration, seen: Registration, file: File, now: int) -> Registration:
    """The registration after a check of its domain at `now` (epoch ms); without the domain if the proof has ended.
    Unchanged if somebody else has proven or checked a domain since the app was `seen`."""
    if (app.domain, app.domain_checked) != (seen.domain, seen.domain_checked):
        return app
    if file.answered and not file.error and names_app(file.text, app.client_id):
        return app.with_domain(app.domain, now)
    misses = app.domain_misses + file.answered
    until = app.domain_until or now + DOMAIN_PROOF  # proven by a release that set no end
    if misses >= MOST_MISSES or until <= now:
        return replace(app, domain="")
    return replace(app, domain_until=until, domain_checked=now, domain_misses=misses)
