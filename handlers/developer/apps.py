"""/developer: people's own apps."""

from __future__ import annotations

import secrets
from types import SimpleNamespace

from handlers.account.reauth_forms import GuardedPage
from handlers.charts.csv_file import MEDIA_TYPE
from handlers.core import mails
from handlers.core.params import once, parse_pairs
from handlers.core.scopes import SCOPE_WORDS
from handlers.developer.api_boxes import ApiBoxes, api_boxes, scopes_of
from handlers.developer.app_changes import changed_lines, changes_keys, switched
from handlers.developer.app_form import AppForm
from handlers.developer.snippets import snippets_of
from handlers.developer.usage import RANGES, days_asked, usage_charts, usage_file
from store.apps.client_secrets import secret_mark
from store.apps.domains import PATH, provable
from store.apps.lookalikes import mistaken_for
from store.apps.registration import Registration
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

NOTICES = {
    "saved": "Saved. It counts from now on.",
    "again": "This form was sent before: the app is registered already. Its secret was shown then and is not shown "
    "again; if you have lost it, make a new one below.",
    "off": "The app is switched off: it gets no new access, and its tokens are refused.",
    "on": "The app is switched on. Tokens that have not expired work again.",
    "deleted": "The app is deleted. People can see and download what it kept for them for 30 days.",
    "verified": "Domain verified.",
    "logo": Phrase("Logo changed."),
    "logo-removed": Phrase("Logo removed."),
    "ended": "That secret is refused from now on.",
}


class DeveloperPage(GuardedPage):
    """Shared by the pages of the portal."""

    def tell_owner(self, profile: Profile, app: Registration, *lines: str) -> None:
        """Mails the changes to the owner. `app` is the registration before the change."""
        mails.app_changed(self.site, profile, app, list(lines), self.visitor)

    async def offered(self, app: Registration | None = None) -> list[ApiBoxes]:
        """The scopes of APIs that this app, or a new one, may have."""
        return api_boxes(await self.store.apis.every(), scopes_of(app), self.require_session().user)

    def show_form(self, profile: Profile, form: AppForm, apis: list[ApiBoxes]) -> None:
        """The form for a new app."""
        if form.errors:
            self.set_status(400)
        self.render(
            "developer/register.html",
            title="Register an app",
            signed_in=profile,
            form=form,
            words=SCOPE_WORDS,
            apis=apis,
            kind_open=True,
            must_pkce=self.site.require_pkce,
        )

    async def show_app(
        self,
        profile: Profile,
        app: Registration,
        form: AppForm | None = None,
        secret: str | None = None,
        fresh: bool = False,
        wrong: str | None = None,
        domain: str | None = None,
        wrong_domain: str | None = None,
        wrong_logo: str | None = None,
        logo_url: str = "",
    ) -> None:
        """The page of an app. `secret` is shown only this once. `fresh`: it was just registered. `wrong`: an action
        that failed, and why. `domain` was typed; `wrong_domain` is why it is not verified. `wrong_logo` is why the
        logo was not changed, perhaps to the one at `logo_url`."""
        if wrong or wrong_domain or (form and form.errors):
            self.set_status(400)
        figures = await self.store.app_stats.of(app.client_id)
        days = days_asked(once(parse_pairs(self.request.query)).get("days"))
        sums = SimpleNamespace(
            calls=sum(day.calls for day in figures.days),
            limited=sum(day.limited for day in figures.days),
            spent=sum(day.spent for day in figures.days),
        )
        self.render(
            "developer/app.html",
            title=app.name,
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
            secret=secret,
            fresh=fresh,
            wrong=wrong,
            notice=self.notice(NOTICES),
            marks=[secret_mark(digest) for digest in app.secrets],
            snippets=snippets_of(app, self.site.base_url, secret),
            figures=figures,
            charts=usage_charts(figures.days[-days:], self.wording(profile.preferences)),
            range_here=days,
            ranges=[(choice, f"/developer/apps/{app.client_id}?days={choice}#numbers") for choice in RANGES],
            csv=f"/developer/apps/{app.client_id}/usage.csv",
            sums=sums,
        )

    def may_register(self) -> bool:
        """Whether this person may register apps."""
        return self.site.app_registration == "everybody"


