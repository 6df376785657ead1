"""URLs of stores: which are allowed, and how messages show them, without user, password and query."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, quote

from redis.asyncio.connection import parse_url

from store.errors import StartupError

ONE_SERVER: Final = ("redis", "rediss", "unix")
SENTINEL: Final = ("redis+sentinel", "rediss+sentinel")
CLUSTER: Final = ("redis+cluster", "rediss+cluster")
SENTINEL_PORT: Final = 26379
SENTINEL_LOGIN: Final = ("sentinel_username", "sentinel_password")

# Options that a URL may set. Retries, decoding and the protocol are fixed, because the scripts depend on them.
_OPTIONS: Final = frozenset({"db", "username", "password"})
_OF_CLUSTERS: Final = frozenset({"username", "password"})


def unix_url(path: str) -> str:
    """The URL of a store that listens on the unix socket at `path`."""
    return "unix://" + quote(path)


def scheme_of(url: str) -> str:
    """The scheme: the text before `://`."""
    return url.partition("://")[0]


def shown(url: str) -> str:
    """The URL without user, password and query, for messages; also if the password makes the URL invalid."""
    scheme, mark, rest = url.partition("://")
    if "@" in rest.partition("?")[2]:
        return f"{scheme}{mark}..."
    return f"{scheme}{mark}".rpartition("@")[2] + rest.rpartition("@")[2].partition("?")[0]


def check_url(url: str) -> None:
    """Raises StartupError for an unknown scheme and for an option that a URL may not set."""
    scheme = scheme_of(url)
    if scheme not in ONE_SERVER + SENTINEL + CLUSTER:
        raise StartupError(
            f"The store's URL {shown(url)} is not one of embedded, memory, redis://, rediss://, unix://, "
            "redis+sentinel:// and redis+cluster:// (or rediss+…:// with TLS)."
        )
    allowed = _OF_CLUSTERS if scheme in CLUSTER else _OPTIONS.union(SENTINEL_LOGIN if scheme in SENTINEL else ())
    for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True):
        if name not in allowed and not (scheme.startswith("rediss") and name.startswith("ssl_")):
            raise StartupError(f"The store's URL {shown(url)} has an option that it may not set: {name}")


def hosts_of(url: str, port: int) -> tuple[list[tuple[str, int]], dict[str, Any], str]:
    """The servers that a URL lists, with `port` as the default; its connection options as redis-py's arguments (`ssl`
    with TLS); and the text after the slash. Raises ValueError."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    login, at, listed = authority.rpartition("@")
    plain = scheme.partition("+")[0]
    hosts: list[tuple[str, int]] = []
    options: dict[str, Any] = {}
    for host in listed.split(","):
        options = dict(parse_url(f"{plain}://{login}{at}{host}?{query}"))
        options.pop("connection_class", None)
        hosts.append((str(options.pop("host", "")), int(options.pop("port", port))))
    if not all(host for host, _ in hosts):
        raise ValueError("a host is missing")
    if plain == "rediss":
        options["ssl"] = True
    return hosts, options, path
