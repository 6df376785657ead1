"""Replies to operators' writes, kept under their idempotency keys: a repeated request is done once."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from redis.asyncio import Redis

from store import keys
from store.crypto.fingerprints import Fingerprints
from store.crypto.seal import fingerprint
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.lifetimes import OPERATOR_REPLY
from store.operators.roles import OperatorActor
from store.refused import Refused

MOST_KEY = 255
"""Characters of an idempotency key."""
MOST_REPLY = 65_536
"""Bytes of a reply that is kept; a longer one is not."""
_IN_PROGRESS = 0


class KeptReply(NamedTuple):
    """The status and the body of an earlier reply; `body` is empty if it was too long."""

    status: int
    body: bytes


class ClaimedWrite(NamedTuple):
    """A write that is in progress under an idempotency key."""

    name: str
    digest: str


class OperatorReplies:
    """Claims keys, and keeps replies for a day. A write whose outcome is unknown stays claimed: nothing is done twice.
    Nobody without the secret keys can test a guess at a request, which may have a password. Every method raises
    StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts, fingerprints: Fingerprints) -> None:
        self._client = client
        self._scripts = scripts
        self._fingerprints = fingerprints

    async def claim(self, actor: OperatorActor, key: str, request: bytes) -> ClaimedWrite | KeptReply:
        """Claims a key for this request (method, path and body), or returns the reply to the same request before.
        Raises Refused("idempotency_mismatch" or "idempotency_in_progress"), Refused("invalid_request") for a wrong
        key."""
        if not 1 <= len(key) <= MOST_KEY or not key.isprintable():
            raise Refused("invalid_request", f"An idempotency key is 1 to {MOST_KEY} printable characters.")
        digest = hashlib.sha256(request).hexdigest()
        told = f"operator's write {digest}"
        claimed = ClaimedWrite(fingerprint(f"{actor.kind} {actor.id} {key}"), self._fingerprints.of(told))
        name = keys.operator_reply(claimed.name)
        reply = await self._scripts.run(
            "claim_operator_reply",
            {"operator_reply": name},
            value=f"{claimed.digest} {_IN_PROGRESS} ",
            lasts=OPERATOR_REPLY,
        )
        if reply.word == "ok":
            return claimed
        kept, status, body = reply.raw("value").split(b" ", 2)
        same = self._fingerprints.fits(kept.decode(), told)
        if not same and kept.decode() != digest[:32]:  # the release before kept the bare digest
            raise Refused("idempotency_mismatch", "This key was used with another request.")
        if int(status) == _IN_PROGRESS:
            raise Refused("idempotency_in_progress")
        return KeptReply(int(status), body)

    async def keep(self, claimed: ClaimedWrite, status: int, body: bytes) -> None:
        """Keeps the reply to a claimed write."""
        body = body if len(body) <= MOST_REPLY else b""
        await self._scripts.run(
            "keep_operator_reply",
            {"operator_reply": keys.operator_reply(claimed.name)},
            value=f"{claimed.digest} {status} ".encode() + body,
            lasts=OPERATOR_REPLY,
        )

    async def drop(self, claimed: ClaimedWrite) -> None:
        """Frees the key of a write that was refused: it changed nothing."""
        with wrapped():
            await self._client.delete(keys.operator_reply(claimed.name))
