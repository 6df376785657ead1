"""/signin/setup: people who must have a second step to sign in, and have none, set one up."""

from __future__ import annotations

from urllib.parse import quote

from handlers.account.factors import FactorsPage, authenticator_picture
from handlers.account.pending_target import landing
from handlers.account.setup.half_signin import HALF_COOKIE, KEEP
from handlers.account.signin import SignInPage
from handlers.core import mails
from handlers.core.page import next_query, safe_next
from store.accounts.signin.second_step import HAS_STEP, Half
from store.accounts.signin.totp import in_base32, in_fours, key_uri
from store.phrases import Phrase
from store.refused import Refused, SignedOut


class SetUpStepHandler(SignInPage, FactorsPage):
    """The page between the password and the first session with a second step."""

    async def get(self) -> None:
        """Shows a new secret, as a QR code and as text."""
        query = self.query()
        target, half = safe_next(query.get("next")), self.half()
        try:
            if half is None:
                raise SignedOut
            await self.show_setup(
                half, await self.store.second_step.start_setup(half), target, keep=bool(query.get(KEEP))
            )
        except SignedOut:
            self.begin_again(target)
        except Refused as refusal:
            if refusal.description != HAS_STEP:
                raise
            self.begin_again(target)

    def half(self) -> Half | None:
        """The sign-in in the cookie, whose password was right."""
        return self.store.second_step.open(self.read_cookie(HALF_COOKIE))

    def begin_again(self, target: str) -> None:
        """Returns to the password, because the sign-in expired or something changed."""
        self.write_cookie(HALF_COOKIE, None)
        self.see_other(f"/signin?late=1&next={quote(target, safe='')}")

    async def show_setup(self, half: Half, sealed: str, target: str, error: str | None = None, *, keep: bool) -> None:
        """The page with this secret, and the error if there is one. Raises SignedOut."""
        person = await self.store.people_pages.one(half.user)
        if person is None:
            raise SignedOut
        secret = self.store.second_step.open_secret(half, sealed)
        uri = key_uri(secret, self.site.brand.name, person.email)
        self.render(
            "signin/setup.html",
            title=Phrase("Set up two-step verification"),
            why=await self.reason_for(target),
            keep=keep,
            next=target,
            next_query=next_query(target),
            sealed=sealed,
            uri=uri,
            secret=in_fours(in_base32(secret)),
            picture=authenticator_picture(uri),
            error=error,
        )

    async def post(self) -> None:
        """Switches the app on if the code is right, and starts a session; then shows recovery codes."""
        self.check_same_origin()
        params = self.body()
        target, keep, half = safe_next(params.get("next")), bool(params.get(KEEP)), self.half()
        await self.store.limits.passkey(self.counted_address)
        sealed = params.require("secret")
        try:
            if half is None:
                raise SignedOut
            with mails.undoable(self.site, half.user, "second_step", self.visitor):
                found, added = await self.store.second_step.set_up(
                    half, sealed, params.get("code") or "", self.visitor, self.device(), kept=keep
                )
                what = Phrase("An authenticator app was added to your account")
                mails.factors_changed(self.site, half.user, found.warned, what, self.visitor, added.undo)
        except SignedOut:
            return self.begin_again(target)
        except Refused as refusal:
            if half is None or refusal.code != "access_denied":
                raise
            self.set_status(400)
            return await self.show_setup(half, sealed, target, refusal.description, keep=keep)
        await self.replace_session(found)
        session = self.store.sessions.open(found.cookie)
        assert session is not None
        onward = landing(self.proved(target, found))
        notice = Phrase("Your authenticator app is set up.")
        self.show_codes(await self.store.factors.of(session), added.codes, notice, onward)
