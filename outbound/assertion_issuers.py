"""The file of `--assertion-issuers`: identity providers whose assertions connect apps, in TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from outbound.toml_table import TomlTable, Wrong
from store.apps.client_keys import InvalidKeys, check_jwks_uri
from store.credits.credits import MAX_AMOUNT
from store.names import check_app_name, is_domain
from store.oauth.assertions.asked_access import NO_SIGN_IN, SPENDS
from store.oauth.assertions.issuers import TrustedIssuer, TrustedIssuers
from store.oauth.client_assertions import CLIENT_ALGORITHMS
from store.refused import reason_of

LARGEST = 2**20
MOST_ISSUERS = 100
MOST_LISTED = 1000
"""Domains, apps or scopes in one list."""
_ISSUER = (
    *("issuer", "name", "jwks_uri", "algorithms", "tenant"),
    *("domains", "clients", "consent", "spend_limit", "resources"),
)
CONSENTS = ("issuer", "person")


class IssuersError(ValueError):
    """The file is unusable. The message is one line and names the place."""


def load_issuers(path: Path | None) -> TrustedIssuers:
    """The issuers in a file; none without a file. Raises IssuersError."""
    if path is None:
        return TrustedIssuers()
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise IssuersError(f"{path} has more than {LARGEST} bytes")
        content = tomllib.loads(raw.decode())
    except OSError as error:
        raise IssuersError(f"{path} cannot be read: {error.strerror}") from None
    except (RecursionError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise IssuersError(f"{path} is not TOML: {error}") from None
    try:
        tables = TomlTable(content, "", ("issuer",)).tables("issuer", _ISSUER)
        found = tuple(map(_issuer, tables))
        if len(found) > MOST_ISSUERS:
            raise Wrong("issuer", f"is there more than {MOST_ISSUERS} times")
        for place, one in enumerate(found):
            if one.issuer in [earlier.issuer for earlier in found[:place]]:
                raise Wrong(f"issuer[{place}].issuer", "is there twice")
    except Wrong as wrong:
        raise IssuersError(f"{path}: {wrong}") from None
    return TrustedIssuers(found)


def _issuer(table: TomlTable) -> TrustedIssuer:
    issuer, jwks_uri = _address(table, "issuer", table.text("issuer")), table.text("jwks_uri", "")
    resources = _resources(table)
    spends = any(SPENDS in scopes for _, scopes in resources)
    if table.has("spend_limit") != spends:
        raise Wrong(f"{table.place}.spend_limit", f"and the scope {SPENDS} come together")
    return TrustedIssuer(
        issuer,
        _name(table, issuer),
        _listed(table, "domains", is_domain, "must be domains in lower-case ASCII, such as example.com"),
        _listed(table, "clients", lambda one: len(one) <= 512 and one.isprintable() and one.isascii(), "must be ids"),
        resources,
        _address(table, "jwks_uri", jwks_uri) if jwks_uri else "",
        _listed(table, "algorithms", CLIENT_ALGORITHMS.__contains__, f"must be of {', '.join(CLIENT_ALGORITHMS)}")
        if table.has("algorithms")
        else CLIENT_ALGORITHMS,
        table.text("tenant", ""),
        table.one_of("consent", CONSENTS) == "issuer",
        table.whole("spend_limit", 1, MAX_AMOUNT) if spends else 0,
    )


def _address(table: TomlTable, name: str, url: str) -> str:
    try:
        check_jwks_uri(url, loopback=True)
    except InvalidKeys:
        raise Wrong(f"{table.place}.{name}", "must be an https URL, or http to this machine") from None
    if name == "issuer" and "?" in url:  # RFC 8414 2
        raise Wrong(f"{table.place}.{name}", "has no query")
    return url


def _name(table: TomlTable, issuer: str) -> str:
    try:
        return check_app_name(table.text("name", urlsplit(issuer).netloc))
    except ValueError as error:
        raise Wrong(f"{table.place}.name", f"is no name: {reason_of(error)}") from None


def _listed(table: TomlTable, name: str, fits: Callable[[str], bool], why: str) -> tuple[str, ...]:
    values = table.take(name, list)
    if not 1 <= len(values) <= MOST_LISTED:
        raise Wrong(f"{table.place}.{name}", f"has 1 to {MOST_LISTED} entries")
    if not all(isinstance(one, str) and one and fits(one) for one in values):
        raise Wrong(f"{table.place}.{name}", why)
    return tuple(dict.fromkeys(values))


def _resources(table: TomlTable) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The most scopes of each resource. Whether an API is registered is known when it is asked for."""
    given = table.take("resources", dict)
    place = f"{table.place}.resources"
    if not 1 <= len(given) <= MOST_LISTED:
        raise Wrong(place, f"has 1 to {MOST_LISTED} entries")
    found = []
    for identifier in given:
        inner = TomlTable(given, place, tuple(given))
        scopes = _listed(inner, identifier, lambda one: len(one) <= 64 and one.isprintable(), "must be names of scopes")
        if NO_SIGN_IN in scopes:
            raise Wrong(f"{place}.{identifier}", f"has {NO_SIGN_IN}, which is for signing in with a browser")
        found.append((identifier, scopes))
    return tuple(found)
