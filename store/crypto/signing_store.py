"""Reads and changes the signing keys in the store. `store/crypto/signing_keys.py` uses them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from store import keys as spell
from store.crypto.jose.private import PrivateKey
from store.crypto.keyring import Keys
from store.crypto.sealed_secrets import SealedSecrets
from store.crypto.signing_rows import Phase, SigningRow, current, live, phase, published_until, rows_of, waiting
from store.engine.scripts import Reply, Scripts
from store.errors import StoreError, StoreUnavailable
from store.lifetimes import SIGNING_AHEAD

log = logging.getLogger("latchkey.signing")

ANNOUNCED = "*signing"
"""What the channel of registrations says of signing keys. No client id is written like this."""
ATTEMPTS = 5
_ANNOUNCED = {"channel": spell.APPS_CHANNEL, "announced": ANNOUNCED}


def signing_secrets(keys: Keys) -> SealedSecrets:
    """Seals private keys; the owner of each is its name."""
    return SealedSecrets(keys, b"signing-key", "a signing key")


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A signing key for the operator's list; times in epoch ms. `until`: when its phase ends, if it is known."""

    row: SigningRow
    phase: Phase
    until: int | None


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys at the store's time `now` (epoch ms)."""

    now: int
    rows: tuple[SigningRow, ...]


class SigningStore:
    """The signing keys in the store. `hints`: how long a public half is kept for hints, in ms. Methods raise
    StoreUnavailable, StoreError."""

    def __init__(self, scripts: Scripts, keys: Keys, hints: int) -> None:
        self._scripts = scripts
        self.secrets = signing_secrets(keys)
        self.hints = hints
        self.changed: Callable[[], object] = lambda: None
        """Called after each change."""

    async def read(self) -> KeySet:
        """Every key, as the store has it now."""
        reply = await self._scripts.run("list_signing_keys", {"signing": spell.SIGNING})
        flat = reply.rows("fields")
        fields = {name.decode("utf-8", "replace"): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
        return KeySet(reply.number("now"), tuple(rows_of(fields)))

    async def listed(self) -> list[ListedKey]:
        """Every key in the store, oldest first, with its phase."""
        found = await self.read()
        listed = []
        for row in found.rows:
            its_phase = phase(row, found.rows, found.now, self.hints)
            until = {Phase.WAITING: row.first_use}.get(its_phase)
            over = published_until(row, found.rows, found.now)
            if over is not None and its_phase in (Phase.PUBLISHED, Phase.HINTS):
                until = over + (self.hints if its_phase is Phase.HINTS else 0)
            listed.append(ListedKey(row, its_phase, until))
        return listed

    async def rotate(self, algorithm: str, *, at_once: bool = False) -> tuple[ListedKey, bool]:
        """Publishes a successor, which signs after a day or, with `at_once`, now; an earlier one that still waits is
        the successor. Returns the key, and whether this call changed anything."""
        for _ in range(ATTEMPTS):
            found = await self.read()
            now = current(found.rows, algorithm, found.now)
            successor = waiting(found.rows, algorithm, found.now)
            if successor is None:
                delay = 0 if at_once or now is None else SIGNING_AHEAD
                kid = await self.make(algorithm, found, delay)
            elif at_once or now is None:
                kid = await self.promote(successor)
            else:
                return ListedKey(successor, Phase.WAITING, successor.first_use), False
            if kid:
                return next(one for one in await self.listed() if one.row.kid == kid), True
        raise StoreUnavailable("the signing keys keep changing")

    async def revoke(self, kid: str) -> bool:
        """Ends a key at once: nothing is verified with it any more. False if there is none of this name."""
        reply = await self._change("revoke_signing_key", kid=kid, **_ANNOUNCED)
        return reply.word == "ok"

    async def reseal(self) -> tuple[int, list[str]]:
        """Seals every private half under the front key. Returns how many it changed, and the names of those that do not
        open."""
        renewed, unreadable = 0, []
        for row in (await self.read()).rows:
            if not row.private or self.secrets.is_front(row.private):
                continue
            try:
                sealed = self.secrets.seal(row.kid, self.secrets.open(row.kid, row.private))
            except StoreError:
                unreadable.append(row.kid)
                continue
            reply = await self._change("reseal_signing_key", kid=row.kid, expected=row.private, sealed=sealed)
            renewed += reply.word == "ok"
        return renewed, unreadable

    async def make(self, algorithm: str, found: KeySet, delay: int) -> str | None:
        """Adds a key that signs after `delay` ms; returns its name, or None if another process was quicker."""
        key = await asyncio.to_thread(PrivateKey.generate, algorithm)
        reply = await self._change(
            "add_signing_key",
            kid=key.kid,
            algorithm=algorithm,
            public=orjson.dumps(key.public.to_jwk(algorithm)),
            private=self.secrets.seal(key.kid, key.to_bytes()),
            live=" ".join(sorted(row.kid for row in live(found.rows, algorithm))),
            delay=delay,
            **_ANNOUNCED,
        )
        if reply.word != "ok":
            return None
        log.info("new signing key for %s: %s, signs in %d s", algorithm, key.kid, delay // 1000)
        return key.kid

    async def promote(self, row: SigningRow) -> str | None:
        """Lets a key that waits sign now; returns its name, or None if it was revoked meanwhile."""
        reply = await self._change("promote_signing_key", kid=row.kid, **_ANNOUNCED)
        return row.kid if reply.word == "ok" else None

    async def drop(self, row: SigningRow, *, whole: bool) -> None:
        """Removes the private half of a key, or the whole key."""
        await self._change("drop_signing_key", kid=row.kid, expected=row.state, whole=str(int(whole)))

    async def _change(self, script: str, /, **args: str | bytes | int) -> Reply:
        try:
            return await self._scripts.run(script, {"signing": spell.SIGNING}, **args)
        finally:
            self.changed()
