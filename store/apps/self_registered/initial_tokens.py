"""Registration tokens: with one, an app may register itself. RFC 7591 3, "initial access token"."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.errors import wrapped
from store.moments import epoch_ms
from store.names import check_app_name
from store.refused import Refused

PREFIX = "lk_ri_"
MOST_TOKENS = 1000
SHOWN = 8
"""Characters of a digest that name a token."""
_NO_LIMIT = "-"


@dataclass(frozen=True, slots=True)
class InitialToken:
    """A live token. `id` is the beginning of its digest; `uses` is how many apps it still registers, None without a
    limit; `ends_at` and `made_at` are epoch ms, `ends_at` 0 without an end."""

    id: str
    uses: int | None
    ends_at: int
    made_at: int
    name: str


def digest_of(token: str) -> str:
    """The stored digest of a token: 256 random bits need no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class InitialTokens:
    """Makes, lists and revokes the tokens. `lua/apps/claim_client.lua` uses them up. Every method raises
    StoreUnavailable."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def create(self, uses: int | None, ends_at: int, name: str = "") -> tuple[InitialToken, str]:
        """A new token, whose text is shown only now. Raises Refused("invalid_request") for too many tokens, ValueError
        for a wrong name."""
        name = check_app_name(name) if name else ""
        if len(await self.list()) >= MOST_TOKENS:
            raise Refused("invalid_request", f"There are {MOST_TOKENS} registration tokens. Revoke one first.")
        token = PREFIX + secrets.token_urlsafe(32)
        with wrapped():
            now = epoch_ms(*await self._client.time())
            row = f"{_NO_LIMIT if uses is None else uses} {ends_at} {now} {name}"
            await self._client.hset(keys.INITIAL_TOKENS, digest_of(token), row)
        return _token(digest_of(token), row), token

    async def list(self) -> list[InitialToken]:
        """The live tokens, oldest first. Drops those that are used up or over."""
        with wrapped():
            now = epoch_ms(*await self._client.time())
            rows: Any = await self._client.hgetall(keys.INITIAL_TOKENS)
        live = []
        for digest, row in rows.items():
            token = _token(digest.decode(), row.decode())
            if token.uses == 0 or 0 < token.ends_at <= now:
                with wrapped():
                    await self._client.hdel(keys.INITIAL_TOKENS, digest)
            else:
                live.append(token)
        return sorted(live, key=lambda one: (one.made_at, one.id))

    async def revoke(self, token_id: str) -> None:
        """Ends a token. Raises Refused("not_found")."""
        with wrapped():
            digests: Any = await self._client.hkeys(keys.INITIAL_TOKENS)
            named = [one for one in digests if len(token_id) >= SHOWN and one.decode().startswith(token_id)]
            if len(named) != 1:
                raise Refused("not_found", "There is no such registration token.")
            await self._client.hdel(keys.INITIAL_TOKENS, named[0])


def _token(digest: str, row: str) -> InitialToken:
    uses, ends_at, made_at, name = row.split(" ", 3)
    return InitialToken(digest[:SHOWN], None if uses == _NO_LIMIT else int(uses), int(ends_at), int(made_at), name)
