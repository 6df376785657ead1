"""Mailed links and the forms that request them: /confirm, /forgot, /reset, /account/email.

Opening a link changes nothing, because mail scanners open links too: it shows a page with a button.
"""

from __future__ import annotations

from handlers.account.reauth_forms import GuardedPage
from handlers.account.signin import SignInPage
from handlers.core import mails
from handlers.core.base import DEVICE_COOKIE
from handlers.core.page import ACCOUNT, Onward, next_query, safe_next
from handlers.core.words.sentences import sentences
from store.accounts.links import LinkDetails
from store.accounts.undoing import Undo
from store.crypto.passwords import MIN_PASSWORD_LENGTH
from store.crypto.seal import TokenKind
from store.lifetimes import RESET_LINK
from store.names import normalise_email
from store.phrases import Phrase
from store.refused import Refused, SignedOut, Unproved, reason_of
from store.results import Profile

NEW_LINK = Phrase("Send a new link")

FACTORS_STAY = Phrase(
    "It doesn’t remove any passkey or authenticator app. If someone else may have added one, remove it under Security."
)
ALL_IS_GONE = Phrase(
    "Nobody had confirmed this e-mail address before. So we removed all passkeys, the authenticator app and recovery "
    "codes, and disconnected all apps. What apps store for you is deleted in 30 days, unless you allow those apps "
    "again."
)


class LinkPage(SignInPage):
    """A page whose address may contain a powerful link, which must not leak from here."""

    def set_default_headers(self) -> None:
        """Sends only the origin as referrer. Without any, browsers send forms with `Origin: null`, as other sites can
        too."""
        super().set_default_headers()
        self.set_header("Referrer-Policy", "strict-origin")

    async def done(self, heading: str, text: str, onward: Onward = ACCOUNT) -> None:
        """Says what was done, with a link to the next page."""
        signed_in = await self.profile()
        self.render("links/done.html", title=heading, heading=heading, text=text, onward=onward, signed_in=signed_in)

    def sent(self, email: str, lasts: str, onward: str = "", signed_in: Profile | None = None) -> None:
        """Says that a mail is on its way. `onward` is the next page."""
        self.render(
            "links/mail_sent.html",
            title=Phrase("Check your e-mail"),
            email=email,
            lasts=lasts,
            onward=onward,
            mail_reaches_people=self.site.mail.confirms,
            if_account=signed_in is None,
            signed_in=signed_in,
        )

    async def owner(self, seen: LinkDetails) -> Profile:
        """The person that the link is for, who must be signed in. Raises SignedOut, Refused("access_denied")."""
        profile = await self.store.sessions.profile(self.require_session())
        if profile.user != seen.user:
            self.sign_out_to = self.request.uri or "/"
            raise Refused(
                "access_denied",
                Phrase(
                    "This link is for a different account, not %(email)s. Sign out, open the link again, and sign in "
                    "to that account.",
                    email=profile.email,
                ),
            )
        return profile


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
        await self.show(safe_next(self.query().get("next")))

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
        onward = Onward(f"/signin{next_query(self.going_on(seen.target))}", Phrase("Sign in"))
        await self.done(Phrase("Your password was changed"), text, onward)


