"""Cursors of lists: sealed, so that they work only for the query that they came from."""

from __future__ import annotations

from store.crypto.seal import NOBODY, Sealer, Token, TokenKind, fingerprint
from store.refused import Refused

MOST_AT_ONCE = 100
"""Rows of a page."""
USUAL = 50


class Cursors:
    """Seals positions. A position is at most 254 bytes."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def seal(self, query: str, position: str) -> str:
        """The cursor for the rows after `position` in the list that `query` describes."""
        return self._sealer.seal(Token(TokenKind.CURSOR, NOBODY, position, fingerprint(query), 0))

    def open(self, query: str, cursor: str) -> str:
        """The position; "" for no cursor. Raises Refused("invalid_request") for anything that `seal` did not return for
        this query."""
        if not cursor:
            return ""
        token = self._sealer.open(TokenKind.CURSOR, cursor)
        if token is None or token.id != fingerprint(query):
            raise Refused("invalid_request", "The cursor belongs to another query. Begin again without one.")
        return token.client
