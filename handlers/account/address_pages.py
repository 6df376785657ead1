"""Pages that change an account's e-mail address, and the one that takes it back: /account/email."""

from __future__ import annotations

from handlers.account.link_page import NEW_LINK, LinkPage
from handlers.account.reauth_forms import GuardedPage
from handlers.core import mails
from handlers.core.page import Onward
from handlers.core.words.sentences import sentences
from store.accounts.undoing import Undo
from store.crypto.seal import TokenKind
from store.lifetimes import RESET_LINK
from store.names import normalise_email
from store.phrases import Phrase
from store.refused import Refused, SignedOut, Unproved, reason_of


class EmailHandler(GuardedPage, LinkPage):
    """Starts a change of the e-mail address."""

    async def get(self) -> None:
        """Shows the form."""
        await self.show()

    async def show(self, email: str = "", error: str | None = None, wrong: str = "") -> None:
        """The form, with the error and the field that it belongs to."""
        session = self.require_session()
        profile = await self.store.sessions.profile(session)
        factors = await self.store.factors.of(session)
        self.render(
            "account/email.html",
            title=Phrase("E-mail address"),
            signed_in=profile,
            profile=profile,
            second=factors.second or not factors.has_password,
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
        if not factors.second and factors.has_password:
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
        title = (
            Phrase("Remove this sign-in method")
            if undo.first_factor or undo.identity
            else Phrase("Take your address back")
        )
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
        if undo.first_factor or undo.identity:
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
