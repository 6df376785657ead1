"""Rules for the URLs of an app to which this server posts: for webhooks, and for logout tokens."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from store.phrases import Phrase

MAX_WEBHOOK_URL_LENGTH = 2000
WEBHOOK_URL = Phrase("A webhook URL")
LOGOUT_URL = Phrase("A back-channel logout URL")
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "[::1]", "localhost"})

_URL = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?(?:[/?][!-~]*)?")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_FORBIDDEN = re.compile(r"[^!$-;=?-\[\]_a-z~]")


class InvalidWebhookUrl(ValueError):
    """The URL is not allowed for webhooks; the message says why, for people."""


def check_webhook_url(url: str, *, loopback: bool = False, what: str = WEBHOOK_URL) -> None:
    """Raises InvalidWebhookUrl unless an app may use this URL: https, or with `loopback` also http to this machine. The
    host's addresses are checked at each delivery, because they may change. `what`: its name in messages."""
    if len(url) > MAX_WEBHOOK_URL_LENGTH:
        raise InvalidWebhookUrl(
            Phrase("%(what)s can have at most %(most)s characters.", what=what, most=str(MAX_WEBHOOK_URL_LENGTH))
        )
    if "#" in url:
        raise InvalidWebhookUrl(Phrase("%(what)s can't have a fragment (#).", what=what))
    if _FORBIDDEN.search(url):
        raise InvalidWebhookUrl(
            Phrase(
                "%(what)s must be ASCII, without spaces, quotes, brackets or backslashes: write the domain in its "
                "xn-- form and escape the rest.",
                what=what,
            )
        )
    if "@" in re.split(r"[/?]", url.partition("://")[2])[0]:
        raise InvalidWebhookUrl(Phrase("%(what)s can't have a user name or password (@).", what=what))
    found = _URL.fullmatch(url)
    if found is None or int(found[3] or 1) > 65535 or not is_host(found[2]):
        raise InvalidWebhookUrl(
            Phrase("%(what)s must look like https://app.example.com/webhooks, with the host in lower case.", what=what)
        )
    here = is_loopback_url(url)
    if here and not loopback:
        raise InvalidWebhookUrl(
            Phrase("This server can't post to itself. Enter an address that it reaches over the network.")
        )
    if found[1] == "http" and not here:
        raise InvalidWebhookUrl(
            Phrase("%(what)s must start with https://, so that nobody can read events on the way.", what=what)
        )


def is_loopback_url(url: str) -> bool:
    """Whether a URL names the machine itself, by name or by address."""
    host = urlsplit(url).hostname or ""
    address = _address(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


def is_host(host: str) -> bool:
    """Whether a text is a host name in lower-case ASCII, or an IP address in its usual form."""
    if host.startswith("["):
        return _address(host[1:-1]) is not None
    labels = host.split(".")
    # Many programs read a name whose last label is a number as an IPv4 address, in any notation.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        return _address(host) is not None
    return all(_LABEL.fullmatch(label) for label in labels)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
