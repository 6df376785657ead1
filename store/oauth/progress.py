"""How far an authorization request has come: a sealed mark in its address, so nobody skips a step by editing it."""

from __future__ import annotations

from typing import NamedTuple

from store.crypto.seal import Sealer, Token, TokenKind, new_id

SETS_UP = "step"
"""What the mark says of a request that demands a second step. It names no person, so it proves nothing."""


class RequestStep(NamedTuple):
    """A step of one request by one person. `done`: `sign-in` if `user` signed in for the request at `at` (epoch ms, by
    the store's clock), `account` if `user` chose to continue with the present session. `arrival`: a
    browser came with a signed request at `at` (by the host's clock). SETS_UP: nobody has done anything yet."""

    done: str
    at: int
    user: str


class RequestProgress:
    """Makes and reads marks. A mark names the request by a digest of its parameters: whoever takes it elsewhere gains
    nothing. No I/O."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def mark(self, done: str, request: str, user: str, at: int = 0) -> str:
        """The mark of a step that was just done. `request`: a digest."""
        return self._sealer.seal(Token(TokenKind.PROGRESS, user, f"{done} {at} {request}", new_id(), 0))

    def open(self, text: str | None, request: str) -> RequestStep | None:
        """The step in a mark of this request; None for any other text."""
        token = self._sealer.open(TokenKind.PROGRESS, text) if text else None
        if token is None:
            return None
        done, at, of = token.client.split(" ")
        return RequestStep(done, int(at), token.user) if of == request else None
