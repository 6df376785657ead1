"""/developer/apis: APIs of the people to whom the operator gave them."""

from __future__ import annotations

from handlers.account.reauth_forms import GuardedPage
from handlers.core import mails
from handlers.core.lists.paging import part_of
from handlers.developer.api_form import ApiForm, changed_lines
from handlers.developer.app_changes import switched
from store.apps.api_record import DEFAULT_LIFETIME, ApiRegistration
from store.apps.client_secrets import notes_of
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

PAGE = 15
"""APIs, and apps of an API, on a page."""
NOTICES = {
    "saved": Phrase("Saved. Every server process applies it within five seconds."),
    "off": Phrase("The API is switched off. Apps get no tokens for it, and it can’t ask us about tokens."),
    "on": Phrase("The API is switched on. Tokens that haven’t expired work again."),
    "deleted": Phrase(
        "The API was deleted. Apps can’t get new tokens for it, and we no longer confirm the ones they have."
    ),
    "ended": Phrase("The secret was revoked. Requests with it are refused."),
}


class ApiPage(GuardedPage):
    """Shared by the pages of an API. The script copies values."""

    uses_scripts = True

    def tell_owner(self, profile: Profile, api: ApiRegistration, *lines: str) -> None:
        """Mails the changes to the owner. `api` is the registration before the change."""
        mails.api_changed(self.site, profile, api, list(lines), self.visitor)

    async def show_api(
        self,
        profile: Profile,
        api: ApiRegistration,
        form: ApiForm | None = None,
        secret: str | None = None,
        wrong: str | None = None,
    ) -> None:
        """The page of an API. `secret` is shown only this once; `wrong`: an action that failed, and why."""
        if wrong or (form and form.errors):
            self.set_status(400)
        using, at = await self.store.owned_apis.apps_at(api), f"/developer/apis/{api.client_id}"
        self.render(
            "developer/api.html",
            title=api.name,
            signed_in=profile,
            api=api,
            form=form or ApiForm.of(api),
            using=using,
            apps=part_of(using.apps, PAGE, self.page_asked("apps"), at, "apps", "using"),
            base_url=self.site.base_url,
            default_lifetime=DEFAULT_LIFETIME,
            secret=secret,
            wrong=wrong,
            notice=self.notice(NOTICES),
            notes=notes_of(api.secret_notes, api.secrets),
            used=None,
        )


class OwnedApisHandler(ApiPage):
    """The list of APIs."""

    async def get(self) -> None:
        """Shows the person's own APIs."""
        profile, apis = await self.store.owned_apis.list(self.require_session())
        self.render(
            "developer/apis.html",
            title=Phrase("Your APIs"),
            signed_in=profile,
            apis=part_of(apis, PAGE, self.page_asked(), "/developer/apis"),
            notice=self.notice(NOTICES),
        )


class OwnedApiHandler(ApiPage):
    """The page of one API."""

    async def get(self, client_id: str) -> None:
        """Shows the page."""
        await self.show_api(*await self.store.owned_apis.find(self.require_session(), client_id))

    async def post(self, client_id: str) -> None:
        """Changes the API. Shows errors in their fields."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        profile, api = await self.store.owned_apis.find(session, client_id)
        form = ApiForm.read(params, api)
        if form.errors:
            return await self.show_api(profile, api, form)
        fields = form.fields()
        api = await self.store.owned_apis.update(session, client_id, "api_changed", self.visitor, **fields)
        self.tell_owner(profile, api, *changed_lines(api, fields))
        self.see_done(f"/developer/apis/{client_id}?saved")


class RotateApiHandler(ApiPage):
    """Makes a second secret."""

    async def post(self, client_id: str) -> None:
        """Answers with the page that shows the secret once. A repeated request is refused, because the API then has
        two."""
        self.check_same_origin()
        session = self.require_session()
        profile, api = await self.store.owned_apis.find(session, client_id)
        try:
            api, secret = await self.store.owned_apis.rotate(session, client_id, self.visitor)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            return await self.show_api(profile, api, wrong=refusal.description)
        self.tell_owner(profile, api, Phrase("A second client secret was created"))
        await self.show_api(profile, api, secret=secret)


class EndApiSecretHandler(ApiPage):
    """Ends one of two secrets."""

    async def post(self, client_id: str) -> None:
        """Calls with this secret are refused from now on."""
        self.check_same_origin()
        session, mark = self.require_session(), self.body().require("mark")
        profile, api = await self.store.owned_apis.find(session, client_id)
        await self.store.owned_apis.drop_secret(session, client_id, mark, self.visitor)
        self.tell_owner(profile, api, Phrase("A client secret was revoked"))
        self.see_done(f"/developer/apis/{client_id}?ended")


class ApiStatusHandler(ApiPage):
    """Switches an API off and on."""

    async def post(self, client_id: str) -> None:
        """While the API is off, nobody gets a token for it, and it learns nothing about any."""
        self.check_same_origin()
        session, status = self.require_session(), self.body().require("status")
        if status not in ("active", "off"):
            raise Refused("invalid_request", "status is active or off.")
        event = "api_enabled" if status == "active" else "api_disabled"
        profile, _ = await self.store.owned_apis.find(session, client_id)
        api = await self.store.owned_apis.update(session, client_id, event, self.visitor, status=status)
        if status != api.status:
            self.tell_owner(profile, api, switched(status))
        self.see_done(f"/developer/apis/{client_id}?{'on' if status == 'active' else 'off'}")
