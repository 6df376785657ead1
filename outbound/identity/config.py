"""The file of `--identity-config`: identity providers with which people sign in, in TOML."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from outbound.address_policy import Network
from outbound.identity.ldap.config import LARGEST_CA, OF_LDAP, directory_of, issuer_of
from outbound.identity.providers import (
    APPLE,
    EVERY_TENANT,
    GITHUB,
    ISSUERS,
    LDAP,
    MICROSOFT,
    OIDC,
    TENANT,
    TITLES,
    TYPES,
    Provider,
    Providers,
)
from outbound.toml_table import TomlTable, Wrong
from store.apps.client_keys import InvalidKeys, check_jwks_uri
from store.crypto.jose.algorithms import ES256
from store.crypto.jose.jwk import PublicKey
from store.crypto.jose.private import PrivateKey
from store.names import check_app_name, is_domain
from store.refused import reason_of

LARGEST = 2**20
MOST_PROVIDERS = 20
MOST_LISTED = 1000
METHODS = ("client_secret_basic", "client_secret_post", "none")
_OF_OIDC = (
    *("client_id", "secret_env", "auth_method", "scopes", "tenant", "team_id", "key_id", "mfa_acr", "networks"),
)
_KNOWN = (
    *OF_LDAP,
    *("name", "title", "type", "issuer", "client_id", "secret_env", "auth_method", "scopes"),
    *("tenant", "team_id", "key_id", "trust_email", "create", "domains", "second_step", "mfa_acr", "networks"),
)
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_APPLE_ID = re.compile(r"[A-Z0-9]{10}")
_SCOPE = re.compile(r"[!#-\[\]-~]{1,100}")
_SCOPES = {OIDC: "openid email profile", GITHUB: "read:user user:email", APPLE: "name email"}


class ProvidersError(ValueError):
    """The file is unusable. The message is one line, names the place, and never has a secret."""


class ProvidersFile(NamedTuple):
    """The text of the file, and the content of the files of certificates that it names, by their names there."""

    text: str = ""
    authorities: Mapping[str, str] = {}


def read_providers(path: Path | None) -> ProvidersFile:
    """The content of the file and of those that it names; empty without one. Raises ProvidersError."""
    if path is None:
        return ProvidersFile()
    text = _text_of(path, LARGEST)
    try:
        listed = tomllib.loads(text).get("provider")
    except (RecursionError, tomllib.TOMLDecodeError) as error:
        raise ProvidersError(f"{path} is not TOML: {error}") from None
    tables = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    named = {one["ca_file"] for one in tables[:MOST_PROVIDERS] if isinstance(one.get("ca_file"), str)}
    return ProvidersFile(text, {name: _text_of(path.parent / name, LARGEST_CA) for name in sorted(named)})


def _text_of(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(most + 1)
        if len(raw) > most:
            raise ProvidersError(f"{path} has more than {most} bytes")
        return raw.decode()
    except OSError as error:
        raise ProvidersError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ProvidersError(f"{path} is no text: {error}") from None


def load_providers(path: Path | None, environment: Mapping[str, str] | None = None) -> Providers:
    """The providers in a file; none without a file. Raises ProvidersError."""
    return parse_providers(path, read_providers(path), environment)


def parse_providers(path: Path | None, file: ProvidersFile, environment: Mapping[str, str] | None = None) -> Providers:
    """The providers in the content of the file; secrets come from the environment. Raises ProvidersError."""
    secrets = os.environ if environment is None else environment
    try:
        content = tomllib.loads(file.text)
        tables = TomlTable(content, "", ("provider",)).tables("provider", _KNOWN)
        if len(tables) > MOST_PROVIDERS:
            raise Wrong("provider", f"is there more than {MOST_PROVIDERS} times")
        found = tuple(_provider(table, secrets, file.authorities) for table in tables)
        for place, one in enumerate(found):
            if one.name in [earlier.name for earlier in found[:place]]:
                raise Wrong(f"provider[{place}].name", "is there twice")
            # Two with one issuer and different clients would share identities, and one could be trusted for more.
            if any(_overlap(one, earlier) for earlier in found[:place]):
                raise Wrong(f"provider[{place}].issuer", "is there twice")
    except (RecursionError, tomllib.TOMLDecodeError) as error:
        raise ProvidersError(f"{path} is not TOML: {error}") from None
    except Wrong as wrong:
        raise ProvidersError(f"{path}: {wrong}") from None
    return Providers(found)


def _overlap(one: Provider, other: Provider) -> bool:
    """Whether an identity could be of both."""
    if one.issuer != other.issuer:
        return False
    return one.tenant == other.tenant or one.tenant in EVERY_TENANT or other.tenant in EVERY_TENANT


def _provider(table: TomlTable, secrets: Mapping[str, str], authorities: Mapping[str, str]) -> Provider:
    kind = table.one_of("type", TYPES)
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise Wrong(f"{table.place}.name", "has 1 to 32 of a-z, 0-9 and hyphens: it is part of the callback's address")
    trusted, create = table.take("trust_email", bool, False), table.take("create", bool, False)
    domains = _listed(table, "domains", is_domain, "must be domains in lower-case ASCII, such as example.com")
    if create and not trusted:
        raise Wrong(f"{table.place}.create", "needs trust_email: a new account gets the address that the provider says")
    for other in _OF_OIDC if kind == LDAP else OF_LDAP:
        if table.has(other):
            raise Wrong(f"{table.place}.{other}", f"is not for providers of the type {kind}")
    if kind == LDAP:
        own_step = table.one_of("second_step", ("own", "provider")) == "own"
        authority = authorities.get(table.text("ca_file"), "") if table.has("ca_file") else ""
        return Provider(
            name,
            _title(table, name.capitalize()),
            kind,
            issuer_of(table),
            "",
            by_address=trusted,
            create=create,
            domains=domains,
            own_step=own_step,
            directory=directory_of(table, secrets, authority),
        )
    secret = _secret(table, kind, secrets)
    return Provider(
        name,
        _title(table, TITLES.get(kind, name.capitalize())),
        kind,
        _issuer(table, kind),
        table.text("client_id"),
        "" if kind == APPLE else secret,
        table.one_of("auth_method", ("", *METHODS)) if table.has("auth_method") else "",
        tuple(dict.fromkeys(_scopes(table, kind))),
        _tenant(table, kind),
        _apple(table, kind, "team_id"),
        _apple(table, kind, "key_id"),
        _key(table, secret) if kind == APPLE else None,
        trusted,
        create,
        domains,
        table.one_of("second_step", ("own", "provider")) == "own",
        _listed(table, "mfa_acr", lambda one: len(one) <= 200 and one.isprintable(), "must be values of acr"),
        _networks(table),
    )


def _issuer(table: TomlTable, kind: str) -> str:
    if kind == OIDC or table.has("issuer"):
        url = table.text("issuer")
        try:
            check_jwks_uri(url, loopback=True)
        except InvalidKeys:
            raise Wrong(f"{table.place}.issuer", "must be an https URL, or http to this machine") from None
        if "?" in url or len(url) > 255:
            raise Wrong(f"{table.place}.issuer", "has no query, and at most 255 characters")
        return url if kind == OIDC else url.rstrip("/")
    return ISSUERS[kind]


def _title(table: TomlTable, default: str) -> str:
    try:
        return check_app_name(table.text("title", default))
    except ValueError as error:
        raise Wrong(f"{table.place}.title", f"is no name: {reason_of(error)}") from None


def _secret(table: TomlTable, kind: str, secrets: Mapping[str, str]) -> str:
    """The secret in the environment variable that the table names: the file itself has none."""
    if kind == OIDC and table.text("auth_method", "-") == "none":
        return ""
    variable = table.text("secret_env")
    if not _ENVIRONMENT.fullmatch(variable):
        raise Wrong(f"{table.place}.secret_env", "must be the name of an environment variable")
    secret = secrets.get(variable, "")
    if not secret:
        raise Wrong(f"{table.place}.secret_env", f"names {variable}, which is not set")
    if len(secret) > 8192:
        raise Wrong(f"{table.place}.secret_env", f"names {variable}, which is too long")
    return secret


def _scopes(table: TomlTable, kind: str) -> tuple[str, ...]:
    default = _SCOPES.get(kind, _SCOPES[OIDC])
    scopes = tuple(table.text("scopes", default).split())
    if not scopes or not all(map(_SCOPE.fullmatch, scopes)):
        raise Wrong(f"{table.place}.scopes", "must be names of scopes with spaces between")
    if kind in (OIDC, MICROSOFT) and "openid" not in scopes:
        raise Wrong(f"{table.place}.scopes", "needs openid")
    return scopes


def _tenant(table: TomlTable, kind: str) -> str:
    if kind != MICROSOFT:
        if table.has("tenant"):
            raise Wrong(f"{table.place}.tenant", f"is for {MICROSOFT} alone")
        return ""
    tenant = table.text("tenant")
    if tenant not in EVERY_TENANT and not TENANT.fullmatch(tenant):
        raise Wrong(f"{table.place}.tenant", f"must be the id of a tenant, or {', '.join(EVERY_TENANT)}")
    return tenant


def _apple(table: TomlTable, kind: str, name: str) -> str:
    if kind != APPLE:
        if table.has(name):
            raise Wrong(f"{table.place}.{name}", f"is for {APPLE} alone")
        return ""
    value = table.text(name)
    if not _APPLE_ID.fullmatch(value):
        raise Wrong(f"{table.place}.{name}", "has ten of A-Z and 0-9")
    return value


def _key(table: TomlTable, secret: str) -> PrivateKey:
    """The private key that signs Apple's client secrets: the content of the .p8 file."""
    try:
        key = load_pem_private_key(secret.replace("\\n", "\n").encode(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError
    except (ValueError, TypeError):
        where = table.text("secret_env")
        raise Wrong(f"{table.place}.secret_env", f"names {where}, which is no private key of P-256 in PEM") from None
    return PrivateKey(ES256, PublicKey.of(key.public_key()), key)


def _listed(table: TomlTable, name: str, fits: Callable[[str], bool], why: str) -> tuple[str, ...]:
    values = table.take(name, list, [])
    if len(values) > MOST_LISTED:
        raise Wrong(f"{table.place}.{name}", f"has at most {MOST_LISTED} entries")
    if not all(isinstance(one, str) and one and fits(one) for one in values):
        raise Wrong(f"{table.place}.{name}", why)
    return tuple(dict.fromkeys(values))


def _networks(table: TomlTable) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(one) for one in _listed(table, "networks", bool, "must be networks"))
    except ValueError:
        raise Wrong(f"{table.place}.networks", "must be networks, such as 10.0.0.0/8") from None


def callback_of(base_url: str, name: str) -> str:
    """The address to register at the provider."""
    return f"{base_url}/signin/with/{name}/callback"


def host_of(provider: Provider) -> str:
    """The host that people see at the provider."""
    return urlsplit(provider.issuer).hostname or ""
