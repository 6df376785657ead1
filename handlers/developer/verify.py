"""/developer/apps/:client_id/verify: an owner proves a domain of an app."""

from __future__ import annotations

from handlers.developer.app_settings import SettingsPage
from store.apps.domains import FILE_BYTES, PATH, check_domain, names_app
from store.phrases import Phrase
from store.refused import Refused


class VerifyHandler(SettingsPage):
    """Verifies a domain."""

    async def post(self, client_id: str) -> None:
        """Fetches the domain's file. If a line of the file is the client id, pages show the domain as proven from then
        on. Otherwise nothing changes."""
        self.check_same_origin()
        profile, app = await self.own(client_id)
        session, typed = self.require_session(), self.body().require("domain")
        try:
            domain = check_domain(app, typed)
            address = f"https://{domain}{PATH}"
            await self.store.limits.verify_domain(profile.user)
            found = await self.site.fetcher.fetch(address, FILE_BYTES, profile.user)
            if found.error:
                raise Refused(
                    "invalid_request",
                    Phrase("We couldn’t read %(address)s. %(reason)s", address=address, reason=found.error),
                )
            if not names_app(found.text, client_id):
                raise Refused(
                    "invalid_request", Phrase("No line of %(address)s is this app’s client ID.", address=address)
                )
            await self.store.owned.prove_domain(session, app, domain, self.visitor)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            return await self.show_settings(profile, app, domain=typed, wrong_domain=refusal.description)
        self.see_done(f"/developer/apps/{client_id}/settings?verified")
