"""What a setting is, and how its text becomes its value.

Each parser raises ValueError with the words that complete "must be ...", and never repeats the value: it may be secret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

Command = Literal["server", "manage"]
Where = Literal["server", "both"]
Network = IPv4Network | IPv6Network
T = TypeVar("T")

PREFIX, EMBEDDED, MEMORY = "LATCHKEY_", "embedded", "memory"
_NAME = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
_ORIGIN = re.compile(rf"(https?)://({_NAME}|\[[0-9A-Fa-f:.]+\])(?::([0-9]{{1,5}}))?/?", re.IGNORECASE | re.ASCII)


class SettingsError(ValueError):
    """A setting is unusable. The message is one line, names the setting and its source, and never shows a secret."""


@dataclass(frozen=True)
class Setting:
    """One declaration. `parse` raises ValueError with the words that complete "must be ..."."""

    name: str
    group: str
    metavar: str
    default: str
    parse: Callable[[str], object]
    meaning: str
    where: Where  # the commands that read it; the others ignore its value and have no flag for it
    secret: bool  # its value appears in no error and not in the repr of Settings
    flag: bool  # False for secrets: every user of the machine can read a command line
    many: bool  # several values separated by commas; the configuration file may have an array
    live: bool  # SIGHUP changes the value; other settings need a restart

    @property
    def option(self) -> str:
        """The flag, such as `--data-dir`."""
        return "--" + self.name.replace("_", "-")

    @property
    def environment(self) -> str:
        """The environment variable, such as `LATCHKEY_DATA_DIR`."""
        return PREFIX + self.name.upper()

    def applies_to(self, command: Command) -> bool:
        """Tell whether `command` reads this setting."""
        return self.where in ("both", command)

    def read(self, text: str, source: str) -> object:
        """Return the parsed value. Raises SettingsError, which names `source`."""
        try:
            return self.parse(text)
        except ValueError as error:
            shown = "" if self.secret else f", not {text if len(text) <= 80 else text[:80] + '...'!r}"
            raise SettingsError(f"{self.name} must be {error}{shown} (from {source})") from None


def declare(
    group: str,
    metavar: str,
    default: str,
    parse: Callable[[str], T],
    meaning: str,
    where: Where = "server",
    secret: bool = False,
    flag: bool = True,
    many: bool = False,
    live: bool = False,
) -> T:
    """Declare a setting as a field of Settings. mypy checks the field's annotation against the parser's type."""
    metadata = {"group": group, "metavar": metavar, "default": default, "parse": parse, "meaning": meaning}
    metadata |= {"where": where, "secret": secret, "flag": flag, "many": many, "live": live}
    return field(default=parse(default), repr=not secret, metadata=metadata)


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def amount(high: int) -> Callable[[str], int]:
    """Return a parser of micro-dollars up to `high`: a whole number, or dollars as in "5usd" and "0.25usd"."""

    def parse(text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,15})|([0-9]{1,12})(?:\.([0-9]{1,6}))?usd", text, re.I)
        value = 0
        if match:
            value = int(match[1]) if match[1] else int(match[2] + (match[3] or "").ljust(6, "0"))
        if not match or value > high:
            raise ValueError(f"micro-dollars from 0 to {high}, or dollars such as 5usd")
        return value

    return parse


def price(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of micro-dollars from `low` to `high` in whole cents, in the form of `amount`."""
    parse_amount = amount(high)

    def parse(text: str) -> int:
        value = parse_amount(text)
        if value < low or value % 10_000:
            raise ValueError(f"micro-dollars from {low} to {high} in whole cents, or dollars such as 5usd")
        return value

    return parse


def optional_whole(low: int, high: int) -> Callable[[str], int | None]:
    """Return a parser of whole numbers from `low` to `high`, and None for ""."""
    parse = whole(low, high)
    return lambda text: parse(text) if text else None


