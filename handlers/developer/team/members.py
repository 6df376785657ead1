"""/developer/apps/:client_id/team: the people of an app, their roles, and open invitations."""

from __future__ import annotations

from handlers.core import mails
from handlers.developer.apps import DeveloperPage
from handlers.developer.team import team_mails
from handlers.developer.team.role_names import ROLE_NAMES, ROLE_WORDS
from store.apps.owners.roles import ROLES, Role, check_role
from store.apps.owners.team import Team, TeamChange
from store.names import normalise_email
from store.phrases import Phrase
from store.refused import Refused, reason_of

NOTICES = {
    "invited": Phrase("Invitation sent. It works for 7 days."),
    "written": Phrase("Invitation written. This server isn’t set up to send e-mail, so its operator has it."),
    "withdrawn": Phrase("Invitation withdrawn."),
    "role": Phrase("Role changed."),
    "removed": Phrase("Removed from the team."),
}


class MembersPage(DeveloperPage):
    """Shared by handlers that answer with the team."""

    async def show_team(
        self, team: Team, *, email: str = "", role: Role = "developer", wrong_email: str = "", wrong: str = ""
    ) -> None:
        """The page. `email` and `role` were typed; `wrong_email` is why the address was refused, `wrong` why another
        action failed."""
        if wrong_email or wrong:
            self.set_status(400)
        self.render(
            "developer/team.html",
            title=Phrase("Team of %(app)s", app=team.app.name),
            signed_in=team.profile,
            app=team.app,
            people=team.people,
            invitations=team.invitations,
            roles=ROLES,
            role_names=ROLE_NAMES,
            role_words=ROLE_WORDS,
            email=email,
            role_here=role,
            wrong_email=wrong_email,
            wrong=wrong,
            notice=self.notice(NOTICES),
        )

    async def team(self, client_id: str) -> Team:
        """The team, if the person's role allows this request. Raises SignedOut, Refused."""
        await self.own(client_id)
        return await self.store.teams.read(self.require_session(), client_id)

    def tell_team(self, team: Team, change: TeamChange, line: Phrase) -> None:
        """Mails the change to every owner before and after, to the person concerned, and to whoever made the change."""
        also = [change.person] if change.person else []
        work = team_mails.changed(self.site, team.profile, (change.before, change.after), [line], self.visitor, also)
        self.site.in_background(work)


class TeamHandler(MembersPage):
    """The page, and the form that invites somebody."""

    async def get(self, client_id: str) -> None:
        """Shows the team."""
        await self.show_team(await self.team(client_id))

    async def post(self, client_id: str) -> None:
        """Mails an invitation. The answer does not tell whether the address has an account."""
        self.check_same_origin()
        team, params = await self.team(client_id), self.body()
        typed, role = params.get("email") or "", check_role(params.get("role") or "")
        try:
            email = normalise_email(typed)
        except ValueError as error:
            return await self.show_team(team, email=typed, role=role, wrong_email=reason_of(error))
        try:
            with mails.asking(self.site, self.counted_address, "team") as room:
                await self.store.limits.invite_member(team.profile.user, self.counted_address, email)
                link = await self.store.teams.invite(self.require_session(), client_id, email, role, self.visitor)
                work = team_mails.invite(self.site, team, email, link, self.counted_address)
                self.site.in_background(work, room=room.pop_all())
        except Refused as refusal:
            if refusal.code not in ("invalid_request", "access_denied") or self.wants_json():
                raise
            return await self.show_team(team, email=typed, role=role, wrong_email=refusal.description)
        line = Phrase("%(email)s invited as %(role)s", email=email, role=ROLE_NAMES[role])
        self.site.in_background(team_mails.changed(self.site, team.profile, (team.app, team.app), [line], self.visitor))
        self.see_done(f"/developer/apps/{client_id}/team?{'invited' if self.site.mail.confirms else 'written'}")


class WithdrawHandler(MembersPage):
    """Withdraws an invitation."""

    async def post(self, client_id: str) -> None:
        """The link in the mail stops working."""
        self.check_same_origin()
        team, invitation = await self.team(client_id), self.body().require("invitation")
        email = await self.store.teams.withdraw(self.require_session(), client_id, invitation, self.visitor)
        if not email:
            return await self.show_team(team, wrong=Phrase("That invitation is already over."))
        self.see_done(f"/developer/apps/{client_id}/team?withdrawn")


class RoleHandler(MembersPage):
    """Changes the role of a member."""

    async def post(self, client_id: str) -> None:
        """The new role counts at once."""
        self.check_same_origin()
        team, params = await self.team(client_id), self.body()
        user, role = params.require("member"), check_role(params.get("role") or "")
        try:
            change = await self.store.teams.set_role(self.require_session(), client_id, user, role, self.visitor)
        except Refused as refusal:
            if refusal.code not in ("invalid_request", "access_denied") or self.wants_json():
                raise
            return await self.show_team(team, wrong=refusal.description)
        if change.changed:
            line = Phrase("%(who)s is now %(role)s", who=team_mails.called(change.person), role=ROLE_NAMES[role])
            self.tell_team(team, change, line)
        self.see_done(f"/developer/apps/{client_id}/team?role")


class RemoveHandler(MembersPage):
    """Removes a member."""

    async def post(self, client_id: str) -> None:
        """The member has no access from now on."""
        self.check_same_origin()
        team, user = await self.team(client_id), self.body().require("member")
        try:
            change = await self.store.teams.remove(self.require_session(), client_id, user, self.visitor)
        except Refused as refusal:
            if refusal.code not in ("invalid_request", "access_denied") or self.wants_json():
                raise
            return await self.show_team(team, wrong=refusal.description)
        self.tell_team(team, change, Phrase("%(who)s removed", who=team_mails.called(change.person)))
        if user == team.profile.user:
            return self.see_done("/developer/apps?left")
        self.see_done(f"/developer/apps/{client_id}/team?removed")


class LeaveTeamHandler(MembersPage):
    """Takes the person who is signed in out of the team."""

    async def post(self, client_id: str) -> None:
        """The app goes on without this person."""
        self.check_same_origin()
        team = await self.team(client_id)
        try:
            change = await self.store.teams.leave(self.require_session(), client_id, self.visitor)
        except Refused as refusal:
            if refusal.code not in ("invalid_request", "access_denied") or self.wants_json():
                raise
            return await self.show_team(team, wrong=refusal.description)
        self.tell_team(team, change, Phrase("%(who)s left", who=team_mails.called(change.person)))
        self.see_done("/developer/apps?left")
