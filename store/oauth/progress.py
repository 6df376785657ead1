"""How far an authorization request has come: a sealed mark in its address, so nobody skips a step by editing it."""

from __future__ import annotations

from typing import NamedTuple

from store.clock import wall
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.lifetimes import MINUTE

NOBODY = "0" * 32
LASTS = 60 * MINUTE


class RequestStep(NamedTuple):
    """A step of a request. `done`: `sign-in` if the person was sent to sign in, `account` if `user` chose to continue.
    `age`: ms since then, by the clock that made the mark: session times are the store's, so only ages compare."""

    done: str
    age: int
    user: str


class RequestProgress:
    """Makes and reads marks. No I/O."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def mark(self, done: str, client: str, user: str = NOBODY) -> str:
        """The mark of a step that begins now."""
        now = int(wall.time() * 1000)
        return self._sealer.seal(Token(TokenKind.PROGRESS, user, f"{done} {now} {client}", new_id(), 0))

    def open(self, text: str | None, client: str) -> RequestStep | None:
        """The step in a mark of this app's request; None for any other text, and after an hour."""
        token = self._sealer.open(TokenKind.PROGRESS, text) if text else None
        if token is None:
            return None
        done, at, of = token.client.split(" ")
        age = int(wall.time() * 1000) - int(at)
        return RequestStep(done, age, token.user) if of == client and 0 <= age <= LASTS else None
