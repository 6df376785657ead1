"""The `sub` of a person: one function for ID tokens, userinfo, introspection, access tokens, logout tokens and events.

An app that was ever granted `profile` or `openid` knows the person's id. Every other app has an id of its own for the
person. An app of the subject type `pairwise` always has the id of its sector. OpenID Connect Core 8. Sessions are named
in the same way: apps of two sectors get another `sid` each, or they would find out that they know the same person.
"""

from __future__ import annotations

from dataclasses import replace

from store.apps.apps import Apps
from store.crypto.pairwise import KNOWS, Pairwise
from store.webhooks.deliveries import SESSION_ENDED, WebhookEvent


class Subjects:
    """Tells what apps and APIs call a person. Each method raises StoreUnavailable."""

    def __init__(self, pairwise: Pairwise, apps: Apps) -> None:
        self._pairwise = pairwise
        self._apps = apps

    async def prepare(self, sector: str) -> None:
        """Reads what `of` needs for an app of this sector, so that `of` calls no store afterwards."""
        if sector:
            await self._pairwise.prepare()

    async def of(self, client_id: str, sector: str, user: str, entered: str = KNOWS) -> str:
        """The `sub` of a person for an app. `sector` is the app's, empty for the subject type `public`; `entered` is
        the app's field in the person's row, and an empty value gives no permission."""
        if sector:
            return await self._pairwise.for_sector(sector, user)
        return user if entered == KNOWS else await self._pairwise.for_app(client_id, user)

    async def at_api(self, api_sector: str, app_sector: str, user: str) -> str:
        """The `sub` of a person for an API, in a token of an app: the person's id, so that all apps name the person
        alike there, and for a pairwise app the id in the API's own sector."""
        return await self._pairwise.for_sector(api_sector, user) if app_sector else user

    async def session(self, sector: str, sid: str) -> str:
        """The `sid` of a session for an app of this sector; without one, for every other app."""
        return await self._pairwise.session_for(sector, sid) if sector else sid

    async def session_behind(self, sector: str, known: str) -> str:
        """The session's own `sid`, from the one that an app of this sector was given."""
        return await self._pairwise.session_behind(sector, known) if sector and known else known

    async def in_event(self, event: WebhookEvent, entered: str) -> WebhookEvent:
        """An event about a user id and a session, as its app may know both. The app may be deleted; one that is gone
        altogether knows nobody."""
        app = await self._apps.remembered(event.client_id)
        sector, entered = (app.sector, entered) if app else ("", "")
        sub, details = await self.of(event.client_id, sector, event.sub, entered), event.details
        if event.type == SESSION_ENDED:
            details = {**details, "sid": await self.session(sector, details["sid"])}
        return replace(event, sub=sub, details=details)
