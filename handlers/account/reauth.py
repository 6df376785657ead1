"""Shared by pages that ask the person to re-authenticate."""

from __future__ import annotations

from typing import Any

from handlers.account.second_step import NO_PASSKEYS
from handlers.account.signin import CHALLENGE_COOKIE
from handlers.core.page import PageHandler
from handlers.core.params import Params
from outbound.identity.providers import Provider
from store.accounts.signin.factors import Factors
from store.accounts.signin.passkeys import PasskeyResponse, RelyingParty, options_for_use, read_answer
from store.accounts.signin.reauth import ReauthFailed
from store.accounts.signin.sessions import Session, Sessions
from store.crypto.seal import fingerprint
from store.lifetimes import CHALLENGE
from store.refused import Refused


def link_key(sessions: Sessions, session: Session) -> str:
    """As `ReauthPage.link_key`: a digest of the session's cookie."""
    return fingerprint(f"connect {sessions.seal(session)}")


class ReauthPage(PageHandler):
    """A page that asks for a passkey: the challenge is in a cookie, the response in a form."""

    uses_scripts = True

    def relying_party(self) -> RelyingParty:
        """The relying party. Raises Refused("invalid_request") if passkeys don't work here."""
        if self.site.relying_party is None:
            raise Refused("invalid_request", NO_PASSKEYS)
        return self.site.relying_party

    def link_key(self) -> str:
        """What a link carries that connects an account, or confirms with one: only pages of this session know it.
        Operators see the ids of sessions, so those are not enough. Raises SignedOut."""
        return link_key(self.store.sessions, self.require_session())

    def confirm_with(self, factors: Factors) -> list[Provider]:
        """The providers that can confirm who a person is who has neither a password nor a passkey."""
        if factors.has_password or factors.passkeys:
            return []
        found = (self.site.providers.of(one.identity) for one in factors.identities)
        return list(dict.fromkeys(one for one in found if one and one.confirms))

    def ways_to_confirm(self, factors: Factors) -> dict[str, Any]:
        """The values of the templates base/password_and_code.html and base/confirm_elsewhere.html: with what the person
        can confirm. Who signs in elsewhere confirms there first."""
        there = self.confirm_with(factors)
        came_back = factors.by_provider or factors.proved_elsewhere
        return {
            "has_app": factors.secret is not None,
            "has_passkey": bool(factors.passkeys),
            "asks_code": factors.asks_code,
            "asks_password": not came_back,
            "lacks_password": not (factors.has_password or came_back),
            "passkeys_work": self.site.relying_party is not None,
            "confirm_with": [] if came_back else there,
            "link_key": self.link_key(),
            "back": self.request.path,
        }

    def ask_passkey(self, challenge: str, allowed: list[str]) -> None:
        """Answers with WebAuthn options, and sets the challenge in a cookie."""
        options = options_for_use(self.relying_party(), challenge, allowed)
        self.write_cookie(CHALLENGE_COOKIE, challenge, CHALLENGE)
        self.write_json({"publicKey": options})

    def read_passkey(self, params: Params) -> tuple[RelyingParty, str | None, PasskeyResponse]:
        """The relying party, the challenge, and the response in the form. Raises Refused, ReauthFailed."""
        relying_party, challenge = self.relying_party(), self.read_cookie(CHALLENGE_COOKIE)
        self.write_cookie(CHALLENGE_COOKIE, None)
        try:
            return relying_party, challenge, read_answer(params.get("credential") or "")
        except Refused as refusal:
            raise ReauthFailed("passkey", refusal.description) from None
