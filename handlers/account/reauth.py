"""Shared by pages that ask the person to re-authenticate."""

from __future__ import annotations

from handlers.account.second_step import NO_PASSKEYS
from handlers.account.signin import CHALLENGE_COOKIE
from handlers.core.page import PageHandler
from handlers.core.params import Params
from store.accounts.signin.factors import Factors
from store.accounts.signin.passkeys import PasskeyResponse, RelyingParty, options_for_use, read_answer
from store.accounts.signin.reauth import ReauthFailed
from store.lifetimes import CHALLENGE
from store.refused import Refused


class ReauthPage(PageHandler):
    """A page that asks for a passkey: the challenge is in a cookie, the response in a form."""

    uses_scripts = True

    def relying_party(self) -> RelyingParty:
        """The relying party. Raises Refused("invalid_request") if passkeys don't work here."""
        if self.site.relying_party is None:
            raise Refused("invalid_request", NO_PASSKEYS)
        return self.site.relying_party

    def ways_to_confirm(self, factors: Factors) -> dict[str, bool]:
        """The values of the template base/password_and_code.html: with what the person can confirm."""
        return {
            "has_app": factors.secret is not None,
            "has_passkey": bool(factors.passkeys),
            "asks_code": factors.asks_code,
            "passkeys_work": self.site.relying_party is not None,
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
