"""The base class of the SCIM interface: media type, errors, queries, addresses (RFC 7644 3.1, 3.9, 3.12)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import orjson

from handlers.admin.base import AdminHandler, Record
from handlers.core.errors import CATALOGUE
from handlers.core.params import JSON, Params, decode_json, media_type, parse_pairs
from store.refused import Refused

SCIM = "application/scim+json"
BASE = "/scim/v2"
MOST_VALUES = 5000
"""Values in a body. A person takes some dozens."""
MOST_AT_ONCE, USUAL = 200, 100
"""Resources of a page."""
MOST_NUMBER = 10**9
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
_TYPES = {"conflict": "uniqueness", "invalid_request": "invalidValue"}
"""What a program reads of a refusal that says no more (RFC 7644 3.12, table 9)."""


class ScimRefused(Refused):
    """A refusal with a `scimType` of RFC 7644 3.12."""

    def __init__(self, scim_type: str, description: str) -> None:
        super().__init__("invalid_request", description)
        self.scim_type = scim_type


class ScimHandler(AdminHandler):
    """A call by another system's directory, with an operator key of the role `scim` or `admin`."""

    def finish(self, chunk: Any = None) -> Any:
        """Every body is of SCIM's media type, errors too."""
        if chunk:
            self.set_header("Content-Type", SCIM)
        return super().finish(chunk)

    def error_of(self, refusal: Refused) -> Record:
        """RFC 7644 3.12: the error body."""
        status = CATALOGUE[refusal.code].status
        kind = refusal.scim_type if isinstance(refusal, ScimRefused) else _TYPES.get(refusal.code, "")
        return {
            "schemas": [ERROR],
            "status": str(status),
            **({"scimType": kind} if kind else {}),
            "detail": refusal.description or CATALOGUE[refusal.code].description,
        }

    def resource(self) -> Record:
        """The JSON object in the body. Raises ScimRefused("invalidSyntax"), Refused("unsupported_media_type")."""
        if media_type(self.request) not in (SCIM, JSON):
            raise Refused("unsupported_media_type", f"Send {SCIM}.")
        try:
            value = decode_json(self.request.body, MOST_VALUES)
        except Refused as refusal:
            raise ScimRefused("invalidSyntax", refusal.description) from None
        if not isinstance(value, dict):
            raise ScimRefused("invalidSyntax", "The body must be one JSON object.")
        return value

    def asked(self) -> Params:
        """The parameters of the query; directories send some of their own, which are ignored."""
        return Params(dict(parse_pairs(urlsplit(self.request.uri or "").query)))

    def span(self, params: Params) -> tuple[int, int]:
        """`startIndex`, from 1, and `count`, at most 200 (RFC 7644 3.4.2.4). Raises ScimRefused("invalidValue")."""
        start, count = (_number(params.get(name)) for name in ("startIndex", "count"))
        return max(1, 1 if start is None else start), min(MOST_AT_ONCE, max(0, USUAL if count is None else count))

    def address_of(self, path: str) -> str:
        """The absolute address of a resource, by the name that the caller used."""
        request, protocol = self.request, self.request.protocol
        if request.headers.get("X-Forwarded-Proto") == "https" and self.site.trusts(request.remote_ip):
            protocol = "https"
        return f"{protocol}://{request.host}{BASE}{path}"

    def write_resource(self, record: Record, status: int = 200) -> None:
        """Writes a resource, with its address in `Location`."""
        self.set_header("Location", record["meta"]["location"])
        self.write_scim(Selection(self.asked()).of(record), status)

    def write_list(self, records: list[Record], total: int, start: int = 1) -> None:
        """Writes a page of a list (RFC 7644 3.4.2)."""
        selection = Selection(self.asked())
        self.write_scim(
            {
                "schemas": [LIST],
                "totalResults": total,
                "startIndex": start,
                "itemsPerPage": len(records),
                "Resources": [selection.of(record) for record in records],
            }
        )

    def write_scim(self, value: Record, status: int = 200) -> None:
        """Writes a JSON object."""
        self.set_status(status)
        self.finish(orjson.dumps(value))


class Selection:
    """The attributes that `attributes` asks for, or those that `excludedAttributes` leaves. The id and the schemas are
    always there (RFC 7644 3.9, RFC 7643 7). The lists are read once: a query of 64 KB names thousands."""

    def __init__(self, params: Params) -> None:
        wanted, excluded = (_names(params.get(name)) for name in ("attributes", "excludedAttributes"))
        self._chosen = wanted or excluded
        self._wanted = bool(wanted)

    def of(self, record: Record) -> Record:
        """The part of a resource that is sent."""
        if not self._chosen:
            return record
        kept: Record = {}
        for name, value in record.items():
            parts = self._chosen.get(name.lower(), set())
            if name in ("id", "schemas") or (self._wanted and "" in parts) or (not self._wanted and not parts):
                kept[name] = value
            elif parts and "" not in parts:
                kept[name] = _cut(value, parts, self._wanted)
        return kept


def _cut(value: Any, parts: set[str], wanted: bool) -> Any:
    """The sub-attributes that are wanted, or all others."""
    if isinstance(value, list):
        return [_cut(one, parts, wanted) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: one for name, one in value.items() if (name.lower() in parts) == wanted}


def _names(text: str | None) -> dict[str, set[str]]:
    """The sub-attributes by the attribute, in lower case; "" stands for the whole attribute."""
    found: dict[str, set[str]] = {}
    for one in (text or "").split(","):
        if one.strip():
            name, _, part = one.strip().rpartition(":")[2].lower().partition(".")
            found.setdefault(name, set()).add(part)
    return found


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise ScimRefused("invalidValue", "startIndex and count are whole numbers.")
    return min(int(text), MOST_NUMBER)
