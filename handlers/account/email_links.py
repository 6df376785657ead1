"""Mailed links that confirm an address or reset a password, and their forms: /confirm, /forgot, /reset."""

from __future__ import annotations

from urllib.parse import urlencode

from handlers.account.link_page import NEW_LINK, LinkPage
from handlers.account.pending_target import ACCOUNT_PAGE, email_for
from handlers.core import mails
from handlers.core.base import DEVICE_COOKIE
from handlers.core.page import Onward, next_query, safe_next
from handlers.core.words.sentences import sentences
from store.crypto.passwords import MIN_PASSWORD_LENGTH
from store.crypto.seal import TokenKind
from store.lifetimes import RESET_LINK
from store.names import normalise_email
from store.phrases import Phrase
from store.refused import Refused, reason_of

FACTORS_STAY = Phrase(
    "A new password doesn’t remove any passkey or authenticator app. If someone else may have added one, remove it "
    "under Security."
)
ALL_IS_GONE = Phrase(
    "Nobody had confirmed this e-mail address before. So we removed all passkeys, the authenticator app and recovery "
    "codes, and disconnected all apps. What apps store for you is deleted in 30 days, unless you allow those apps "
    "again."
)


class ConfirmHandler(LinkPage):
    """Confirms the address of the person who is signed in."""

    onward = Onward("/account/email", NEW_LINK)

    async def get(self) -> None:
        """Shows the button. People sign in first: whoever knows the password owns the account."""
        link = self.query().get("link") or ""
        seen = await self.store.links.look(TokenKind.CONFIRM, link)
        if seen.used:
            return await self.confirmed()
        profile = await self.owner(seen)
        await self.allow_redirect_of(seen.target)
        self.render(
            "links/confirm.html",
            title=Phrase("Confirm your address"),
            signed_in=profile,
            email=seen.mailed_to,
            link=link,
        )

    async def post(self) -> None:
        """Confirms the address, and returns to where the person was."""
        self.check_same_origin()
        link = self.body().get("link") or ""
        target = await self.store.links.confirm(self.require_session(), link, self.visitor)
        if safe_next(target) == "/":
            return await self.confirmed()
        if safe_next(target) == ACCOUNT_PAGE:
            return self.see_done(f"{ACCOUNT_PAGE}?confirmed")
        self.see_other(safe_next(target))

    async def confirmed(self) -> None:
        """Shown after the first click and after any later one."""
        text = Phrase("Apps that can see your address now know that it’s yours.")
        await self.done(Phrase("Your address is confirmed"), text)


class SendAgainHandler(LinkPage):
    """Mails the confirmation link again."""

    async def post(self) -> None:
        """Only the newest link works. It leads on to `next`."""
        self.check_same_origin()
        target = safe_next(self.body().get("next"))
        profile = await self.store.sessions.profile(self.require_session())
        if profile.email_verified:
            return self.see_other(target if target != "/" else "/account")
        wording = self.wording(profile.preferences)
        await mails.confirmation(self.site, profile.user, profile.email, self.counted_address, target, wording=wording)
        self.sent(profile.email, Phrase("24 hours"), target if target != "/" else "/account", profile)


class ForgotHandler(LinkPage):
    """Mails the link that sets a new password."""

    async def get(self) -> None:
        """Shows the form for the address."""
        target = safe_next(self.query().get("next"))
        await self.show(target, email_for(self.store.links, target, None))

    async def show(self, target: str, email: str = "", error: str | None = None) -> None:
        """The form, with the error if there is one."""
        self.render(
            "signin/forgot.html",
            title=Phrase("Forgot your password?"),
            signed_in=await self.profile_if_known(),
            next=target,
            next_query=next_query(target),
            email=email,
            error=error,
        )

    async def post(self) -> None:
        """Gives the same answer, after the same work, for addresses with and without an account. The rest is done after
        the answer."""
        self.check_same_origin()
        params = self.body()
        typed, target = params.get("email") or "", safe_next(params.get("next"))
        try:
            email = normalise_email(typed)
        except ValueError as error:
            self.set_status(400)
            return await self.show(target, typed, reason_of(error))
        with mails.asking(self.site, self.counted_address, "reset") as room:
            await self.store.signing_in.forgot(email, self.counted_address, self.read_cookie(DEVICE_COOKIE))
            self.remember_going(target, 2 * RESET_LINK)  # a link that is mailed again lives twice as long
            work = mails.forgotten(self.site, email, self.counted_address, target, wording=self.wording())
            self.site.in_background(work, within=self.site.scatter, room=room.pop_all())
        self.sent(email, Phrase("1 hour"))


class ResetHandler(LinkPage):
    """Sets a new password with a mailed link."""

    onward = Onward("/forgot", NEW_LINK)

    async def get(self) -> None:
        """Shows the form."""
        await self.show(self.query().get("link") or "")

    async def show(self, link: str, error: str | None = None) -> None:
        """The form, with the error if there is one. Raises Refused for a link that was used or has expired."""
        seen = await self.store.links.look(TokenKind.RESET, link)
        if seen.used:
            raise Refused("invalid_request", Phrase("This link was already used. Sign in, or ask for a new link."))
        self.render(
            "links/reset.html",
            title=Phrase("New password"),
            email=seen.email,
            link=link,
            error=error,
            min_password=MIN_PASSWORD_LENGTH,
        )

    async def post(self) -> None:
        """Sets the password. Every session ends, this browser's too."""
        self.check_same_origin()
        params = self.body()
        link, password = params.get("link") or "", params.get("new_password") or ""
        seen = await self.store.links.look(TokenKind.RESET, link)
        try:
            await self.check_new_password(password, seen.mailed_to, seen.name)
        except ValueError as error:
            self.set_status(400)
            return await self.show(link, reason_of(error))
        claimed = await self.store.links.reset(link, password, self.visitor)
        mails.password_changed(self.site, seen.user, seen.warned, self.visitor, claimed=claimed)
        self.write_session(None)
        # People who read the account's mail need not wait until strangers stop guessing.
        await self.keep_device(seen.user)
        out = Phrase("Everyone who was signed in to your account is signed out. Sign in with your new password.")
        text = sentences(out, ALL_IS_GONE if claimed else FACTORS_STAY)
        # The sealed link fills in the address, which would be in logs and histories otherwise.
        target = self.going_on(seen.target)
        query = urlencode({"link": link} if target == "/" else {"next": target, "link": link})
        onward = Onward(f"/signin?{query}", Phrase("Sign in"))
        await self.done(Phrase("Your password was changed"), text, onward)
