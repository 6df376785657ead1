"""Logos of apps: where everybody sees them, and where owners change them."""

from __future__ import annotations

from handlers.account.pictures import KEEP_SECONDS
from handlers.core.base import BaseHandler
from handlers.core.pictures.image_upload import MOST_LOGO
from handlers.core.pictures.uploads import Upload
from handlers.developer.app_settings import SettingsPage
from handlers.developer.apps import DeveloperPage
from outbound.logos import fetch_logo
from store.phrases import Phrase
from store.refused import Refused


class LogoHandler(BaseHandler):
    """The logo of an app, as WebP. Its address has a digest of the content, so caches may keep it."""

    def set_default_headers(self) -> None:
        """A logo opened by itself is a document of this origin, so nothing in it may run or load."""
        self.set_header("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")

    async def get(self, client_id: str, logo: str) -> None:
        """Answers with the logo; 404 if the app has another now."""
        image = await self.store.apps.logo(client_id, logo)
        if not image:
            raise Refused("not_found")
        headers = {
            "Content-Type": "image/webp",
            "Cache-Control": f"public, max-age={KEEP_SECONDS}, immutable",
            # Apps may show it on their own pages, some of which are isolated.
            "Cross-Origin-Resource-Policy": "cross-origin",
        }
        self.write_whole(image, headers)


class ChangeLogoHandler(Upload, SettingsPage):
    """Changes the logo of an app: to a file, or to the one at an address."""

    field = "logo"
    most = MOST_LOGO
    too_large = Phrase("That file is too large. A logo can have up to 1 MiB.")

    async def post(self, client_id: str) -> None:
        """Makes a logo from the file or from what the address leads to, or shows an error in the field."""
        session = self.require_session()
        profile, app = await self.own(client_id)
        typed = ""
        try:
            file = self.file()
            typed = self.typed("logo_url")
            image = await self.site.image_upload.make_logo(file or await self.fetched(typed))
        except Refused as refusal:
            if not self.shows(refusal):
                raise
            return await self.show_settings(profile, app, wrong_logo=refusal.description, logo_url=typed)
        if await self.store.owned.set_logo(session, client_id, image, self.visitor):
            self.tell_owner(profile, app, Phrase("Logo changed"))
        self.see_done(f"/developer/apps/{client_id}/settings?logo")

    async def fetched(self, typed: str) -> bytes:
        """The file at a typed address. Raises Refused("invalid_request" or "temporarily_unavailable")."""
        if not typed:
            raise Refused("invalid_request", Phrase("Choose a file, or enter the address of one."))
        user = self.uploader
        self.leave()  # a slow server takes nobody's place
        file = await fetch_logo(self.site.fetcher, typed, user, loopback=self.site.on_loopback)
        self.enter(user)
        return file


class RemoveLogoHandler(DeveloperPage):
    """Removes the logo of an app."""

    async def post(self, client_id: str) -> None:
        """Pages show the first letter of the app's name from now on."""
        self.check_same_origin()
        session = self.require_session()
        profile, app = await self.own(client_id)
        if await self.store.owned.set_logo(session, client_id, b"", self.visitor):
            self.tell_owner(profile, app, Phrase("Logo removed"))
        self.see_done(f"/developer/apps/{client_id}/settings?logo-removed")
