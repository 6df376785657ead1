"""DPoP proofs in the store: each counts once, and nonces say when a proof was made. RFC 9449 8, 11.1."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress

from store import keys
from store.apps.registration import Registration
from store.clock import wall
from store.crypto.dpop import DpopProof
from store.crypto.seal import Sealer, Token, TokenKind
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.lifetimes import DPOP_MARK, MINUTE, SECOND
from store.refused import Refused, UnknownUser

NONCE_LASTS = 5 * MINUTE
NONCE_STEP = 30 * SECOND
"""A server gives the same nonce for this long: programs keep one, and a concurrent answer gives them no other."""
NONCE_AHEAD = MINUTE
"""How far ahead the clock of another host may be."""
_NOBODY, _NOTHING = "0" * 32, "A" * 22


class Proofs:
    """Counts proofs at the token endpoint, and makes and reads nonces. Nonces are sealed times: nothing is kept."""

    def __init__(self, scripts: Scripts, sealer: Sealer) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._latest = (0, "")

    def nonce(self) -> str:
        """The nonce of the present. No I/O."""
        step = _now() // NONCE_STEP
        if self._latest[0] != step:
            token = Token(TokenKind.DPOP_NONCE, _NOBODY, str(step * NONCE_STEP), _NOTHING, 0)
            self._latest = (step, self._sealer.seal(token))
        return self._latest[1]

    def is_recent(self, nonce: str) -> bool:
        """Whether this is a nonce of ours that is at most five minutes old. No I/O."""
        token = self._sealer.open(TokenKind.DPOP_NONCE, nonce)
        return token is not None and -NONCE_AHEAD <= _now() - int(token.client) <= NONCE_LASTS

    async def use(self, proof: DpopProof) -> None:
        """Counts a proof that came to the token endpoint. Raises Refused("invalid_dpop_proof") for one that was used
        before."""
        mark = keys.dpop(proof.mark, proof.jkt)
        reply = await self._scripts.run("use_dpop_proof", {"mark": mark}, lasts=DPOP_MARK)
        if reply.word == "used":
            raise Refused("invalid_dpop_proof", "This DPoP proof was used before.")

    def counted(self, proof: DpopProof | None) -> AbstractAsyncContextManager[None]:
        """Counts a proof, if there is one, for a request to the token endpoint; raises as `use`. A refused request
        takes its mark back: otherwise whoever has a single dead token could fill the store with marks."""
        return nullcontext() if proof is None else self._counted(proof)

    @asynccontextmanager
    async def _counted(self, proof: DpopProof) -> AsyncIterator[None]:
        await self.use(proof)
        try:
            yield
        except (Refused, UnknownUser):
            with suppress(StoreError):  # the mark expires by itself
                await self._scripts.run("use_dpop_proof", {"mark": keys.dpop(proof.mark, proof.jkt)}, lasts="")
            raise


def may_present(app: Registration, jkt: str) -> bool:
    """Whether the app may present a token bound to this key, or to none if it is empty. A token may be older than what
    the app is registered with."""
    return bool(jkt) or not app.dpop_required


def demand_proof(app: Registration, proof: DpopProof | None) -> None:
    """Raises Refused("invalid_dpop_proof") for a request for tokens without a proof, if the app gets only bound
    tokens."""
    if proof is None and not may_present(app, ""):
        raise Refused("invalid_dpop_proof", "This app gets tokens with a DPoP proof only.")


def for_call(user: str, proof: DpopProof) -> str:
    """A proof as the guard takes it, for a call for this person: `parts_of_proof` in `lua/include/oauth/dpop.lua`."""
    return f"{proof.jkt} {keys.dpop(proof.mark, proof.jkt, user)} {DPOP_MARK}"


def _now() -> int:
    return int(wall.time() * SECOND)
