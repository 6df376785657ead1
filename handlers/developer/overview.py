"""/developer/apps/:client_id: the overview of an app, which a registration also ends on."""

from __future__ import annotations

from typing import NamedTuple

from handlers.developer.app_form import AppForm
from handlers.developer.apps import DeveloperPage, FormPage
from handlers.developer.snippets import snippets_of
from store.apps.registration import Registration
from store.phrases import Phrase, plural
from store.refused import Refused
from store.results import Profile

NOTICES = {
    "joined": Phrase("You joined the team of this app."),
    "again": Phrase(
        "You sent this form before, so the app is already registered. We showed its secret then and can’t show it "
        "again. If you lost it, create a new one under Credentials."
    ),
}


class Endpoint(NamedTuple):
    """An address that an app's developer needs, and what it is for."""

    label: str
    address: str


def endpoints_of(base_url: str) -> tuple[Endpoint, ...]:
    """The addresses of this server that client libraries are set to."""
    return (
        Endpoint(Phrase("Issuer"), base_url),
        Endpoint(Phrase("Discovery document"), f"{base_url}/.well-known/openid-configuration"),
        Endpoint(Phrase("Authorization"), f"{base_url}/oauth/authorize"),
        Endpoint(Phrase("Token"), f"{base_url}/api/oauth/token"),
        Endpoint(Phrase("Userinfo"), f"{base_url}/api/oauth/userinfo"),
        Endpoint(Phrase("Signing keys (JWKS)"), f"{base_url}/.well-known/jwks.json"),
        Endpoint(Phrase("Pushed authorization requests (PAR)"), f"{base_url}/api/oauth/par"),
        Endpoint(Phrase("Sign-out"), f"{base_url}/oauth/logout"),
        Endpoint(Phrase("API base"), f"{base_url}/api/v1"),
    )


def proof_of(app: Registration) -> Phrase:
    """How an app proves itself, in a few words."""
    if app.public:
        return Phrase("Nothing: it always uses PKCE.")
    if not app.has_secret:
        return Phrase("Its own key.")
    if not app.secrets:
        return Phrase("A client secret, which doesn’t exist yet.")
    return plural("A client secret.", "%(count)s client secrets.", len(app.secrets))


class OverviewPage(DeveloperPage):
    """Shared by handlers that answer with the overview."""

    def show_overview(
        self, profile: Profile, app: Registration, *, secret: str | None = None, fresh: bool = False
    ) -> None:
        """The page. `secret` is shown only this once. `fresh`: the app was just registered."""
        model = next((one.model_id for one in self.site.models.all()), "")
        self.render(
            "developer/overview.html",
            title=app.name,
            signed_in=profile,
            app=app,
            proof=proof_of(app),
            endpoints=endpoints_of(self.site.base_url),
            snippets=snippets_of(app, self.site.base_url, secret, model),
            secret=secret,
            fresh=fresh,
            wrong=None,
            notice=self.notice(NOTICES),
        )


class RegisterHandler(FormPage, OverviewPage):
    """Registers an app."""

    async def post(self) -> None:
        """Answers with the app's page, which shows the secret once. If the browser sends the form again, as on a
        reload, nothing is registered and no secret is shown."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        kind = params.get("kind") or "confidential"
        if kind not in ("confidential", "public"):
            raise Refused("invalid_request", "kind is confidential or public.")
        profile = await self.store.sessions.profile(session)
        apis = await self.offered()
        form = AppForm.read(params, kind == "public", self.site, apis)
        if not 16 <= len(form.nonce) <= 64:
            raise Refused("invalid_request", Phrase("The form is incomplete. Open it again."))
        if form.errors:
            return self.show_form(profile, form, apis)
        made = await self.store.owned.register(
            session,
            form.nonce,
            self.visitor,
            most=self.site.apps_per_person,
            public=form.public,
            **form.fields(),
        )
        if made.again:
            return self.see_done(f"/developer/apps/{made.registration.client_id}?again")
        self.show_overview(profile, made.registration, secret=made.secret, fresh=True)
