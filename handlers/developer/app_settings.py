"""/developer/apps/:client_id/settings: the form of an app, its verification, and its switch."""

from __future__ import annotations

from dataclasses import replace

from handlers.core.scopes import SCOPE_WORDS
from handlers.developer.app_changes import changed_lines, changes_keys, switched
from handlers.developer.app_form import AppForm, not_allowed
from handlers.developer.apps import DeveloperPage
from handlers.developer.overview import OverviewPage
from store.apps.apis import check_signed
from store.apps.domains import PATH, provable
from store.apps.lookalikes import mistaken_for
from store.apps.registration import Registration
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

NOTICES = {
    "saved": Phrase("Saved."),
    "off": Phrase("The app is switched off. Nobody can connect it, and its tokens are refused."),
    "on": Phrase("The app is switched on. Tokens that haven’t expired work again."),
    "verified": Phrase("Domain verified."),
    "logo": Phrase("Logo changed."),
    "logo-removed": Phrase("Logo removed."),
}


class SettingsPage(DeveloperPage):
    """Shared by handlers that answer with the settings."""

    async def show_settings(
        self,
        profile: Profile,
        app: Registration,
        form: AppForm | None = None,
        *,
        domain: str | None = None,
        wrong_domain: str | None = None,
        wrong_logo: str | None = None,
        logo_url: str = "",
    ) -> None:
        """The page. `domain` was typed; `wrong_domain` is why it is not verified. `wrong_logo` is why the logo was not
        changed, perhaps to the one at `logo_url`."""
        if wrong_domain or (form and form.errors):
            self.set_status(400)
        self.render(
            "developer/settings.html",
            title=Phrase("Settings of %(app)s", app=app.name),
            signed_in=profile,
            app=app,
            form=form or AppForm.of(app),
            words=SCOPE_WORDS,
            apis=await self.offered(app),
            kind_open=False,
            must_pkce=self.site.require_pkce,
            domains=provable(app),
            domain=app.domain if domain is None else domain,
            wrong_domain=wrong_domain,
            wrong_logo=wrong_logo,
            logo_url=logo_url,
            proof_path=PATH,
            brand=mistaken_for(app.name, self.site.brand.name),
            wrong=None,
            notice=self.notice(NOTICES),
        )


class SettingsHandler(SettingsPage):
    """The page."""

    async def get(self, client_id: str) -> None:
        """Shows the page."""
        await self.show_settings(*await self.own(client_id))


class OwnedAppHandler(SettingsPage, OverviewPage):
    """The overview, and the form of the settings."""

    async def get(self, client_id: str) -> None:
        """Shows the overview."""
        self.show_overview(*await self.own(client_id))

    async def post(self, client_id: str) -> None:
        """Changes the app. Shows errors in their fields."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        profile, app = await self.own(client_id)
        form = AppForm.read(params, app.public, self.site, await self.offered(app), app)
        if not form.errors:
            event = "app_keys_changed" if changes_keys(app, form.fields()) else "app_changed"
            try:
                check_signed(replace(app, api_scopes=form.api_scopes), await self.store.apis.every())
                app = await self.store.owned.update(session, client_id, event, self.visitor, **form.fields())
            except ValueError as error:  # rules that the operator set for the app
                form.errors["whole"] = [not_allowed(error)]
        if form.errors:
            return await self.show_settings(profile, app, form)
        self.tell_owner(profile, app, *changed_lines(app, form.fields()))
        self.see_done(f"/developer/apps/{client_id}/settings?saved")


class StatusHandler(DeveloperPage):
    """Disables and enables an app."""

    async def post(self, client_id: str) -> None:
        """While the app is off, every token of it is refused."""
        self.check_same_origin()
        session, status = self.require_session(), self.body().require("status")
        if status not in ("active", "off"):
            raise Refused("invalid_request", "status is active or off.")
        event = "app_enabled" if status == "active" else "app_disabled"
        profile, _ = await self.own(client_id)
        app = await self.store.owned.update(session, client_id, event, self.visitor, status=status)
        if status != app.status:
            self.tell_owner(profile, app, switched(status))
        self.see_done(f"/developer/apps/{client_id}/settings?{'on' if status == 'active' else 'off'}")
