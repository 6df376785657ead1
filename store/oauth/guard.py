"""The guard of every resource call: its own script, and its answers as errors of the catalogue. SPEC 5.4."""

from __future__ import annotations

from store import keys
from store.engine.scripts import Reply, Scripts
from store.lifetimes import Group
from store.refused import Refused, let_in
from store.results import Caller, Window


def admitted(reply: Reply, group: Group, needed: str) -> Window:
    """The window's figures of an admitted call. Raises Refused("invalid_token", "app_paused",
    "insufficient_scope", "dpop_proof_refused" or "rate_limited")."""
    if reply.word == "invalid_token":
        raise Refused("invalid_token", "The access token is expired, revoked or not valid.")
    if reply.word == "app_paused":
        raise Refused("app_paused", "The person has paused this app.")
    if reply.word == "insufficient_scope":
        raise Refused("insufficient_scope", f"This needs the scope {' or '.join(needed.split())}.")
    if reply.word == "proof_used":
        raise Refused("dpop_proof_refused", "This DPoP proof was used before.")
    return let_in(group, reply)


async def check_token(scripts: Scripts, caller: Caller, needed: str, group: Group, client: str = "") -> Window:
    """Admits a request and counts it in a window of the person or, with a `client`, of the pair. Raises Refused as
    `admitted`."""
    reply = await scripts.run(
        "check_token",
        {
            **keys.token(caller.user, caller.client, caller.family, caller.generation),
            "window": keys.limit(caller.user, group.name, client),
        },
        needed=caller.demands(needed),
        limit=group.limit,
        period=group.period,
        proof=caller.proof,
    )
    return admitted(reply, group, needed)
