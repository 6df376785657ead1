"""The keys that sign ID tokens, logout tokens and JWT access tokens: made, published, rotated, revoked.

The store has them sealed; `store/crypto/signing_rows.py` says when each signs. The first need makes the first key of
an algorithm, which signs at once. A successor is published a day before it signs, so that everybody who caches the set
has it by then. Whichever process reads the set first after the current key has grown old makes the successor. Scripts
decide races: all processes sign with the same key.

Signing is a plain call. ES256 takes some 20 microseconds, RS256 some 350, about as long as a request. A thread would
not help, because the library keeps the interpreter's lock while it signs. Making an RSA key takes a tenth of a second
and gives the lock up, so a thread does it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import orjson

from store.crypto.jose import jws
from store.crypto.jose.jwk import PublicKey, parse_key
from store.crypto.jose.private import OURS, PrivateKey
from store.crypto.jose.refusal import JoseError
from store.crypto.signing_rows import IN_JWKS, KID, VERIFIES, Phase, SigningRow, current, phase, waiting
from store.crypto.signing_store import ANNOUNCED, ATTEMPTS, KeySet, SigningStore
from store.errors import StoreError, StoreUnavailable
from store.lifetimes import DAY, SIGNING_AHEAD

log = logging.getLogger("latchkey.signing")

CACHE_SECONDS = 5.0
ASK_SECONDS = 1.0
"""The least time between two reads because of a name that is not in the set: anybody can invent names."""
RETRY_SECONDS = 60.0
"""The pause after a successor could not be made."""
KEY_DAYS = 90


@dataclass(frozen=True, slots=True)
class Signer:
    """A key that signs now. Use it at once: a minute later another key may sign."""

    key: PrivateKey

    @property
    def kid(self) -> str:
        """The name of the key."""
        return self.key.kid

    def sign(self, claims: Mapping[str, Any], typ: str) -> str:
        """The claims as a signed token of this type (`JWT`, `at+jwt`, `logout+jwt`)."""
        return jws.sign(claims, self.key, typ)


@dataclass(frozen=True, slots=True)
class _Cached:
    """The keys, and when they were read, by the steady clock of this process."""

    at: float
    found: KeySet


class SigningKeys:
    """The signing keys, cached. A change shows in every process within 5 s, usually at once. Methods raise
    StoreUnavailable, StoreError."""

    def __init__(self, store: SigningStore, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        store.changed = self.forget
        self._clock = clock
        self.days = KEY_DAYS
        """The age, in days, at which a key gets a successor; 0: never."""
        self._cached: _Cached | None = None
        self._loading: asyncio.Task[_Cached] | None = None
        self._making = asyncio.Lock()
        self._asked = self._failed = float("-inf")
        # Key material is parsed once in a process.
        self._signers: dict[str, Signer] = {}
        self._publics: dict[str, PublicKey] = {}

    async def for_signing(self, algorithm: str) -> Signer:
        """The key that signs now; makes the first one of an algorithm. Raises ValueError for an algorithm that is not
        one of ours."""
        if algorithm not in OURS:
            raise ValueError(f"nothing is signed with {algorithm}")
        signer = self._signer(await self._fresh(), algorithm)
        return signer or await self._first(algorithm)

    async def published(self) -> dict[str, list[dict[str, str]]]:
        """The set of public keys (RFC 7517 5), those that sign first. Makes the first key of each algorithm."""
        found = await self._fresh()
        for algorithm in OURS:
            if self._signer(found, algorithm) is None:
                await self._first(algorithm)
                found = await self._fresh()
        now = self._now(found)
        rows = found.found.rows
        phases = [(phase(row, rows, now, self._store.hints), row) for row in rows]
        order = (Phase.SIGNING, Phase.WAITING, Phase.PUBLISHED)
        shown = [one for one in phases if one[0] in IN_JWKS]
        # A client that ignores names most likely expects RS256, and takes the first key.
        shown.sort(key=lambda one: (order.index(one[0]), OURS.index(one[1].algorithm)))
        publics = ((row, self._public(row)) for _, row in shown)
        return {"keys": [public.to_jwk(row.algorithm) for row, public in publics if public]}

    async def verifier(self, kid: str) -> PublicKey | None:
        """The key of this name, if tokens and hints are verified with it. A name that is not in the set is looked up
        in the store, at most once a second."""
        if not KID.fullmatch(kid):
            return None
        key = self._verifying(await self._fresh()).get(kid)
        if key is None and self._may_ask():
            key = self._verifying(await self._fresh()).get(kid)
        return key

    async def verify(self, text: str, *, types: Collection[str | None], longest: int = jws.LONGEST) -> jws.Verified:
        """A token of this server's own, its signature verified, also with keys that sign no more. Its times, audience
        and issuer are for the caller to check. Raises JoseError."""
        found = self._verifying(await self._fresh())
        try:
            return jws.verify(text, [*found.values()], algorithms=OURS, types=types, longest=longest)
        except JoseError as error:
            if error.reason != "unknown_key" or not self._may_ask():
                raise
        found = self._verifying(await self._fresh())
        return jws.verify(text, [*found.values()], algorithms=OURS, types=types, longest=longest)

    def forget(self) -> None:
        """Drops the cached set."""
        self._cached = self._loading = None

    def heard(self, announced: str | None) -> None:
        """Drops the cached set if an announcement is about signing keys; None: announcements may have been missed."""
        if announced in (None, ANNOUNCED):
            self.forget()

    async def _fresh(self) -> _Cached:
        """The set, at most 5 s old."""
        if self._cached is not None and self._clock() - self._cached.at < CACHE_SECONDS:
            return self._cached
        # Requests that miss together share one read.
        task = self._loading
        if task is None:
            task = self._loading = asyncio.ensure_future(self._load())
            task.add_done_callback(self._loaded)
        return await asyncio.shield(task)

    async def _load(self) -> _Cached:
        cached = await self._read()
        if self._clock() - self._failed > RETRY_SECONDS:
            try:
                if await self._tend(cached.found):
                    cached = await self._read()
            except StoreError as error:  # the present keys still sign
                self._failed = self._clock()
                log.warning("signing keys could not be brought up to date: %s", error)
        # A change during this read has dropped the task, because its answer may be old.
        if self._loading is asyncio.current_task():
            self._cached = cached
        return cached

    def _loaded(self, task: asyncio.Task[_Cached]) -> None:
        if self._loading is task:
            self._loading = None
        if not task.cancelled():
            task.exception()  # marks it as retrieved; the callers handle it

    async def _read(self) -> _Cached:
        at = self._clock()
        found = await self._store.read()
        for kid in (self._signers.keys() | self._publics.keys()) - {row.kid for row in found.rows}:
            self._signers.pop(kid, None)
            self._publics.pop(kid, None)
        return _Cached(at, found)

    async def _tend(self, found: KeySet) -> bool:
        """Makes successors of keys that have grown old and drops what is over. Returns whether anything changed."""
        changed = False
        for algorithm in OURS:
            now = current(found.rows, algorithm, found.now)
            old = now and self.days and found.now - now.first_use >= self.days * DAY
            if old and waiting(found.rows, algorithm, found.now) is None:
                # Another process may have been quicker. Then its key is there to be read.
                await self._store.make(algorithm, found, SIGNING_AHEAD)
                changed = True
        for row in found.rows:
            its_phase = phase(row, found.rows, found.now, self._store.hints)
            whole = its_phase is Phase.OVER
            if whole or (its_phase is Phase.HINTS and row.private):
                await self._store.drop(row, whole=whole)
                changed = True
        return changed

    async def _first(self, algorithm: str) -> Signer:
        """Makes a key where none signs."""
        async with self._making:
            for _ in range(ATTEMPTS):
                cached = await self._read()
                signer = self._signer(cached, algorithm)
                if signer is not None:
                    self.forget()  # another process may have made it: then the cached set lacks it
                    return signer
                successor = waiting(cached.found.rows, algorithm, cached.found.now)
                if successor is not None and self._opened(successor):
                    await self._store.promote(successor)
                else:
                    await self._store.make(algorithm, cached.found, 0)
        raise StoreUnavailable("the signing keys keep changing")

    def _now(self, cached: _Cached) -> int:
        """The store's time, in epoch ms."""
        return cached.found.now + int((self._clock() - cached.at) * 1000)

    def _may_ask(self) -> bool:
        """Whether the set may be read once more for a name that is not in it; forgets it if so."""
        if self._clock() - self._asked < ASK_SECONDS:
            return False
        self._asked = self._clock()
        self.forget()
        return True

    def _signer(self, cached: _Cached, algorithm: str) -> Signer | None:
        row = current(cached.found.rows, algorithm, self._now(cached))
        return self._opened(row) if row else None

    def _opened(self, row: SigningRow) -> Signer | None:
        """The key of a row; None if it does not open here."""
        signer = self._signers.get(row.kid)
        if signer is None:
            try:
                signer = Signer(PrivateKey.load(row.algorithm, self._store.secrets.open(row.kid, row.private)))
            except (StoreError, ValueError) as error:
                log.error("the signing key %s cannot be used: %s", row.kid, error)
                return None
            self._signers[row.kid] = signer
        return signer

    def _public(self, row: SigningRow) -> PublicKey | None:
        public = self._publics.get(row.kid)
        if public is None:
            try:
                public = parse_key(orjson.loads(row.public))
            except ValueError:
                public = None
            if public is None or public.thumbprint != row.kid:
                log.error("the signing key %s has no sound public half", row.kid)
                return None
            self._publics[row.kid] = public
        return public

    def _verifying(self, cached: _Cached) -> dict[str, PublicKey]:
        rows, now = cached.found.rows, self._now(cached)
        fit = (row for row in rows if phase(row, rows, now, self._store.hints) in VERIFIES)
        publics = ((row.kid, self._public(row)) for row in fit)
        return {kid: public for kid, public in publics if public}
