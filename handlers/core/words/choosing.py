"""The language that a request asks for, from texts that anybody can send: all are bounded before they are parsed."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

UI_LOCALES = "ui_locales"
LONGEST = 1000
"""Characters of a header or parameter that is read. Real ones have some 60."""
MOST = 10
"""Entries that are read."""
_ENTRY = re.compile(
    r"\s*([A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4})\s*(?:;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?"
)
_AUTHORIZE = "/oauth/authorize"
_LONGEST_ADDRESS, _MOST_PARAMETERS = 16_000, 100


def accepted(header: str) -> list[str]:
    """The language tags of an `Accept-Language` (RFC 9110 12.5.4), the dearest first; those with q=0 and whatever is no
    tag are left out. A header that is too long asks for nothing."""
    if len(header) > LONGEST:
        return []
    found = [match for entry in header.split(",", MOST)[:MOST] if (match := _ENTRY.fullmatch(entry))]
    weighed = [(float(match[2] or 1), match[1]) for match in found]
    return [tag for weight, tag in sorted(weighed, key=lambda one: -one[0]) if weight > 0]


def listed(text: str) -> list[str]:
    """The language tags of a `ui_locales` (OpenID Connect Core 3.1.2.1), the dearest first."""
    return text.split()[:MOST] if len(text) <= LONGEST else []


def ui_locales(address: str) -> list[str]:
    """The languages that the authorization request at this address asks for; none for any other address."""
    if not address.startswith(_AUTHORIZE) or len(address) > _LONGEST_ADDRESS:
        return []
    if UI_LOCALES not in address:
        return []
    try:
        named = parse_qs(urlsplit(address).query, max_num_fields=_MOST_PARAMETERS).get(UI_LOCALES, [])
    except ValueError:
        return []
    return listed(named[0]) if len(named) == 1 else []
