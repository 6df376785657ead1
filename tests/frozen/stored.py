"""The keys of a store that holds something of every kind: their patterns, types and the fields of their hashes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

_WHOLE = (
    (r"^\{email:[^:}]*\}", "{email:<address>}"),
    (r"^\{window:([^:}]*):[^}]*\}(:.+)?$", r"{window:\1:<what>}"),
    (r"^\{dpop:[^:}]*\}", "{dpop:<thumbprint>}"),
    (r"^\{device:[^:}]*\}", "{device:<code>}"),
    (r"^\{directory:([a-z]+):[0-9a-f]+\}(:?).*$", r"{directory:\1:<section>}\2"),
    (r"^\{[0-9a-f]{3}\}:[0-9a-f]{32}:", "u:"),
    (r"^\{[0-9a-f]{3}\}:", "{<shard>}:"),
)
"""Beginnings of keys, and what they are with words in place of what they are made of."""
_PARTS = (
    (r"[A-Za-z0-9_-]{22}", "<id>"),
    (r"api_[A-Za-z0-9]{15}", "<api>"),
    (r"app-\d+(-left|-openid|-used|-unused)?|(?=.*[A-Z0-9])[A-Za-z0-9_-]{15}", "<client>"),
    (r"\d+", "<number>"),
    (r"[^/]+/[^/]+", "<collection>/<document>"),
)
"""The same for what stands between colons and braces."""
_FIELDS = (
    (r"[0-9a-f]{32}", "<person>"),
    (r"to:.*", "to:<digest>"),
    (r"([bn]):(notes|letters)", r"\1:<collection>"),
    (r"[0-9a-f]{64}", "<digest>"),
    (r"[0-9a-f]{29}", "<member>"),
    (r"[0-9a-f]{9,24}:\d+", "<event>"),
    (r"\d{5} [A-Za-z0-9_-]+ [^ ]+", "<day> <client> <model>"),
    (r"[A-Za-z0-9_-]{43}:(state|public|private)", r"<thumbprint>:\1"),
)


def pattern(key: str) -> str:
    """A key, or a field of a hash, with words in place of what it is made of."""
    for found, put in _WHOLE:
        key = re.sub(found, put, key)
    parts = re.split(r"([:{}])", key)
    for found, put in _PARTS:
        parts = [put if re.fullmatch(found, part) else part for part in parts]
    return "".join(parts)


def field_of(name: str) -> str:
    """A field of a hash."""
    for found, put in _FIELDS:
        if re.fullmatch(found, name):
            return re.sub(found, put, name)
    return pattern(name)


async def layout(client: Any) -> AsyncIterator[str]:
    """A line for each pattern of a key, for each field of a hash, and for the number of the layout."""
    async for raw in client.scan_iter(count=1000):
        key = pattern(raw.decode())
        kind = (await client.type(raw)).decode()
        yield f"{key} ({kind}, {'expires' if await client.pttl(raw) > 0 else 'stays'})"
        if kind == "hash":
            for name in await client.hkeys(raw):
                yield f"{key} has {field_of(name.decode())}"
        if kind == "stream":
            for name in {name for _, entry in await client.xrange(raw) for name in entry}:
                yield f"{key} has {name.decode()}"
    yield f"layout {(await client.hget('{keyring}:state', 'layout')).decode()}"
