"""Delegated tokens as people and operators see them. RFC 8693."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from store.moments import at


class HandedOn(NamedTuple):
    """A live delegated token (RFC 8693). `above`: the id of the one that it comes from, empty if that is a sign-in;
    `actor`: the client id of the app or the API that exchanged; `name`: what it called the token, or empty; `spent`:
    what its calls and those of everything below were charged, in micro-dollars; `limit`: the least of its own parts,
    None without one."""

    id: str
    above: str
    scopes: tuple[str, ...]
    actor: str
    name: str
    spent: int
    limit: int | None
    ends_at: datetime


def told_handed_on(row: Sequence[bytes]) -> HandedOn:
    """A delegated token in a script's answer."""
    one, above, scope, actor, name, spent, *parts, ends = (value.decode() for value in row)
    limits = [int(part.split(" ", 1)[0]) for part in parts if part]
    scopes, limit = tuple(scope.split()), min(limits, default=None)
    return HandedOn(one, above, scopes, actor, name, int(spent), limit, at(int(ends)))
