"""The kinds of values that schemas are made of, and how they are put together (JSON Schema 2020-12)."""

from __future__ import annotations

from typing import Any

from store.names import SCOPES

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FILLED: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time", "description": "RFC 3339, UTC, with milliseconds"}
ADDRESS: Schema = {"type": "string", "format": "uri"}
MONEY: Schema = {"type": "integer", "description": "micro-dollars"}
SCOPE_LIST: Schema = {
    "type": "string",
    "pattern": f"^({'|'.join(SCOPES)})( ({'|'.join(SCOPES)}))*$",
    "description": "names of scopes, separated by single spaces",
}
_NAME = r"[!#-\[\]-~]{1,64}"
ANY_SCOPES: Schema = {
    "type": "string",
    "pattern": f"^{_NAME}( {_NAME})*$",
    "description": "names of scopes, of this server or an API, separated by single spaces",
}
ETAG: Schema = {"type": "string", "pattern": '^"[0-9]{1,20}"$'}
TOKEN_TYPE: Schema = {"enum": ["Bearer", "DPoP"]}
SCOPE_NAMES: Schema = {"type": "array", "items": {"type": "string", "pattern": f"^{_NAME}$"}}


def exactly(pattern: str) -> Schema:
    """Text that matches the whole pattern."""
    return {"type": "string", "pattern": f"^(?:{pattern})$"}


def ref(name: str) -> Schema:
    """A reference to a schema by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def listed(items: Schema) -> Schema:
    """A list of `items`."""
    return {"type": "array", "items": items}


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def read(required: Schema, optional: Schema | None = None) -> Schema:
    """An object that the server reads."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def written(required: Schema, optional: Schema | None = None) -> Schema:
    """An object that the server writes."""
    return {**read(required, optional), "additionalProperties": False}


def form_of(schema: Schema) -> Schema:
    """The form that can replace a JSON object: lists and objects become JSON text."""
    if "oneOf" in schema:
        return {"oneOf": [form_of(one) for one in schema["oneOf"]]}
    plain = ("string", "integer", "boolean", "number")
    fields = {
        name: value
        if value.get("type") in plain or "const" in value or "enum" in value
        else {"type": "string", "contentMediaType": "application/json", "contentSchema": value}
        for name, value in schema["properties"].items()
    }
    return {**schema, "properties": fields}
