"""Redirect URIs: rules for registration, matching, and addresses built from them.

A registered URI is matched as a string (RFC 9700 4.1.3), so the rules are narrow: there is one way to write each
address, and browsers, proxies and applications cannot read it differently.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, quote_plus, urlsplit

from store.phrases import Phrase

MAX_REDIRECT_URI_LENGTH = 2000
MAX_QUERY_FIELDS = 50

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK_HOSTS = frozenset({"127.0.0.1", "[::1]", "localhost"})
# The parameters of the authorization response (RFC 6749 4.1.2, RFC 9207): a client would receive them twice.
_RESPONSE_PARAMETERS = frozenset({"code", "state", "iss", "error", "error_description", "error_uri"})

_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")
# One character class: an alternation costs 0.3 ms for a long address.
_FORBIDDEN_CHARACTER = re.compile(r"[^!$-)+-;=?-\[\]_a-z~]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%[01][0-9A-Fa-f]|%7[Ff]")
# A segment's parameters do not count: some servers resolve "..;x" as "..".
_DOT_SEGMENT = re.compile(r"(?<![^/])\.\.?(?![^/;])")
_ESCAPED_PATH_SYNTAX = re.compile(r"%(?:2[EeFf5]|5[Cc])")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# A host and port without a scheme, such as localhost:3000, look like a scheme and a path.
_PORT_BEHIND = re.compile(r"[0-9]+(?![^/?])")
_REVERSE_DOMAIN = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+")
_HIERARCHY = re.compile(r"(?://([^/?]*))?([^?]*)(?:\?(.*))?")
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::(.*))?")
_HOST_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_APP_AUTHORITY = re.compile(r"[A-Za-z0-9._~-]*")
_LOOPBACK_IP = re.compile(r"http://(127\.0\.0\.1|\[::1\])(?::([0-9]*))?((?:[/?].*)?)", re.DOTALL)
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::([0-9]*))?((?:[/?].*)?)", re.DOTALL)


class InvalidRedirectURI(ValueError):
    """The URI may not be registered; the message says why, for people."""


@dataclass(frozen=True, slots=True)
class _Parts:
    scheme: str
    host: str
    """The host, with the brackets of an IPv6 address; for a private-use scheme the text in its place."""
    port: str
    path: str
    query: str

    @property
    def is_web(self) -> bool:
        return self.scheme in ("http", "https")

    @property
    def origin(self) -> str:
        return f"{self.host}:{self.port}" if self.port else self.host


def check_redirect_uri(uri: str, public: bool, base_url: str = "") -> None:
    """Raise InvalidRedirectURI unless an app may register the URI. `public`: the app has no secret; `base_url`: the
    origin of this server, if known.

    RFC 6749 3.1.2 (absolute, no fragment), RFC 8252 7 (loopback and private-use schemes), RFC 9700 4.1.
    """
    parts = _parse(uri)
    if parts.scheme == "http" and parts.host not in _LOOPBACK_HOSTS:
        raise InvalidRedirectURI(
            Phrase("http is for loopback addresses only (127.0.0.1, [::1], localhost). Use https.")
        )
    if not parts.is_web and not public:
        raise InvalidRedirectURI(Phrase("Only public apps can have a scheme of their own. Use https."))
    if parts.query.count("&") >= MAX_QUERY_FIELDS:
        raise InvalidRedirectURI(Phrase("The query can have at most %(most)s parameters.", most=str(MAX_QUERY_FIELDS)))
    doubled = _RESPONSE_PARAMETERS.intersection(name for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    if doubled:
        raise InvalidRedirectURI(
            Phrase("The query can't have %(name)s, because the response adds it.", name=min(doubled))
        )
    if base_url and is_own_origin(uri, base_url):
        raise InvalidRedirectURI(Phrase("This is the address of this server itself. Use an address of the app."))


def match_redirect_uri(registered: Iterable[str], presented: str, *, localhost: bool = False) -> bool:
    """Whether the presented URI is a registered one: the same string, or a loopback IP at another port.

    RFC 6749 3.1.2.3 and RFC 9700 2.1 (simple string comparison), RFC 8252 7.3 (any port, nothing else differs; only
    with `localhost` for that name, which need not be the loopback interface).
    """
    registered = tuple(registered)
    if presented in registered:
        return True
    portless = _without_loopback_port(presented, localhost)
    return portless is not None and any(portless == _without_loopback_port(uri, localhost) for uri in registered)


def remembered_form(uri: str, *, localhost: bool = False) -> str:
    """The form of a redirect URI for remembered consent: without its port if that may vary (`match_redirect_uri`)."""
    return _without_loopback_port(uri, localhost) or uri


def form_action_source(uri: str) -> str | None:
    """Return the CSP source that allows a form's answer to redirect to the URI (CSP3 form-action).

    It is the scheme of a native app, or None if no source suffices: a web page may redirect to any address and scheme.
    Raises InvalidRedirectURI for a URI that could not be registered, so the result is safe in a header.
    """
    parts = _parse(uri)
    return None if parts.is_web else f"{parts.scheme}:"


def is_interceptable(uri: str) -> bool:
    """Whether another program on the person's device could receive the response (RFC 8252 8.3, 8.6).

    True for loopback addresses and private-use schemes. Raises InvalidRedirectURI for a URI that could not be
    registered.
    """
    parts = _parse(uri)
    if not parts.is_web:
        return True
    return _is_loopback(parts.host)


def web_host(uri: str) -> str | None:
    """The host of an https redirect URI at the default port; None for every other URI.

    Raises InvalidRedirectURI for a URI that could not be registered.
    """
    parts = _parse(uri)
    return parts.host if parts.scheme == "https" and parts.port in ("", "443") else None


def host_of(uri: str) -> str:
    """The host of a redirect URI, without the port; for a private-use scheme the scheme with its colon, which is no
    host's name.

    Raises InvalidRedirectURI for a URI that could not be registered.
    """
    parts = _parse(uri)
    return parts.host if parts.is_web else f"{parts.scheme}:"


@lru_cache(maxsize=1024)
def is_own_origin(uri: str, base_url: str) -> bool:
    """Whether a redirect URI leads to this server, whose origin is `base_url`.

    Ignores the scheme, and treats all names of loopback as one. Raises InvalidRedirectURI for a URI that could not be
    registered.
    """
    parts, base = _parse(uri), urlsplit(base_url)
    if not parts.is_web:
        return False
    port = int(parts.port or _DEFAULT_PORTS[parts.scheme])
    if port != (base.port or _DEFAULT_PORTS[base.scheme]):
        return False
    own = f"[{base.hostname}]" if ":" in (base.hostname or "") else base.hostname or ""
    return parts.host == own or (_is_loopback(parts.host) and _is_loopback(own))


def with_params(uri: str, params: Mapping[str, str]) -> str:
    """Return the URI with parameters added to its query; its own ones stay unchanged (RFC 6749 3.1.2, 4.1.2).

    Raises ValueError for a parameter that holds a lone surrogate.
    """
    if not params:
        return uri
    joint = "?" if "?" not in uri else "" if uri.endswith(("?", "&")) else "&"
    added = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in params.items())
    return f"{uri}{joint}{added}"


def _quoted(text: str) -> str:
    """`quote_plus`, which takes ten times as long for text that needs no quoting."""
    return text if _PLAIN.fullmatch(text) else quote_plus(text)


def display_origin(uri: str) -> str:
    """Return the app's address as people see it: host and port, or the scheme of a native app.

    It is always ASCII: an international domain shows in its registered `xn--` form, which imitates nothing.
    Raises InvalidRedirectURI for a URI that could not be registered.
    """
    parts = _parse(uri)
    return parts.origin if parts.is_web else parts.scheme


def _parse(uri: str) -> _Parts:
    if not 1 <= len(uri) <= MAX_REDIRECT_URI_LENGTH:
        raise InvalidRedirectURI(
            Phrase("A redirect URI must have 1 to %(most)s characters.", most=str(MAX_REDIRECT_URI_LENGTH))
        )
    _check_characters(uri)
    scheme = _SCHEME.match(uri)
    if scheme is None or _PORT_BEHIND.match(uri, scheme.end()):
        raise InvalidRedirectURI(Phrase("A redirect URI must start with its scheme, as in https://."))
    hierarchy = _HIERARCHY.fullmatch(uri, scheme.end())
    assert hierarchy is not None  # every string matches
    authority, path, query = hierarchy.groups()
    _check_path(path)
    if scheme[1] in ("http", "https"):
        host, port = _parse_authority(authority)
    else:
        _check_private_use(scheme[1], authority, path)
        host, port = authority or "", ""
    return _Parts(scheme[1], host, port, path, query or "")


def _check_characters(uri: str) -> None:
    found = _FORBIDDEN_CHARACTER.search(uri)
    if found is None:
        if _BAD_ESCAPE.search(uri):
            raise InvalidRedirectURI(
                Phrase(
                    "A percent sign must start an escape such as %(example)s, and never one of a control character.",
                    example="%20",
                )
            )
        return
    if found[0] == "#":
        raise InvalidRedirectURI(Phrase("A redirect URI can't have a fragment (#)."))
    if found[0] == "*":
        raise InvalidRedirectURI(Phrase("A redirect URI can't have a wildcard (*). Register each address."))
    if not found[0].isascii():
        raise InvalidRedirectURI(
            Phrase("A redirect URI must be ASCII. Write the domain in its xn-- form and escape the rest.")
        )
    if found[0] == " " and uri.count("://") > 1:
        raise InvalidRedirectURI(Phrase("This is more than one address. Register each of them separately."))
    raise InvalidRedirectURI(
        Phrase("A redirect URI can't have spaces, control characters, quotes, brackets or backslashes.")
    )


def _check_path(path: str) -> None:
    if _ESCAPED_PATH_SYNTAX.search(path):
        raise InvalidRedirectURI(Phrase("The path can't have an escaped dot, slash, backslash or percent sign."))
    if _DOT_SEGMENT.search(path):
        raise InvalidRedirectURI(Phrase("The path can't have a . or .. segment. Write the address that it leads to."))


def _check_private_use(scheme: str, authority: str | None, path: str) -> None:
    # RFC 8252 7.1: a domain name in reverse, so at least one dot. javascript:, data:, file: and their like have none.
    if not _REVERSE_DOMAIN.fullmatch(scheme):
        raise InvalidRedirectURI(
            Phrase(
                "The scheme must be https, or http for loopback, or for a public app your domain name in reverse, as "
                "in com.example.app:/callback. Write it in lower case."
            )
        )
    if authority is None and not path.startswith("/"):
        raise InvalidRedirectURI(Phrase("Write a path after the scheme, as in com.example.app:/callback."))
    if not _APP_AUTHORITY.fullmatch(authority or ""):
        raise InvalidRedirectURI(Phrase("Between // and the path, use only letters, digits, dots and hyphens."))


def _parse_authority(authority: str | None) -> tuple[str, str]:
    if not authority:
        raise InvalidRedirectURI(Phrase("The host is missing."))
    if "@" in authority:
        raise InvalidRedirectURI(Phrase("A redirect URI can't have a user name or password (@)."))
    parsed = _AUTHORITY.fullmatch(authority)
    if parsed is None:
        raise InvalidRedirectURI(Phrase("The host isn't valid."))
    host, port = parsed[1], parsed[2]
    _check_host(host)
    if port is not None and (not _PORT.fullmatch(port) or int(port) > 65535):
        raise InvalidRedirectURI(Phrase("The port must be a number from 1 to 65535."))
    return host, port or ""


def _check_host(host: str) -> None:
    if host.startswith("["):
        if _ip_address(host) is None or "%" in host:
            raise InvalidRedirectURI(Phrase("The host isn't a valid IPv6 address."))
        return
    labels = host.split(".")
    if len(host) > 253 or not all(_HOST_LABEL.fullmatch(label) for label in labels):
        raise InvalidRedirectURI(
            Phrase("The host isn't a valid domain name. Write it in lower case, without a trailing dot.")
        )
    # Browsers read a name whose last label is a number as an IPv4 address, in any notation.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]) and _ip_address(host) is None:
        raise InvalidRedirectURI(Phrase("The host isn't a valid IPv4 address."))


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.IPv6Address(host[1:-1]) if host.startswith("[") else ipaddress.IPv4Address(host)
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _ip_address(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


def _without_loopback_port(uri: str, localhost: bool = False) -> str | None:
    """A loopback-IP http URI without its port, with `localhost` one of that name too; None for every other URI and for
    an invalid port."""
    matched = (_LOOPBACK if localhost else _LOOPBACK_IP).fullmatch(uri)
    if matched is None:
        return None
    host, port, rest = matched.groups()
    if port is not None and (not _PORT.fullmatch(port) or int(port) > 65535):
        return None
    return f"http://{host}{rest}"
