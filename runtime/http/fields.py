"""Header fields: those of requests filled into Tornado's HTTPHeaders, those of answers written out of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tornado.httputil import HTTPHeaders, HTTPInputError

Lines = dict[str, list[str]]
"""The values by name, the name as `Header-Case`, in the order they came."""

LONGEST_NAME = 256
"""Bytes of a name, at most: Tornado keeps the last thousand too."""
# Names as they were sent, and as HTTPHeaders spells them. Those of the table cost a look-up. It is bounded, and so are
# they: names come from strangers.
_SEEN: dict[bytes, str] = {}
_MOST_SEEN, _LONGEST_SEEN = 1000, 64
_LONG_NAME = re.compile(rb"\n[^:\r\n]{%d}" % (LONGEST_NAME + 1))


def has_long_name(head: bytes) -> bool:
    """Whether a line of the head has a name of more than LONGEST_NAME bytes."""
    return _LONG_NAME.search(head) is not None


def spelled(name: bytes) -> str:
    """The name as HTTPHeaders spells it: `Header-Case`. Raises HTTPInputError for one beyond LONGEST_NAME bytes."""
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
    """Whether HTTPHeaders is what the functions above that know its inside take it for."""
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


# HTTPHeaders.add checks each line with regular expressions, which costs more than all the rest of reading a request;
# llhttp has checked them already. Its table of lines is not public, so another Tornado may do without it.
headers_of, lines_of, put_fields = (_filled, _read, _put) if _alike() else (_added, _listed, _update)
