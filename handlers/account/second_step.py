"""/signin/second, /signin/passkey: the step after the password, and sign-in with only a passkey."""

from __future__ import annotations

from urllib.parse import quote

from handlers.account.account_list import note_provider
from handlers.account.setup.half_signin import HALF_COOKIE, KEEP
from handlers.account.signin import CHALLENGE_COOKIE, SignInPage
from handlers.core import mails
from handlers.core.page import next_query, safe_next
from handlers.core.params import Params
from store.accounts.signin.guesses import WrongCode
from store.accounts.signin.passkeys import options_for_use, read_answer
from store.accounts.signin.second_step import Half
from store.accounts.signin.sessions import SignedIn
from store.lifetimes import CHALLENGE
from store.phrases import Phrase
from store.refused import Refused, SignedOut

NO_PASSKEYS = Phrase("Passkeys don’t work at this address.")


class PasskeyPage(SignInPage):
    """Shared by both: challenges are in a cookie, responses in a form."""

    uses_scripts = True

    def half(self) -> Half | None:
        """The sign-in in the cookie, whose password was right."""
        return self.store.second_step.open(self.read_cookie(HALF_COOKIE))

    async def give_options(self, half: Half | None, allowed: list[str]) -> None:
        """Answers with WebAuthn options, and sets the challenge in a cookie."""
        if self.site.relying_party is None:
            raise Refused("invalid_request", NO_PASSKEYS)
        challenge = await self.store.second_step.challenge(half)
        self.write_cookie(CHALLENGE_COOKIE, challenge, CHALLENGE)
        self.write_json({"publicKey": options_for_use(self.site.relying_party, challenge, allowed)})

    async def session_for_passkey(self, half: Half | None, params: Params) -> SignedIn:
        """A new session for a passkey response. Raises Refused, SignedOut."""
        if self.site.relying_party is None:
            raise Refused("invalid_request", NO_PASSKEYS)
        answer = read_answer(params.get("credential") or "")
        challenge = self.read_cookie(CHALLENGE_COOKIE)
        self.write_cookie(CHALLENGE_COOKIE, None)
        return await self.store.second_step.with_passkey(
            half,
            self.site.relying_party,
            challenge,
            answer,
            self.visitor,
            self.device(),
            kept=bool(params.get(KEEP)),
        )


class PasskeyOptionsHandler(PasskeyPage):
    """WebAuthn options for a sign-in without an address."""

    async def post(self) -> None:
        """Allows any passkey that the browser has for this server."""
        self.check_same_origin()
        await self.give_options(None, [])


class PasskeySignInHandler(PasskeyPage):
    """Signs in with a passkey, which names the account and verified its holder: no password, no second step."""

    async def post(self) -> None:
        """Starts a new session, or shows the sign-in page with an error."""
        self.check_same_origin()
        params = self.body()
        target = safe_next(params.get("next"))
        await self.store.limits.passkey(self.counted_address)
        try:
            found = await self.session_for_passkey(None, params)
        except (Refused, SignedOut) as error:
            if isinstance(error, Refused) and error.code != "access_denied":
                raise
            self.set_status(400)
            text = error.description if isinstance(error, Refused) else Phrase("That passkey can't be used here.")
            return await self.show_sign_in(target, passkey_error=text, keep=bool(params.get(KEEP)))
        note_provider(self, "")
        await self.signed_in(found, target)


class SecondStepHandler(PasskeyPage):
    """The page between the password and the session."""

    async def get(self) -> None:
        """Shows the form for a code or a passkey."""
        query = self.query()
        target = safe_next(query.get("next"))
        half = self.half()
        try:
            if half is None:
                raise SignedOut
            await self.show(half, target, keep=bool(query.get(KEEP)))
        except SignedOut:
            self.begin_again(target)

    async def show(self, half: Half, target: str, error: str | None = None, *, keep: bool) -> None:
        """The page, with the error if there is one. Raises SignedOut."""
        options = await self.store.second_step.options(half)
        why = await self.reason_for(target)
        self.render(
            "signin/second_step.html",
            title=Phrase("Two-step verification"),
            why=why,
            keep=keep,
            next=target,
            next_query=next_query(target),
            error=error,
            has_app=options.secret is not None,
            has_passkey=bool(options.credentials) and self.site.relying_party is not None,
        )

    def begin_again(self, target: str) -> None:
        """Returns to the password, because the sign-in expired or something changed."""
        self.write_cookie(HALF_COOKIE, None)
        self.see_other(f"/signin?late=1&next={quote(target, safe='')}")

    async def post(self) -> None:
        """Checks the code or the passkey response, and starts a new session."""
        self.check_same_origin()
        params = self.body()
        target, keep = safe_next(params.get("next")), bool(params.get(KEEP))
        half = self.half()
        try:
            if half is None:
                raise SignedOut
            device = self.device()
            # A known device has its own count of wrong codes, which nobody else at its address can use up.
            if params.get("credential") or not half.knows(device):
                await self.store.limits.passkey(self.counted_address)
            if params.get("credential"):
                found = await self.session_for_passkey(half, params)
            else:
                found = await self.store.second_step.with_code(
                    half, params.get("code") or "", self.visitor, device, kept=keep
                )
        except SignedOut:
            return self.begin_again(target)
        except Refused as refusal:
            if half and isinstance(refusal, WrongCode):
                mails.codes_guessed(self.site, half.user, refusal.notice, self.visitor)
            if half is None or refusal.code != "access_denied":
                raise
            self.set_status(400)
            try:
                return await self.show(half, target, refusal.description, keep=keep)
            except SignedOut:
                return self.begin_again(target)
        await self.signed_in(found, target)


class SecondOptionsHandler(PasskeyPage):
    """WebAuthn options for the second step."""

    async def post(self) -> None:
        """Lists this person's passkeys. Raises SignedOut if the password was entered too long ago."""
        self.check_same_origin()
        half = self.half()
        if half is None:
            raise SignedOut
        options = await self.store.second_step.options(half)
        await self.give_options(half, options.credentials)
