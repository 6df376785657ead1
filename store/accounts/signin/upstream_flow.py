"""The request to an identity provider while a person is there: one sealed cookie, bound to the browser.

Nothing is stored. The cookie is a secret that only this browser has, so `state`, `nonce` and the code verifier are
digests of it: an answer fits the browser that asked, an ID token fits the request, and a code works here alone.
(OpenID Connect Core 3.1.2.1, RFC 7636 4.1, RFC 9700 2.1.1)
"""

from __future__ import annotations

import base64
import hashlib
from typing import NamedTuple

from store.crypto.seal import NOBODY, Sealer, Token, TokenKind, fingerprint, new_id
from store.lifetimes import MINUTE

LASTS = 10 * MINUTE
"""How long a person may be at the provider."""
_NO_SESSION = "-"


class Flow(NamedTuple):
    """A request: the provider's name, when it began (s), whether the person stays signed in, whether a new sign-in
    there must be proved (`fresh`), the digest of where they go on, and for a link to an account and for a confirmation
    (`confirms`) the person and the session."""

    text: str
    provider: str
    began: int
    kept: bool
    fresh: bool
    target: str
    user: str
    session_id: str
    confirms: bool = False

    @property
    def links(self) -> bool:
        """Whether it links an identity, instead of signing in."""
        return self.of_session and not self.confirms

    @property
    def of_session(self) -> bool:
        """Whether it is about the account of a session, instead of a sign-in."""
        return self.session_id != ""

    @property
    def state(self) -> str:
        """The `state` of the request."""
        return self._digest("state")

    @property
    def nonce(self) -> str:
        """The `nonce` of the ID token."""
        return self._digest("nonce")

    @property
    def verifier(self) -> str:
        """The code verifier of RFC 7636."""
        return self._digest("verifier")

    @property
    def challenge(self) -> str:
        """The code challenge, S256."""
        return _encoded(hashlib.sha256(self.verifier.encode()).digest())

    def leads_to(self, target: str) -> bool:
        """Whether the request was made to go on to this target."""
        return self.target == fingerprint(target)

    def _digest(self, what: str) -> str:
        return _encoded(hashlib.sha256(f"{what} {self.text}".encode()).digest())


class UpstreamFlows:
    """Begins and opens requests. No I/O."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def begin(
        self,
        provider: str,
        now: float,
        target: str,
        *,
        kept: bool = False,
        fresh: bool = False,
        user: str = NOBODY,
        session_id: str = "",
        confirms: bool = False,
    ) -> Flow:
        """A new request to a provider, which goes on to `target`; with a session it links an identity, or confirms
        who the person is."""
        facts = (provider, int(now), f"{kept:d}{fresh:d}{confirms:d}", fingerprint(target), session_id or _NO_SESSION)
        token = Token(TokenKind.UPSTREAM, user, " ".join(map(str, facts)), new_id(), 0)
        flow = self.open(self._sealer.seal(token), now)
        assert flow is not None
        return flow

    def open(self, text: str | None, now: float) -> Flow | None:
        """The request of a cookie; None for a forged one and for one that began too long ago."""
        token = self._sealer.open(TokenKind.UPSTREAM, text) if text else None
        if token is None or text is None:
            return None
        provider, began, flags, target, session_id = token.client.split(" ")
        if not -60 <= now - int(began) <= LASTS // 1000:
            return None
        session_id = "" if session_id == _NO_SESSION else session_id
        kept, fresh, confirms = (one == "1" for one in flags.ljust(3, "0"))  # earlier releases wrote two
        return Flow(text, provider, int(began), kept, fresh, target, token.user, session_id, confirms)


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
