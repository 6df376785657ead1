"""The accounts that signed in with a browser, which its cookie lists for the page to choose one.

Each entry is a sealed text of its own, so a cookie has no secret that signs anybody in, and nobody can add an account
that never signed in with that browser, or one of another server. Entries under a retired key are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.names import MAX_EMAIL_BYTES

MOST = 5
SEPARATOR = "."
_LONGEST = MOST * 420
"""More than the longest cookie, in characters."""


class ListedAccount(NamedTuple):
    """An account in the list: the person, and the address at its last sign-in here. `id` names the entry in forms."""

    id: str
    user: str
    email: str
    sealed: str


class ListedAccounts:
    """Opens and seals the cookies. No I/O: the store does not know the lists."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def open(self, cookie: str | None) -> tuple[ListedAccount, ...]:
        """The accounts of a cookie, newest first; none for a cookie that is not ours."""
        if not cookie or len(cookie) > _LONGEST:
            return ()
        parts = cookie.split(SEPARATOR)
        if len(parts) > MOST or "" in parts:
            return ()
        found = []
        for sealed in parts:
            if token := self._sealer.open(TokenKind.LISTED, sealed):
                found.append(ListedAccount(token.id, token.user, token.client, sealed))
        return tuple(found)

    def with_account(self, listed: Sequence[ListedAccount], user: str, email: str) -> str:
        """The cookie with this person in front, in place of an earlier entry and of the oldest one too many."""
        if len(email.encode()) > MAX_EMAIL_BYTES:
            return self.cookie(listed)
        sealed = self._sealer.seal(Token(TokenKind.LISTED, user, email, new_id(), 0))
        others = [one.sealed for one in listed if one.user != user]
        return SEPARATOR.join([sealed, *others][:MOST])

    @staticmethod
    def cookie(listed: Sequence[ListedAccount]) -> str:
        """The cookie of these accounts."""
        return SEPARATOR.join(one.sealed for one in listed)
