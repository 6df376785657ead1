"""The table of a directory in the file of `--identity-config`."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from outbound.identity.ldap.directory import DirectorySettings
from outbound.identity.ldap.filters import PLACE, WrongFilter, parse_filter
from outbound.toml_table import TomlTable, Wrong
from store.names import check_groups
from store.refused import reason_of

LARGEST_CA = 2**20
MOST_GROUPS = 200
OF_LDAP = (
    *("url", "start_tls", "insecure", "ca_file", "bind_dn", "bind_password_env", "base_dn", "user_filter"),
    *("id_attribute", "mail_attribute", "name_attribute", "groups_attribute", "groups", "timeout"),
)
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,63}")
_DEFAULTS = {
    "id_attribute": "entryUUID",
    "mail_attribute": "mail",
    "name_attribute": "cn",
    "groups_attribute": "memberOf",
}


def directory_of(table: TomlTable, secret_in: Mapping[str, str], authority: str) -> DirectorySettings:
    """The directory of a table. `secret_in`: the environment; `authority`: the content of `ca_file`. Raises Wrong."""
    secure, host, port = _place(table)
    later = table.take("start_tls", bool, False)
    if secure and later:
        raise Wrong(f"{table.place}.start_tls", "is for ldap://: ldaps:// begins with TLS")
    if not (secure or later or _is_here(host) or table.take("insecure", bool, False)):
        why = "must be ldaps://, or needs start_tls = true: passwords would be readable on the way"
        raise Wrong(f"{table.place}.url", why)
    bind_dn = table.text("bind_dn", "") if table.has("bind_dn") else ""
    text = table.text("user_filter", f"(uid={PLACE})")
    try:
        wanted = parse_filter(text)
    except WrongFilter as error:
        raise Wrong(f"{table.place}.user_filter", str(error)) from None
    if PLACE not in text:
        raise Wrong(f"{table.place}.user_filter", f"needs {PLACE}, the place of the name that people type")
    return DirectorySettings(
        host,
        port,
        table.text("base_dn"),
        wanted,
        text,
        bind_dn,
        _password(table, secret_in) if bind_dn else "",
        _context(table, authority) if secure or later else None,
        authority,
        later,
        _attribute(table, "id_attribute"),
        _attribute(table, "mail_attribute"),
        _attribute(table, "name_attribute"),
        _attribute(table, "groups_attribute"),
        _groups(table),
        table.seconds("timeout", 5.0),
    )


def issuer_of(table: TomlTable) -> str:
    """The issuer of a directory's identities: its URL, if the table names no other."""
    text = table.text("issuer") if table.has("issuer") else table.text("url").lower().rstrip("/")
    if len(text) > 255 or not text.isascii() or " " in text:
        raise Wrong(f"{table.place}.issuer", "has at most 255 characters of ASCII, without spaces")
    return text


def _place(table: TomlTable) -> tuple[bool, str, int]:
    """Whether the URL means TLS at once, the host and the port."""
    where = f"{table.place}.url"
    try:
        parts = urlsplit(table.text("url"))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    bare = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in ("ldap", "ldaps") or not host or not bare:
        raise Wrong(where, "must be ldaps://HOST or ldap://HOST, with a port if it is another than 636 or 389")
    secure = parts.scheme == "ldaps"
    return secure, host, port or (636 if secure else 389)


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _password(table: TomlTable, secret_in: Mapping[str, str]) -> str:
    variable = table.text("bind_password_env")
    found = secret_in.get(variable, "")
    if not found:
        raise Wrong(f"{table.place}.bind_password_env", f"names {variable[:128]}, which is not set")
    return found


def _context(table: TomlTable, authority: str) -> ssl.SSLContext:
    """TLS that verifies the certificate and the name in it. Only `ca_file` counts, if there is one."""
    try:
        return ssl.create_default_context(cadata=authority or None)
    except (ssl.SSLError, ValueError):
        raise Wrong(f"{table.place}.ca_file", "has no certificate in PEM") from None


def _attribute(table: TomlTable, name: str) -> str:
    value = table.text(name, _DEFAULTS[name])
    if not _ATTRIBUTE.fullmatch(value):
        raise Wrong(f"{table.place}.{name}", "must be the name of an attribute")
    return value


def _groups(table: TomlTable) -> tuple[tuple[str, str], ...]:
    """The group here for each group there."""
    given = table.take("groups", dict, {})
    if len(given) > MOST_GROUPS:
        raise Wrong(f"{table.place}.groups", f"has at most {MOST_GROUPS} entries")
    for there, name in given.items():
        try:
            if not isinstance(name, str) or not there:
                raise ValueError("must be a name here for each group there")
            check_groups((name,))
        except ValueError as error:
            raise Wrong(f"{table.place}.groups", f"is wrong: {reason_of(error)}") from None
    return tuple((there.lower(), name) for there, name in given.items())
