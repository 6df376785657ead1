"""What pages of mailed links share.

Opening a link changes nothing, because mail scanners open links too: it shows a page with a button.
"""

from __future__ import annotations

from handlers.account.signin import SignInPage
from handlers.core.page import ACCOUNT, Onward
from store.accounts.links import LinkDetails
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

NEW_LINK = Phrase("Send a new link")


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
