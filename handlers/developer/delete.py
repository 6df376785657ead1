"""/developer/apps/:client_id/delete: its owner confirms and deletes an app."""

from __future__ import annotations

from handlers.account.reauth import ReauthPage
from handlers.core import mails
from handlers.developer.team import team_mails
from handlers.developer.team.acts import TeamPage
from store.accounts.signin.reauth import ReauthFailed
from store.apps.owners.owner_deletion import OwnerDeletionForm
from store.phrases import Phrase


class DeleteAppHandler(ReauthPage, TeamPage):
    """The page on which an owner deletes an app."""

    async def get(self, client_id: str) -> None:
        """Says what ends, and asks."""
        await self.show(client_id)

    async def show(self, client_id: str, *, typed: str = "", errors: dict[str, str] | None = None) -> None:
        """The page, with what was typed and, by the part of the form, what is wrong with it."""
        session = self.require_session()
        profile, app = await self.own(client_id)
        factors = await self.store.factors.of(session)
        self.render(
            "developer/delete.html",
            title=Phrase("Delete %(name)s", name=app.name),
            signed_in=profile,
            app=app,
            typed=typed,
            errors=errors or {},
            **self.ways_to_confirm(factors),
        )

    async def post(self, client_id: str) -> None:
        """Deletes the app: its tokens are dead when this answers, and its documents live 30 days more. For an app
        whose deletion broke off, which was confirmed before, the deletion continues."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        registration, left_by = await self.store.apps.fresh(client_id)
        if registration is None and left_by == session.user:
            await self.store.owned.delete(session, client_id, self.visitor)
            return self.finish_deletion(client_id)
        await self.own(client_id)
        typed = OwnerDeletionForm(params.get("confirm") or "", params.get("password") or "", params.get("code") or "")
        ending = self.store.app_ending
        try:
            if params.get("credential"):
                shown = self.read_passkey(params)
                ended = await ending.with_passkey(session, client_id, typed.name, *shown, self.visitor)
            else:
                ended = await ending.with_password(session, client_id, typed, self.visitor)
        except ReauthFailed as wrong:
            mails.codes_guessed(self.site, session.user, wrong.notice, self.visitor)
            self.set_status(400)
            return await self.show(client_id, typed=typed.name, errors={wrong.part: wrong.text})
        self.write_session(ended.cookie)
        mails.app_deleted(self.site, session.user, ended.warned, ended.registration.name, client_id, self.visitor)
        others = team_mails.deleted(self.site, session.user, ended.registration, self.visitor)
        self.site.in_background(others)
        self.finish_deletion(client_id)

    def finish_deletion(self, client_id: str) -> None:
        """The rest runs in the background; shutdown waits for it."""
        self.site.in_background(self.store.apps.finish_deletion(client_id))
        self.see_done("/developer/apps?deleted")


class DeleteAppOptionsHandler(ReauthPage, TeamPage):
    """WebAuthn options for a passkey that deletes the app."""

    async def post(self, client_id: str) -> None:
        """One of this person's passkeys."""
        self.check_same_origin()
        await self.own(client_id)
        self.ask_passkey(*await self.store.app_ending.challenge(self.require_session(), client_id))
