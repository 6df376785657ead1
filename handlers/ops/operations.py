"""The application of the operations port, and how its callers show who they are."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import cast

from handlers.core.application import Latchkey
from handlers.core.base import BaseHandler
from store.clock import wall
from store.operators.roles import OperatorActor
from store.refused import Refused

WRONG_KEY = "The operator key is missing or wrong."


class Operations(Latchkey):
    """The application. `keys` are the SHA-256 digests of the operator keys in the settings."""

    keys: tuple[bytes, ...] = ()

    def take_keys(self, keys: Iterable[str]) -> None:
        """Replaces the operator keys in the settings."""
        self.keys = tuple(_digest(key) for key in keys)


class OpsHandler(BaseHandler):
    """A call by the operator's own programs. No browser calls it, so there is no CORS."""

    only_json = True
    actor: OperatorActor
    """Who calls, with a key that the store has."""

    @property
    def presented(self) -> str:
        """The key in the request; empty if there is none, or several."""
        header = self.request.headers.get_list("Authorization")
        scheme, _, presented = (header[0] if len(header) == 1 else "").partition(" ")
        return presented.strip() if scheme.lower() == "bearer" else ""

    def shows_a_key(self) -> bool:
        """Whether the request has one of the keys in the settings. Compares all digests, in constant time."""
        digest = _digest(self.presented)
        fits = [hmac.compare_digest(digest, key) for key in cast(Operations, self.application).keys]
        return any(fits)

    async def identify(self) -> OperatorActor:
        """Who calls, by a key that the store has. What the request does from here on is noted with this name. Raises
        Refused("invalid_token"), or Refused("rate_limited") for a network that shows many wrong keys."""
        keys, address = self.store.operator_keys, self.address
        key = await keys.open(self.presented, address)
        if key is None:
            await self.refuse_key()
            raise Refused("invalid_token", WRONG_KEY)
        await keys.used(key, address, round(wall.time() * 1000))
        self.request.latchkey_operator = key.actor  # type: ignore[attr-defined]  # our own attribute
        return key.actor

    async def refuse_key(self) -> None:
        """Notes a wrong key, and counts it for the network. Raises Refused("rate_limited")."""
        self.store.security.note("operator_key_refused")
        await self.store.limits.unknown_user(self.counted_address)


class NothingHandler(OpsHandler):
    """404 for everything else."""

    def prepare(self) -> None:
        """Raises Refused("not_found")."""
        raise Refused("not_found")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
