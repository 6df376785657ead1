"""/signin/setup: people who must have a second step to sign in, and have none, set one up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from handlers.account.factors import FactorsPage, authenticator_picture
from handlers.account.pending_target import landing
from handlers.account.setup.half_signin import HALF_COOKIE, KEEP
from handlers.account.signin import CHALLENGE_COOKIE, SignInPage
from handlers.core import mails
from handlers.core.page import next_query, safe_next
from store.accounts.signin.factors import Added
from store.accounts.signin.passkeys import options_for_new, read_answer
from store.accounts.signin.second_step import HAS_STEP, Half
from store.accounts.signin.sessions import SignedIn
from store.accounts.signin.totp import in_base32, in_fours, key_uri
from store.lifetimes import CHALLENGE
from store.phrases import Phrase
from store.refused import Refused, SignedOut


class SetUpPage(SignInPage, FactorsPage):
    """The page between the password and the first session with a second step. The sign-in, whose password was right, is
    in a cookie."""

    def half(self) -> Half:
        """The sign-in in the cookie. Raises SignedOut."""
        half = self.store.second_step.open(self.read_cookie(HALF_COOKIE))
        if half is None:
            raise SignedOut
        return half

    def begin_again(self, target: str) -> None:
        """Returns to the password, because the sign-in expired or something changed."""
        self.write_cookie(HALF_COOKIE, None)
        self.see_other(f"/signin?late=1&next={quote(target, safe='')}")

    async def show_setup(
        self,
        half: Half,
        target: str,
        *,
        keep: bool,
        sealed: str | None = None,
        error: str | None = None,
        passkey_error: str | None = None,
    ) -> None:
        """The page with this secret, or a new one, and the error if there is one. Raises SignedOut, Refused."""
        sealed = sealed or await self.store.second_step.start_setup(half)
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
            passkeys_offered=self.site.relying_party is not None,
            passkey_error=passkey_error,
            sealed=sealed,
            uri=uri,
            secret=in_fours(in_base32(secret)),
            picture=authenticator_picture(uri),
            error=error,
        )

    async def set_up(
        self,
        add: Callable[[Half], Awaitable[tuple[SignedIn, Added]]],
        again: Callable[[Half, str], Awaitable[None]],
        mailed: str,
        notice: str,
        target: str,
    ) -> None:
        """Adds the second step with `add`, and mails `mailed`. Begins the session, and shows the recovery codes on the
        way to the target; for a wrong answer, shows the page with `again`. Raises Refused as `add`."""
        try:
            half = self.half()
            try:
                with mails.undoable(self.site, half.user, "second_step", self.visitor):
                    found, added = await add(half)
                    mails.factors_changed(self.site, half.user, found.warned, mailed, self.visitor, added.undo)
            except Refused as refusal:
                if refusal.code != "access_denied":
                    raise
                self.set_status(400)
                return await again(half, refusal.description)
        except SignedOut:
            return self.begin_again(target)
        await self.replace_session(found)
        session = self.store.sessions.open(found.cookie)
        assert session is not None
        onward = landing(self.proved(target, found))
        self.show_codes(await self.store.factors.of(session), added.codes, notice, onward)


class SetUpAppHandler(SetUpPage):
    """Offers both ways, and sets up an authenticator app."""

    async def get(self) -> None:
        """Offers a passkey, and shows a new secret as a QR code and as text."""
        query = self.query()
        target = safe_next(query.get("next"))
        try:
            await self.show_setup(self.half(), target, keep=bool(query.get(KEEP)))
        except SignedOut:
            self.begin_again(target)
        except Refused as refusal:
            if refusal.description != HAS_STEP:
                raise
            self.begin_again(target)

    async def post(self) -> None:
        """Switches the app on if the code is right, and starts a session; then shows recovery codes."""
        self.check_same_origin()
        params = self.body()
        target, keep = safe_next(params.get("next")), bool(params.get(KEEP))
        await self.store.limits.passkey(self.counted_address)
        sealed = params.require("secret")

        async def add(half: Half) -> tuple[SignedIn, Added]:
            code = params.get("code") or ""
            return await self.store.second_step.set_up(half, sealed, code, self.visitor, self.device(), kept=keep)

        async def again(half: Half, error: str) -> None:
            await self.show_setup(half, target, keep=keep, sealed=sealed, error=error)

        added = Phrase("An authenticator app was added to your account")
        await self.set_up(add, again, added, Phrase("Your authenticator app is set up."), target)


class SetUpPasskeyHandler(SetUpPage):
    """Sets up a passkey."""

    async def post(self) -> None:
        """Registers the passkey that the browser made, and starts a session; then shows recovery codes."""
        self.check_same_origin()
        params = self.body()
        target, keep = safe_next(params.get("next")), bool(params.get(KEEP))
        await self.store.limits.passkey(self.counted_address)
        relying_party, challenge = self.relying_party(), self.read_cookie(CHALLENGE_COOKIE)
        self.write_cookie(CHALLENGE_COOKIE, None)

        async def add(half: Half) -> tuple[SignedIn, Added]:
            answer, agent = read_answer(params.get("credential") or ""), self.visitor.agent
            return await self.store.second_step.set_up_passkey(
                half, relying_party, challenge, answer, agent, self.visitor, self.device(), kept=keep
            )

        async def again(half: Half, error: str) -> None:
            await self.show_setup(half, target, keep=keep, passkey_error=error)

        added = Phrase("A passkey was added to your account")
        await self.set_up(add, again, added, Phrase("Your passkey was added."), target)


class SetUpOptionsHandler(SetUpPage):
    """WebAuthn options for a first passkey."""

    async def post(self) -> None:
        """Answers with JSON, and sets the challenge in a cookie. Raises SignedOut, Refused."""
        self.check_same_origin()
        relying_party, half = self.relying_party(), self.half()
        challenge = await self.store.second_step.setup_challenge(half)
        person = await self.store.people_pages.one(half.user)
        if person is None:
            raise SignedOut
        self.write_cookie(CHALLENGE_COOKIE, challenge, CHALLENGE)
        product, name = self.site.brand.name, person.name or person.email
        self.write_json(
            {"publicKey": options_for_new(relying_party, product, half.user, person.email, name, challenge, [])}
        )
