"""How settings name an OpenTelemetry collector: its URL, and a header for it. Errors: as in `settings/types.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

Header = tuple[str, str]

_HERE = ("localhost", "127.0.0.1", "::1")
_OURS = (
    *("host", "connection", "te", "trailer", "upgrade", "expect", "accept", "accept-encoding", "user-agent"),
    *("content-type", "content-length", "content-encoding", "transfer-encoding", "cookie"),
)
"""Headers that a request has anyway, or that would change how it is read."""


def collector_url(path: str) -> Callable[[str], str]:
    """Return a parser of the URL of a collector, with this path where the URL has none; "" stays ""."""

    def parse(text: str) -> str:
        if not text:
            return ""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            host, port = "", 0
        sound = re.fullmatch(r"[!-~]{1,2000}", text) and not re.search(r"[?#@\\]", text)
        if not sound or not host or port == 0 or parts.scheme not in ("http", "https"):
            raise ValueError(f"https://HOST:PORT{path}, without user information, query or fragment")
        if parts.scheme == "http" and host not in _HERE:
            raise ValueError("an https URL: with http, everybody on the way could read it; only loopback is excepted")
        return text if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{path}"

    return parse


def header(text: str) -> Header | None:
    """Return the name and the value of a header written as `Authorization: Bearer abc`; None for ""."""
    if not text:
        return None
    name, _, value = text.partition(":")
    name, value = name.strip(), value.strip()
    if not (re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,63}", name) and re.fullmatch(r"[!-~]([ -~]{0,4094}[!-~])?", value)):
        raise ValueError("the name and the value of a header, such as Authorization: Bearer abc")
    if name.lower() in _OURS:
        raise ValueError("another header: that one is set for each request")
    return name, value


def ratio(text: str) -> float:
    """Return a number from 0 to 1."""
    if not re.fullmatch(r"0(\.[0-9]{1,9})?|1(\.0{1,9})?", text):
        raise ValueError("a number from 0 to 1, such as 0.1")
    return float(text)
