"""/api/admin/v1/apps/ID/logo: the logo of an app, as the file itself."""

from __future__ import annotations

from handlers.admin.apps import AdminAppHandler
from store.operators.app_acts import AppOrder
from store.operators.records import app_record
from store.refused import Refused

BODIES = 4
"""How many of the largest requests a logo may weigh."""


class AdminLogoHandler(AdminAppHandler):
    """…/logo."""

    @property
    def max_body(self) -> int:
        """A file is larger than the JSON of other calls: as large as this port reads at all."""
        return BODIES * self.site.max_body

    async def put(self, client_id: str) -> None:
        """Sets the logo to the JPEG, PNG or WebP file in the body."""
        self.query()
        if not self.request.headers.get("Content-Type", "").startswith("image/"):
            raise Refused("unsupported_media_type", "Send the file itself, as image/jpeg, image/png or image/webp.")
        await self.store.app_acts.find(client_id)
        await self._set(client_id, await self.site.image_upload.make_logo(self.request.body))

    async def delete(self, client_id: str) -> None:
        """Removes the logo: pages show the first letter of the app's name."""
        self.query()
        await self._set(client_id, b"")

    async def _set(self, client_id: str, image: bytes) -> None:
        order = AppOrder({}, logo=image)
        changed, *_ = await self.store.app_acts.update(client_id, order, self.site.base_url, self.check_sector)
        self.note("app_changed_by_operator", client_id)
        self.write_json(app_record(changed))
