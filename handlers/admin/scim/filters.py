"""Filters of lists (RFC 7644 3.4.2.2): one attribute that equals one value, which is what directories ask."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from handlers.admin.scim.base import ScimRefused

MOST = 1000
"""Characters of a filter."""
_EQUALS = re.compile(
    r"\s*(?P<path>(?:urn:[A-Za-z0-9.:]{1,80}:)?[A-Za-z][A-Za-z.]{0,40}(?:\[type eq \"work\"\]\.value)?)"
    r"\s+eq\s+(?P<value>\"(?:[^\"\\]|\\.)*\")\s*",
    re.I,
)
_URN = re.compile(r"urn:ietf:params:scim:schemas:core:2\.0:(user|group):", re.I)


class Equals(NamedTuple):
    """An attribute, in lower case, and the value that it must have."""

    attribute: str
    value: str


def parse_filter(text: str, known: dict[str, str]) -> Equals:
    """The filter. `known`: the attributes that may be named, in lower case, and the attribute that each means. Raises
    ScimRefused("invalidFilter")."""
    match = _EQUALS.fullmatch(text) if len(text) <= MOST else None
    path = _URN.sub("", match["path"], count=1).lower() if match else ""
    if match is None or path not in known:
        names = ", ".join(sorted({*known.values()}))
        raise ScimRefused("invalidFilter", f'A filter is ATTRIBUTE eq "VALUE", where ATTRIBUTE is one of {names}.')
    try:
        value = json.loads(match["value"])
    except ValueError:
        raise ScimRefused("invalidFilter", "The value of the filter is not a JSON string.") from None
    return Equals(known[path], value)
