"""Parameters of requests, read strictly: nothing repeated, nothing of the wrong type, no invalid text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tornado.httputil import HTTPServerRequest

from runtime.http.tornado_private import field_of
from store.json_text import Ambiguous, NotJSON, decode_strictly, values_in
from store.phrases import Phrase
from store.refused import Refused

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MOST_VALUES = 30_000
"""The approximate limit of values in a body. Reading, checking and writing a value takes some two microseconds."""
REPEATABLE = frozenset(("resource", "audience"))
"""Parameters that one request may have several times (RFC 8707 2, RFC 8693 2.1)."""
MOST_FIELDS = 200
"""The limit of fields in a form or query. Programs send a dozen, and each takes some ten microseconds to decode."""
_FIELDS = f"There are more than {MOST_FIELDS} parameters."
MISSING = Phrase("%(name)s is missing.")
_NUL = "A parameter must not contain NUL."
_PLAIN = bytes(set(range(0x20, 0x7F)) - set(b"%+"))
"""Bytes that stand for themselves in a form."""
# Does the work of urllib.parse.unquote_to_bytes, which takes ten times as long for a percent sign without digits.
_DIGITS = "0123456789abcdefABCDEF"
_BYTES = {f"{one}{two}".encode(): bytes.fromhex(one + two) for one in _DIGITS for two in _DIGITS}
_MOST_PARTS = 64
_ESCAPES = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class Params:
    """The parameters of one request. A parameter without a value counts as missing (RFC 6749 3.1). `typed`: they come
    from JSON, where a number is not text."""

    def __init__(self, values: Mapping[str, Any], *, typed: bool = False, most: int = MOST_VALUES) -> None:
        self._values = values
        self._typed = typed
        self._most = self._room = most

    def get(self, name: str) -> str | None:
        """The parameter as text, or None. Raises Refused("invalid_request") for anything but text."""
        value = self._values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise Refused("invalid_request", f"{name} must be a string.")
        return value

    def several(self, name: str) -> tuple[str, ...]:
        """The values of a parameter that may be repeated; in JSON a string, or a list of strings. Raises
        Refused("invalid_request") for anything else."""
        value = self._values.get(name)
        values = value if isinstance(value, list) else [value]
        if not all(one is None or isinstance(one, str) for one in values):
            raise Refused("invalid_request", f"{name} must be a string.")
        if len(values) > MOST_FIELDS:  # a form has no more either
            raise Refused("invalid_request", _FIELDS)
        return tuple(one for one in values if one)

    def require(self, name: str) -> str:
        """The parameter as text. Raises Refused("invalid_request") if it is missing."""
        value = self.get(name)
        if value is None:
            raise Refused("invalid_request", MISSING.filled(name=name))
        return value

    def whole(self, name: str) -> int:
        """The parameter as a whole number: in JSON a number without fraction or exponent, in a form its digits. Raises
        Refused("invalid_request"), also if it is missing."""
        value = self._values.get(name)
        if value is None or value == "":
            raise Refused("invalid_request", MISSING.filled(name=name))
        if not self._typed and isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if type(value) is not int:  # isinstance would take a boolean
            raise Refused("invalid_request", f"{name} must be a whole number.")
        return value

    def texts(self, name: str) -> list[str] | None:
        """A list of strings: a JSON array, or in a form its JSON text. None if it is missing."""
        value = self._values.get(name)
        if isinstance(value, str) and value:
            value = decode_json(value.encode("utf-8", "surrogatepass"))
        if value is None or value == "":
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Refused("invalid_request", f"{name} must be a list of strings.")
        return value

    def value(self, name: str) -> Any:
        """The parameter as sent: of any type in JSON, text in a form. None if it is missing or null."""
        return self._values.get(name)

    def structured(self, name: str) -> Any:
        """The parameter; in a form it is decoded from JSON text. Raises Refused("invalid_request")."""
        value = self._values.get(name)
        if not isinstance(value, str) or not value:
            return value
        raw = value.encode("utf-8", "surrogatepass")
        self._room -= values_in(raw)
        if self._room < 0:
            raise _too_many(self._most)
        return decode_json(raw, self._most)

    def names(self) -> Sequence[str]:
        """The names of all parameters sent."""
        return list(self._values)

    def everything(self) -> dict[str, Any]:
        """All parameters as sent."""
        return dict(self._values)

    def pairs(self) -> list[tuple[str, str]]:
        """All parameters as text, a repeated one several times. Raises Refused("invalid_request") for anything but
        text."""
        return [
            (name, value)
            for name in self._values
            for value in (self.several(name) if name in REPEATABLE else (self.get(name) or "",))
        ]


def parse_pairs(encoded: str | bytes) -> list[tuple[str, str]]:
    """The pairs of a query or a form, in order. Raises Refused("invalid_request") for bad UTF-8, a NUL, or more than
    MOST_FIELDS."""
    raw = encoded.encode("latin-1") if isinstance(encoded, str) else encoded
    if raw.count(b"&") >= MOST_FIELDS:
        raise Refused("invalid_request", _FIELDS)
    # Most need no decoding.
    if not raw.translate(None, _PLAIN):
        return [(name, value) for name, _, value in [one.partition("=") for one in raw.decode().split("&") if one]]
    pairs = []
    for field in raw.split(b"&"):
        if field:
            name, _, value = field.partition(b"=")
            if field.translate(None, _PLAIN):
                pairs.append((decode_form(name), decode_form(value)))
            else:
                pairs.append((name.decode(), value.decode()))
    return pairs


def decode_form(raw: bytes) -> str:
    """One name or value of application/x-www-form-urlencoded. Raises Refused("invalid_request")."""
    if b"%" in raw or b"+" in raw:
        raw = _without_escapes(raw.replace(b"+", b" "))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("invalid_request", "The parameters are not UTF-8.") from None
    if "\0" in text:
        raise Refused("invalid_request", _NUL)
    return text


def _without_escapes(raw: bytes) -> bytes:
    if raw.count(b"%") > _MOST_PARTS:
        return _ESCAPES.sub(_unescaped, raw)
    # Quicker for a few escapes, slower for many.
    before, *parts = raw.split(b"%")
    found = [before]
    for part in parts:
        byte = _BYTES.get(part[:2])
        found.append(b"%" + part if byte is None else byte + part[2:])
    return b"".join(found)


def _unescaped(escapes: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escapes[0].replace(b"%", b"").decode())


def once(pairs: Sequence[tuple[str, str]], most: int = MOST_VALUES) -> Params:
    """The pairs as parameters. Raises Refused("invalid_request") if one is repeated (RFC 6749 3.1), unless it is in
    REPEATABLE. `most`: values in the JSON texts of all parameters."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in REPEATABLE:
            values.setdefault(name, []).append(value)
            continue
        if name in values:
            raise Refused("invalid_request", "A parameter is repeated.")
        values[name] = value
    return Params(values, most=most)


