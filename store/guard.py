"""What the guard of every resource call answers, turned into the catalogue's errors. SPEC 5.4."""

from __future__ import annotations

from store.lifetimes import Group
from store.refused import Refused, let_in
from store.results import Window
from store.scripts import Reply


def admitted(reply: Reply, group: Group, needed: str) -> Window:
    """The window's figures of a call that was let in. Raises Refused("invalid_token", "insufficient_scope" or
    "rate_limited")."""
    if reply.word == "invalid_token":
        raise Refused("invalid_token", "The access token is expired, revoked or not valid.")
    if reply.word == "insufficient_scope":
        raise Refused("insufficient_scope", f"This needs the scope {' or '.join(needed.split())}.")
    return let_in(group, reply)
