"""/developer/apps/:client_id/credentials: the client id of an app and its secrets."""

from __future__ import annotations

from handlers.developer.apps import DeveloperPage
from store.apps.client_secrets import notes_of
from store.apps.registration import Registration
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

NOTICES = {"ended": Phrase("The secret was revoked. Requests with it are refused.")}


class CredentialsPage(DeveloperPage):
    """Shared by handlers that answer with the credentials."""

    async def show_credentials(
        self, profile: Profile, app: Registration, *, secret: str | None = None, wrong: str | None = None
    ) -> None:
        """The page. `secret` is shown only this once; `wrong`: an action that failed, and why."""
        if wrong:
            self.set_status(400)
        self.render(
            "developer/credentials.html",
            title=Phrase("Credentials of %(app)s", app=app.name),
            signed_in=profile,
            app=app,
            notes=notes_of(app.secret_notes, app.secrets),
            used=(await self.store.app_stats.of(app.client_id)).secrets_used,
            secret=secret,
            wrong=wrong,
            notice=self.notice(NOTICES),
        )


class CredentialsHandler(CredentialsPage):
    """The page."""

    async def get(self, client_id: str) -> None:
        """Shows the page."""
        await self.show_credentials(*await self.own(client_id))


class RotateHandler(CredentialsPage):
    """Makes a second secret."""

    async def post(self, client_id: str) -> None:
        """Answers with the page that shows the secret once. A repeated request is refused, because the app then has
        two."""
        self.check_same_origin()
        profile, app = await self.own(client_id)
        try:
            app, secret = await self.store.owned.rotate(self.require_session(), client_id, self.visitor)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            return await self.show_credentials(profile, app, wrong=refusal.description)
        self.tell_owner(profile, app, Phrase("A second client secret was created"))
        await self.show_credentials(profile, app, secret=secret)


class EndSecretHandler(DeveloperPage):
    """Ends one of two secrets."""

    async def post(self, client_id: str) -> None:
        """Clients with this secret are refused from now on."""
        self.check_same_origin()
        session, mark = self.require_session(), self.body().require("mark")
        profile, app = await self.own(client_id)
        await self.store.owned.drop_secret(session, client_id, mark, self.visitor)
        self.tell_owner(profile, app, Phrase("A client secret was revoked"))
        self.see_done(f"/developer/apps/{client_id}/credentials?ended")