class EmailHandler(GuardedPage, LinkPage):
    """Starts a change of the e-mail address."""

    async def get(self) -> None:
        """Shows the form."""
        await self.show()

    async def show(self, email: str = "", error: str | None = None, wrong: str = "") -> None:
        """The form, with the error and the field that it belongs to."""
        session = self.require_session()
        profile = await self.store.sessions.profile(session)
        self.render(
            "account/email.html",
            title=Phrase("E-mail address"),
            signed_in=profile,
            profile=profile,
            second=(await self.store.factors.of(session)).second,
            email=email,
            error=error,
            wrong=wrong,
        )

    async def post(self) -> None:
        """Mails a link to the new address if the password is right, or the second step was confirmed. The answer
        doesn't reveal whether the address has another account."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        typed, password = params.get("email") or "", params.get("current_password") or ""
        profile = await self.store.sessions.profile(session)
        try:
            new = normalise_email(typed)
            if new == profile.email:
                raise ValueError(Phrase("That's already your address."))
        except ValueError as error:
            self.set_status(400)
            return await self.show(typed, reason_of(error), "email")
        verified = b""
        factors = await self.store.factors.of(session)
        if not factors.second:
            found = await self.store.reauth.check_password(session, profile.email, password, self.visitor)
            if found is None:
                self.set_status(400)
                return await self.show(typed, Phrase("The current password is incorrect."), "current")
            verified = found.password
        with mails.asking(self.site, self.counted_address, "change") as room:
            await self.store.limits.change_mail(self.counted_address, new)
            try:
                link = await self.store.links.to_change(
                    session, profile.email, new, verified, self.visitor, mailed=self.site.mail.confirms
                )
            except (Refused, SignedOut, Unproved):
                await self.store.limits.give_back_change_mail(self.counted_address, new)
                raise
            work = mails.change(self.site, session.user, link, self.counted_address, self.wording(profile.preferences))
            self.site.in_background(work, within=self.site.scatter, room=room.pop_all())
        self.sent(new, Phrase("1 hour"), "/account", profile)


class ChangeHandler(LinkPage):
    """Changes the address with a mailed link."""

    onward = Onward("/account/email", NEW_LINK)

    async def get(self) -> None:
        """Shows the button to a person who is signed in."""
        link = self.query().get("link") or ""
        seen = await self.store.links.look(TokenKind.CHANGE, link)
        profile = await self.owner(seen)
        if seen.used and seen.email == seen.mailed_to:
            return await self.changed(seen.mailed_to)
        title = Phrase("Change your address")
        self.render(
            "links/change.html", title=title, signed_in=profile, old=profile.email, new=seen.mailed_to, link=link
        )

    async def post(self) -> None:
        """Changes the address, and notifies the old one."""
        self.check_same_origin()
        session, link = self.require_session(), self.body().get("link") or ""
        await self.store.sessions.profile(session)  # raises SignedOut before an address is reserved
        with mails.undoable(self.site, session.user, "address_changed", self.visitor):
            change = await self.store.links.change(session, link, self.visitor)
            if not change.again:
                mails.address_changed(self.site, session.user, change, self.visitor)
        await self.changed(change.new)

    async def changed(self, email: str) -> None:
        """Shown after the first click and after any later one."""
        text = Phrase("The address of your account is now %(email)s. Use it to sign in.", email=email)
        await self.done(Phrase("Your address was changed"), text)


class UndoHandler(LinkPage):
    """Takes an account back with the link mailed after a change of address or a first second step."""

    async def get(self) -> None:
        """Shows the button to anybody with the link: whoever changed the address may have changed the password too."""
        link = self.query().get("link") or ""
        undo = await self.store.undoing.look(link)
        if undo.used:
            return await self.undone(undo)
        title = Phrase("Remove this sign-in method") if undo.first_factor else Phrase("Take your address back")
        self.render("links/undo.html", title=title, undo=undo, link=link)

    async def post(self) -> None:
        """Takes the account back, sends notices, and mails a link that sets a new password."""
        self.check_same_origin()
        undo = await self.store.undoing.undo(self.body().get("link") or "", self.visitor)
        if not undo.used:
            mails.taken_back(self.site, undo, self.visitor)
            self.remember_going("/account/security", 2 * RESET_LINK)
            reset = mails.forgotten(self.site, undo.old, "", "/account/security", self.visitor.address, self.wording())
            self.site.in_background(reset, within=self.site.scatter)
        self.write_session(None)
        await self.undone(undo)

    async def undone(self, undo: Undo) -> None:
        """Shown after the first click and after any later one."""
        email = undo.new if undo.used else undo.old
        title = Phrase("Your address is restored")
        text: str = Phrase("The address of your account is %(email)s again.", email=email)
        if undo.first_factor:
            title = Phrase("The sign-in method was removed")
            text = Phrase("The address of your account is %(email)s.", email=email)
        text = sentences(
            text,
            Phrase(
                "Everyone is signed out, and the password no longer works. We e-mailed you a link to choose a new one."
            ),
            Phrase("After you sign in, check your passkeys, your apps, and your activity under Security."),
        )
        if undo.own:
            off = Phrase(
                "Your own apps that were changed in the meantime are switched off or lost a secret: %(apps)s. The "
                "e-mail says what to check.",
                apps=", ".join(sorted(undo.own)),
            )
            text = sentences(text, off)
        await self.done(title, text, Onward("/forgot", Phrase("Send the link again")))
