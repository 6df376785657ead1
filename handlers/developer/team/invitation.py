"""/developer/invitation: the link in a mail that invites somebody to the team of an app."""

from __future__ import annotations

from handlers.account.link_page import LinkPage
from handlers.core.page import Onward
from handlers.developer.team import team_mails
from handlers.developer.team.role_names import ROLE_NAMES, ROLE_WORDS
from store.apps.owners.team import Offer
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile


class InvitationHandler(LinkPage):
    """Shows an invitation to the person who is signed in, and accepts it."""

    onward = Onward("/developer/apps", Phrase("Your apps"))

    async def get(self) -> None:
        """Shows the button, or why this account can't accept."""
        link = self.query().get("link") or ""
        self.store.teams.app_of(link)  # a forged link costs no call to the store
        profile = await self.store.sessions.profile(self.require_session())
        offer = await self.offered(profile, link)
        if offer is None:
            return
        self.render(
            "links/team.html",
            title=Phrase("Join a team"),
            signed_in=profile,
            app=offer.app,
            role_key=offer.invitation.role,
            role=ROLE_NAMES[offer.invitation.role],
            role_words=ROLE_WORDS[offer.invitation.role],
            inviter=offer.inviter,
            email=offer.invitation.email,
            link=link,
            here=self.request.uri,
        )

    async def offered(self, profile: Profile, link: str) -> Offer | None:
        """The invitation, if it is for this person's address; None if the answer is written: for a member, who goes to
        the app. Raises Refused."""
        if await self.already_in(profile, link):
            return None
        try:
            offer = await self.store.teams.look(link)
        except Refused:
            if await self.already_in(profile, link):
                return None  # another click was quicker
            raise
        if offer.invitation.email != profile.email:
            self.sign_out_to = self.request.uri or "/"
            raise Refused(
                "access_denied",
                Phrase(
                    "This invitation is for %(email)s. Sign out, open the link again, and sign in to the account with "
                    "that address.",
                    email=offer.invitation.email,
                ),
            )
        return offer

    async def already_in(self, profile: Profile, link: str) -> bool:
        """Whether the person is in the team; then the answer leads to the app."""
        client_id = self.store.teams.app_of(link)
        if not await self.store.teams.is_member(profile.user, client_id):
            return False
        self.see_other(f"/developer/apps/{client_id}")
        return True

    async def post(self) -> None:
        """Joins the team. A second click leads to the app."""
        self.check_same_origin()
        link = self.body().get("link") or ""
        self.store.teams.app_of(link)
        session = self.require_session()
        profile = await self.store.sessions.profile(session)
        if await self.offered(profile, link) is None:
            return
        try:
            change = await self.store.teams.accept(session, link, self.visitor)
        except Refused:
            if await self.already_in(profile, link):
                return  # another click was quicker
            raise
        role = next(one.role for one in change.after.members if one.user == profile.user)
        line = Phrase("%(who)s joined as %(role)s", who=profile.email, role=ROLE_NAMES[role])
        apps = (change.before, change.after)
        self.site.in_background(team_mails.changed(self.site, profile, apps, [line], self.visitor))
        self.see_done(f"/developer/apps/{change.after.client_id}?joined")
