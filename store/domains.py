"""Domains that apps prove: which may be proven, and what a file on one must say.

A proof says one thing: whoever answers at the domain names the app. So it counts only for redirect URIs at the domain
or below it, and ends with a change of the app's name or redirect URIs.
"""

from __future__ import annotations

from store.redirect_uris import web_host
from store.refused import Refused
from store.registration import Registration, is_domain

PATH = "/.well-known/latchkey-app-verification.txt"
FILE_BYTES = 16_384
"""A larger file proves nothing: 16 KiB name some 700 apps."""


def provable(app: Registration) -> tuple[str, ...]:
    """The hosts of the app's redirect URIs that may be proven, each once."""
    hosts = (web_host(uri) for uri in app.redirect_uris)
    return tuple(dict.fromkeys(host for host in hosts if host and is_domain(host)))


def check_domain(app: Registration, typed: str) -> str:
    """The domain that was typed, if the app may prove it: the host of one of its redirect URIs, or above one. Raises
    Refused("invalid_request")."""
    domain = typed.strip().lower()
    if not is_domain(domain):
        raise Refused("invalid_request", "Type a domain such as example.com, an international one in its xn-- form.")
    if not any(within(host, domain) for host in provable(app)):
        raise Refused(
            "invalid_request", "None of this app's https redirect URIs without a port is at this domain or below it."
        )
    return domain


def within(host: str, domain: str) -> bool:
    """Whether a host is a domain or below it."""
    return host == domain or host.endswith(f".{domain}")


def names_app(file: bytes, client_id: str) -> bool:
    """Whether a line of the file is the client id."""
    return client_id.encode() in (line.strip() for line in file.splitlines())


def proven(app: Registration, domain: str, seen: Registration) -> Registration:
    """The registration with a proven domain. Raises Refused("invalid_request") where the app is no longer the one that
    was seen before the file was fetched."""
    if (app.name, app.redirect_uris) != (seen.name, seen.redirect_uris):
        raise Refused("invalid_request", "The app was changed while its domain was checked. Check again.")
    return app.with_domain(domain)
