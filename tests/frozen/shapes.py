"""The shape of JSON: the names and types of its fields, without their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def shape(value: Any, at: str = "") -> Iterator[str]:
    """A line for each field, `apps[].client_id: string`; an empty object or array has its own type."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from shape(one, f"{at}.{name}" if at else name)
    elif isinstance(value, list) and value:
        for one in value:
            yield from shape(one, f"{at}[]")
    else:
        kind = "object" if value == {} else "array" if value == [] else TYPES[type(value)]
        yield f"{at}: {kind}" if at else kind