def optional_port(text: str) -> int | None:
    """Return the TCP port, or None for ""."""
    return whole(0, 65535)(text) if text else None


def seconds(low: float, high: float) -> Callable[[str], float]:
    """Return a parser of seconds from `low` to `high`; refuses NaN."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(f"a number of seconds from {low:g} to {high:g}")
        return value

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a parser of one of `choices`, in upper or lower case."""

    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return text.lower()

    return parse


def words(*choices: str, none: bool = False) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of several of `choices`, in the order given: at least one, unless `none` is allowed."""

    def parse(text: str) -> tuple[str, ...]:
        found = text.split()
        if not (found or none) or not set(found) <= set(choices):
            raise ValueError("some of " + ", ".join(choices))
        return tuple(dict.fromkeys(found))

    return parse


def boolean(text: str) -> bool:
    """Return the boolean that the text names."""
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError("true or false (also 1/0, yes/no, on/off)")


def path(text: str) -> Path:
    """Return the path, with `~` resolved. A relative path starts at the working directory."""
    try:
        if not text or "\0" in text:
            raise ValueError
        return Path(text).expanduser()
    except (RuntimeError, ValueError):
        raise ValueError("a path (a ~user in it must exist)") from None


def optional_path(text: str) -> Path | None:
    """Return the path, or None for ""."""
    return path(text) if text else None


def host(text: str) -> str:
    """Return a name or address to listen on, in lower case."""
    if not re.fullmatch(_NAME, text) and not _is_address(text):
        raise ValueError("a host name or an IP address, without port or brackets")
    return text.lower()


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def origin(text: str) -> str:
    """Return the origin in a browser's form (RFC 6454 6.2: lower case, no default port); "" stays ""."""
    if not text:
        return ""
    match = _ORIGIN.fullmatch(text)
    if match is None:
        raise ValueError("an origin such as https://id.example.org: no path, query, fragment or user information")
    scheme, host, port = match[1].lower(), match[2].lower(), int(match[3] or 0)
    # If the last label is all digits, a browser reads the host as an IPv4 address, and rewrites `127.1`.
    numeric = host.startswith("[") or host.rpartition(".")[2].isdigit()
    if (match[3] and not 0 < port < 65536) or (numeric and not _is_address(host.strip("[]"))):
        raise ValueError("an origin whose host and port can exist")
    if host.startswith("["):
        host = f"[{ip_address(host[1:-1])}]"
    return f"{scheme}://{host}" + (f":{port}" if port and port != {"http": 80, "https": 443}[scheme] else "")


def origins(text: str) -> tuple[str, ...]:
    """Return origins separated by commas, each as `origin`."""
    return tuple(origin(one.strip()) for one in text.split(",") if one.strip())


def domains(text: str) -> tuple[str, ...]:
    """Return domains by commas."""
    domain = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
    if not re.fullmatch(rf"(?:{domain}(?:,{domain})*)?", joined := "".join(text.lower().split())):
        raise ValueError("domains such as example.com, by commas")
    return tuple(filter(None, joined.split(",")))


def redis_url(text: str) -> str:
    """Return `embedded`, `memory` or the URL of a server. An error never contains the URL's password."""
    if text in (EMBEDDED, MEMORY):
        return text
    scheme, _, rest = text.partition("://")
    base, _, several = scheme.partition("+")
    authority, slash, path = rest.partition("?")[0].partition("/")
    if scheme == "unix":
        complete = bool(slash) and not authority.rpartition("@")[2]
    elif base in ("redis", "rediss") and several in ("", "sentinel", "cluster"):
        hosts = authority.rpartition("@")[2].split(",") if several else [authority.rpartition("@")[2]]
        complete = all(map(_is_server, hosts)) and {"": True, "sentinel": bool(path), "cluster": not path}[several]
    else:
        complete = False
    if not complete or re.search(r"\s", text):
        raise ValueError(
            f"{EMBEDDED}, {MEMORY}, redis://HOST, unix:///PATH, redis+sentinel://HOST,HOST/SERVICE or "
            "redis+cluster://HOST,HOST (with TLS: rediss)"
        )
    return text