class OwnedAppsHandler(DeveloperPage):
    """The list of apps."""

    async def get(self) -> None:
        """Shows the person's own apps."""
        owned = await self.store.owned.list(self.require_session())
        self.render(
            "developer/apps.html",
            title="Your apps",
            signed_in=owned.profile,
            owned=owned,
            open=self.may_register(),
            full=len(owned) >= self.site.apps_per_person,
            most=self.site.apps_per_person,
            most_days=self.store.tokens.refresh_days,
            apis=await self.store.owned_apis.of(owned.profile.user),
            notice=self.notice(NOTICES),
        )


class RegisterHandler(DeveloperPage):
    """Registers an app."""

    async def prepare(self) -> None:  # type: ignore[override]  # Tornado awaits it
        """Raises Refused("access_denied") if only the operator registers apps."""
        await super().prepare()
        if not self.may_register():
            raise Refused("access_denied", "Apps are registered by the operator of this server. Ask them for yours.")

    async def get(self) -> None:
        """Shows the form."""
        profile = await self.store.sessions.profile(self.require_session())
        self.show_form(profile, AppForm(nonce=secrets.token_urlsafe(16)), await self.offered())

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
            raise Refused("invalid_request", "The form is incomplete. Open it again.")
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
        await self.show_app(profile, made.registration, secret=made.secret, fresh=True)


class OwnedAppHandler(DeveloperPage):
    """The page of one app."""

    async def get(self, client_id: str) -> None:
        """Shows the page."""
        await self.show_app(*await self.store.owned.find(self.require_session(), client_id))

    async def post(self, client_id: str) -> None:
        """Changes the app. Shows errors in their fields."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        profile, app = await self.store.owned.find(session, client_id)
        form = AppForm.read(params, app.public, self.site, await self.offered(app), app)
        if not form.errors:
            event = "app_keys_changed" if changes_keys(app, form.fields()) else "app_changed"
            try:
                app = await self.store.owned.update(session, client_id, event, self.visitor, **form.fields())
            except ValueError as error:
                form.errors["whole"] = [f"This can’t be: {error}."]  # rules that the operator set for the app
        if form.errors:
            return await self.show_app(profile, app, form)
        self.tell_owner(profile, app, *changed_lines(app, form.fields()))
        self.see_done(f"/developer/apps/{client_id}?saved")


class UsageFileHandler(DeveloperPage):
    """The figures of an app as a CSV file."""

    async def get(self, client_id: str) -> None:
        """Sends a row for each of the last 30 days."""
        _, app = await self.store.owned.find(self.require_session(), client_id)
        figures = await self.store.app_stats.of(app.client_id)
        self.set_header("Content-Type", MEDIA_TYPE)
        self.set_header("Content-Disposition", f'attachment; filename="{app.client_id}-{figures.days[-1].day}.csv"')
        self.finish(usage_file(figures))


class RotateHandler(DeveloperPage):
    """Makes a second secret."""

    async def post(self, client_id: str) -> None:
        """Answers with the page that shows the secret once. A repeated request is refused, because the app then has
        two."""
        self.check_same_origin()
        session = self.require_session()
        profile, app = await self.store.owned.find(session, client_id)
        try:
            app, secret = await self.store.owned.rotate(session, client_id, self.visitor)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            return await self.show_app(profile, app, wrong=refusal.description)
        self.tell_owner(profile, app, Phrase("A second client secret was created"))
        await self.show_app(profile, app, secret=secret)


class EndSecretHandler(DeveloperPage):
    """Ends one of two secrets."""

    async def post(self, client_id: str) -> None:
        """Clients with this secret are refused from now on."""
        self.check_same_origin()
        session, mark = self.require_session(), self.body().require("mark")
        profile, app = await self.store.owned.find(session, client_id)
        await self.store.owned.drop_secret(session, client_id, mark, self.visitor)
        self.tell_owner(profile, app, Phrase("A client secret was ended"))
        self.see_done(f"/developer/apps/{client_id}?ended")


class StatusHandler(DeveloperPage):
    """Disables and enables an app."""

    async def post(self, client_id: str) -> None:
        """While the app is off, every token of it is refused."""
        self.check_same_origin()
        session, status = self.require_session(), self.body().require("status")
        if status not in ("active", "off"):
            raise Refused("invalid_request", "status is active or off.")
        event = "app_enabled" if status == "active" else "app_disabled"
        profile, _ = await self.store.owned.find(session, client_id)
        app = await self.store.owned.update(session, client_id, event, self.visitor, status=status)
        if status != app.status:
            self.tell_owner(profile, app, switched(status))
        self.see_done(f"/developer/apps/{client_id}?{'on' if status == 'active' else 'off'}")