def media_type(request: HTTPServerRequest) -> str:
    """The media type of the body, without its parameters."""
    return field_of(request.headers, "Content-Type").partition(";")[0].strip().lower()


def parse_body(kind: str, body: bytes, most: int = MOST_VALUES) -> Params:
    """The body of a POST, of the media type `kind`: one JSON object or a form (SPEC 1), with at most `most` values.
    Raises Refused("invalid_request" or "unsupported_media_type")."""
    if kind == JSON:
        value = decode_json(body, most)
        if not isinstance(value, dict):
            raise Refused("invalid_request", "The body must be one JSON object.")
        return Params(value, typed=True)
    return once(_pairs_of(kind, body), most)


def body_pairs(request: HTTPServerRequest) -> list[tuple[str, str]]:
    """The pairs of a form, in order; repeated ones too. Raises Refused("invalid_request" or
    "unsupported_media_type")."""
    return _pairs_of(media_type(request), request.body)


def _pairs_of(kind: str, body: bytes) -> list[tuple[str, str]]:
    if kind == FORM or (not kind and not body):
        return parse_pairs(body)
    raise Refused("unsupported_media_type")


def decode_json(body: bytes, most: int = MOST_VALUES) -> Any:
    """A JSON value without repeated keys, nested no deeper than a document may be, with at most `most` values. Raises
    Refused("invalid_request")."""
    if len(body) > most and values_in(body) > most:
        raise _too_many(most)
    try:
        return decode_strictly(body)
    except Ambiguous as error:
        raise Refused("invalid_request", str(error)) from None
    except NotJSON:
        raise Refused("invalid_request", "The body is not valid JSON.") from None


def _too_many(most: int) -> Refused:
    return Refused("invalid_request", f"The body has more than {most:,} values.")
