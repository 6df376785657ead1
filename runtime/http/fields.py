"""The names of header fields, as strangers send them."""

from __future__ import annotations

import re

from tornado.httputil import HTTPHeaders, HTTPInputError

LONGEST_NAME = 256
"""Bytes of a name. Tornado caches the last thousand names, so they must be short."""
# Names as sent, and as HTTPHeaders spells them. A name in the table costs one look-up. The table and its names are
# bounded, because clients choose the names.
_SEEN: dict[bytes, str] = {}
_MOST_SEEN, _LONGEST_SEEN = 1000, 64
_LONG_NAME = re.compile(rb"\n[^:\r\n]{%d}" % (LONGEST_NAME + 1))


def has_long_name(head: bytes) -> bool:
    """Whether a line of the head has a name longer than LONGEST_NAME bytes."""
    return _LONG_NAME.search(head) is not None


def spelled(name: bytes) -> str:
    """The name as HTTPHeaders spells it: `Header-Case`. Raises HTTPInputError if it is longer than LONGEST_NAME
    bytes."""
    found = _SEEN.get(name)
    if found is None:
        if len(name) > LONGEST_NAME:
            raise HTTPInputError("A long name in a head")
        found = next(iter(HTTPHeaders({name.decode("latin-1"): ""})))
        if len(_SEEN) < _MOST_SEEN and len(name) <= _LONGEST_SEEN:
            _SEEN[name] = found
    return found