def _is_server(text: str) -> bool:
    """Whether the text is a host, with or without a port."""
    try:
        parts = urlsplit(f"//{text}")
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def smtp_url(text: str) -> str:
    """Return the URL of a mail server; "" stays "". An error never contains the URL's password."""
    if not text:
        return ""
    scheme, _, rest = text.partition("://")
    authority, _, query = rest.partition("?")
    login, _, server = authority.removesuffix("/").rpartition("@")
    tls = scheme == "smtps" or query == "starttls"
    form = scheme in ("smtp", "smtps") and query in (("", "starttls") if scheme == "smtp" else ("",))
    if not form or not _is_server(server) or re.search(r"[\s/#]", authority.removesuffix("/")):
        raise ValueError("smtp://HOST, smtp://HOST?starttls or smtps://HOST, with USER:PASSWORD@ before the host")
    if login and not tls and (urlsplit(f"//{server}").hostname or "") not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError(
            "smtps://HOST or smtp://HOST?starttls where there is a password: it would be sent in the clear"
        )
    return text


def mail_address(text: str) -> str:
    """Return a plain e-mail address in ASCII; "" stays ""."""
    if text and not re.fullmatch(rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+(\.[A-Za-z0-9_-]+)*@{_NAME}", text):
        raise ValueError("an e-mail address such as noreply@example.org")
    return text


def range_url(text: str) -> str:
    """Return the URL, to which five hex digits are added; "" stays "". It may contain a key, so no error contains
    it."""
    parts = urlsplit(text)
    if text and not (
        parts.scheme in ("http", "https")
        and _is_server(parts.netloc.rpartition("@")[2])
        and re.fullmatch(r"[!-~]+[/=]", text)
        and "#" not in text
    ):
        raise ValueError("https://HOST/PATH/, to which five hex digits are added")
    return text


def networks(text: str) -> tuple[Network, ...]:
    """Return the networks. A bare address is a network of one."""
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",")) if text.strip() else ()
    except ValueError:
        raise ValueError("IP addresses or networks such as 10.0.0.0/8 (no bits beyond the mask), by commas") from None


def secret_keys(text: str) -> str:
    """Return the pairs without blanks. The code that seals with a key checks its form."""
    pairs = [part.strip().partition(":") for part in text.split(",")] if text else []
    if not all(key_id and key for key_id, _, key in pairs) or len({pair[0] for pair in pairs}) != len(pairs):
        raise ValueError("id:key pairs by commas, each id once, as `latchkey keys generate` prints them")
    return ",".join(f"{key_id}:{key}" for key_id, _, key in pairs)


def operator_keys(text: str) -> tuple[str, ...]:
    """Return the keys without blanks. `secrets.token_urlsafe(32)` makes a valid one."""
    found = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    if not all(re.fullmatch(r"[A-Za-z0-9_-]{32,256}", key) for key in found):
        raise ValueError("keys of 32 to 256 characters of A-Z, a-z, 0-9, _ and - by commas")
    return found


def stripe_key(text: str) -> str:
    """Return a secret or restricted key of Stripe; "" stays ""."""
    if text and not re.fullmatch(r"(sk|rk)_(test|live)_[A-Za-z0-9]{8,256}", text):
        raise ValueError("a secret or restricted key of Stripe: sk_live_..., rk_live_..., sk_test_... or rk_test_...")
    return text


def stripe_secrets(text: str) -> tuple[str, ...]:
    """Return the signing secrets of a webhook endpoint at Stripe, without blanks."""
    found = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    if len(found) > 4 or not all(re.fullmatch(r"whsec_[A-Za-z0-9+/=_-]{8,256}", secret) for secret in found):
        raise ValueError("one to four signing secrets of Stripe by commas, each as whsec_...")
    return found
