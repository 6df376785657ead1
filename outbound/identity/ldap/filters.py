"""Search filters of LDAP in the operator's text form (RFC 4515), with a place for what a person types.

The typed name is put into the parsed filter, never into its text: whatever its characters are, it is one value.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from outbound.identity.ldap import ber

FilterOf = Callable[[str], bytes]
"""Makes the BER form of a filter (RFC 4511 4.5.1) with a typed name."""

PLACE = "login".join("{}")
"""Where the typed name goes."""
DEEPEST = 10
LONGEST = 2000
_ATTRIBUTE = r"[A-Za-z0-9][A-Za-z0-9.;-]*"
_SIMPLE = re.compile(rf"(?P<name>{_ATTRIBUTE})(?P<kind>=|~=|>=|<=)(?P<value>.*)", re.DOTALL)
_EXTENDED = re.compile(
    rf"(?P<name>{_ATTRIBUTE})?(?P<dn>:dn)?(?::(?P<rule>[A-Za-z0-9][A-Za-z0-9.-]*))?:=(?P<value>.*)", re.DOTALL
)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2})")
_AND, _OR, _NOT, _EQUAL, _PARTS, _PRESENT, _EXTENSIBLE = 0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0x87, 0xA9
_ORDERED = {"=": _EQUAL, ">=": 0xA5, "<=": 0xA6, "~=": 0xA8}


class WrongFilter(ValueError):
    """The text is no filter. The message is one line."""


def parse_filter(text: str) -> FilterOf:
    """The filter of a text. Raises WrongFilter."""
    if len(text) > LONGEST:
        raise WrongFilter(f"has at most {LONGEST} characters")
    made, rest = _one(text.strip(), DEEPEST)
    if rest:
        raise WrongFilter("has something after its last parenthesis")
    return made


def _one(text: str, deep: int) -> tuple[FilterOf, str]:
    """The first filter of a text, and what follows it."""
    if not text.startswith("("):
        raise WrongFilter("must be in parentheses, such as (uid={login})")
    if not deep:
        raise WrongFilter("is nested too deeply")
    kind = text[1:2]
    if kind in ("&", "|", "!") and kind:
        parts, rest = [], text[2:]
        while not rest.startswith(")"):
            made, rest = _one(rest, deep - 1)
            parts.append(made)
        if not parts or (kind == "!" and len(parts) != 1):
            raise WrongFilter(f"has a wrong number of filters after {kind}")
        tag = {"&": _AND, "|": _OR, "!": _NOT}[kind]
        return (lambda login: ber.element(tag, *(one(login) for one in parts))), rest[1:]
    inside, closed, rest = text[1:].partition(")")
    if not closed or "(" in inside:
        raise WrongFilter("has parentheses that do not match")
    return _item(inside), rest


def _item(text: str) -> FilterOf:
    if found := _EXTENDED.fullmatch(text):
        if not found["name"] and not found["rule"]:
            raise WrongFilter("has a match without an attribute and without a rule")
        return _extended(found["name"] or "", found["rule"] or "", _value(found["value"]), whole=bool(found["dn"]))
    found = _SIMPLE.fullmatch(text)
    if not found:
        raise WrongFilter("has a part that is no comparison, such as (uid={login})")
    name, kind, value = found["name"], found["kind"], found["value"]
    if kind == "=" and value == "*":
        return lambda _: ber.octets(name, _PRESENT)
    if "*" in value:
        if kind != "=" or PLACE in value:
            raise WrongFilter(f"must not have * next to {PLACE}: whoever types a letter would be somebody")
        return _substrings(name, value)
    tag, made = _ORDERED[kind], _value(value)
    return lambda login: ber.element(tag, ber.octets(name), ber.octets(made(login)))


def _value(text: str) -> FilterOf:
    """A value with the typed name in its places."""
    parts = [_unescaped(one) for one in text.split(PLACE)]
    if not any(parts) and len(parts) == 1:
        raise WrongFilter("has an empty value")
    return lambda login: login.encode().join(parts)


def _unescaped(text: str) -> bytes:
    raw = text.encode()
    if b"\\" in _ESCAPE.sub(b"", raw) or "\0" in text:
        raise WrongFilter(r"has a backslash without two hexadecimal digits, such as \2a")
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), raw)


def _substrings(name: str, value: str) -> FilterOf:
    first, *middle, last = (_unescaped(one) for one in value.split("*"))
    parts = [(0x80, first), *((0x81, one) for one in middle), (0x82, last)]
    content = b"".join(ber.octets(one, tag) for tag, one in parts if one)
    if not content:
        raise WrongFilter("has an empty value")
    made = ber.element(_PARTS, ber.octets(name), ber.element(ber.SEQUENCE, content))
    return lambda _: made


def _extended(name: str, rule: str, value: FilterOf, *, whole: bool) -> FilterOf:
    before = (ber.octets(rule, 0x81) if rule else b"") + (ber.octets(name, 0x82) if name else b"")
    after = ber.element(0x84, b"\xff") if whole else b""
    return lambda login: ber.element(_EXTENSIBLE, before, ber.octets(value(login), 0x83), after)
