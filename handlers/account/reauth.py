"""What pages share on which who is signed in shows again who they are."""

from __future__ import annotations

from handlers.account.second_step import NO_PASSKEYS
from handlers.account.signin import CHALLENGE_COOKIE
from handlers.core.page import PageHandler
from handlers.core.params import Params
from store.accounts.signin.passkeys import Answer, Party, options_for_use, read_answer
from store.accounts.signin.reauth import NotShown
from store.lifetimes import CHALLENGE
from store.refused import Refused


class ConfirmingPage(PageHandler):
    """A page that asks for a passkey: the challenge in a cookie, the answer in a form."""

    uses_scripts = True

    def party(self) -> Party:
        """Who asks. Raises Refused("invalid_request") where there are no passkeys."""
        if self.site.party is None:
            raise Refused("invalid_request", NO_PASSKEYS)
        return self.site.party

    def ask_passkey(self, challenge: str, allowed: list[str]) -> None:
        """What the browser is asked for, with the challenge that it keeps for the answer."""
        options = options_for_use(self.party(), challenge, allowed)
        self.write_cookie(CHALLENGE_COOKIE, challenge, CHALLENGE)
        self.write_json({"publicKey": options})

    def read_passkey(self, params: Params) -> tuple[Party, str | None, Answer]:
        """Who asked, the challenge and the answer in the form. Raises Refused, NotShown."""
        party, challenge = self.party(), self.read_cookie(CHALLENGE_COOKIE)
        self.write_cookie(CHALLENGE_COOKIE, None)
        try:
            return party, challenge, read_answer(params.get("credential") or "")
        except Refused as refusal:
            raise NotShown("passkey", refusal.description) from None
