"""/developer/apps/:client_id/verify: an owner proves a domain of an app."""

from __future__ import annotations

from handlers.developer.apps import DeveloperPage
from store.apps.domains import FILE_BYTES, PATH, check_domain, names_app
from store.refused import Refused


class VerifyHandler(DeveloperPage):
    """Verifies a domain."""

    async def post(self, client_id: str) -> None:
        """Fetches the domain's file. If a line of the file is the client id, pages show the domain as proven from then
        on. Otherwise nothing changes."""
        self.check_same_origin()
        session, typed = self.require_session(), self.body().require("domain")
        profile, app = await self.store.owned.find(session, client_id)
        try:
            domain = check_domain(app, typed)
            await self.store.limits.verify_domain(profile.user)
            found = await self.site.fetcher.fetch(f"https://{domain}{PATH}", FILE_BYTES, profile.user)
            if found.error:
                raise Refused("invalid_request", f"https://{domain}{PATH} could not be read. {found.error}")
            if not names_app(found.text, client_id):
                raise Refused("invalid_request", f"No line of https://{domain}{PATH} is this app’s client id.")
            await self.store.owned.prove_domain(session, app, domain, self.visitor)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            return await self.show_app(profile, app, domain=typed, wrong_domain=refusal.description)
        self.see_done(f"/developer/apps/{client_id}?verified")
