"""Header fields: fills requests' fields into Tornado's HTTPHeaders, and writes answers' fields from them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tornado.httputil import HTTPHeaders, HTTPInputError

Lines = dict[str, list[str]]
"""Values by name, in the order of arrival. Names are spelled `Header-Case`."""

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


def _filled(lines: Lines) -> HTTPHeaders:
    headers = HTTPHeaders.__new__(HTTPHeaders)
    headers._as_list = lines
    headers._combined_cache = {}
    return headers


def _added(lines: Lines) -> HTTPHeaders:
    headers = HTTPHeaders()
    for name, values in lines.items():
        for value in values:
            headers.add(name, value)
    return headers


def _read(headers: HTTPHeaders) -> list[str]:
    return [name + ": " + value for name, values in headers._as_list.items() for value in values]


def _listed(headers: HTTPHeaders) -> list[str]:
    return [name + ": " + value for name, value in headers.get_all()]


def _put(headers: HTTPHeaders, fields: Mapping[str, str]) -> None:
    for name, value in fields.items():
        headers._as_list[name] = [value]
        headers._combined_cache[name] = value


def _update(headers: HTTPHeaders, fields: Mapping[str, str]) -> None:
    for name, value in fields.items():
        headers[name] = value


def _alike() -> bool:
    """Whether HTTPHeaders has the internals that the functions above rely on."""
    sample = {"Host": ["a"], "X-Forwarded-For": ["b", "c"]}
    try:
        filled, added = _filled(sample), _added(sample)
        for headers, put in ((filled, _put), (added, _update)):
            put(headers, {"Host": "d", "Date": "e"})
        return (
            vars(filled).keys() == vars(added).keys()
            and list(filled.get_all()) == list(added.get_all())
            and _read(added) == _listed(added)
            and dict(filled) == dict(added)
        )
    except (AttributeError, KeyError):
        return False


# HTTPHeaders.add checks each line with regular expressions. This costs more than all other reading of a request, and
# llhttp has already checked the lines. The internal table is not public, so another release of Tornado may lack it.
headers_of, lines_of, put_fields = (_filled, _read, _put) if _alike() else (_added, _listed, _update)
