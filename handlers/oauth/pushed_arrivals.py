"""The browser that comes with a pushed request, and what it gets to come again. RFC 9126 4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handlers.core.lean_page import LeanPage
from handlers.oauth.pushed_address import BROWSER_COOKIE
from handlers.oauth.pushed_record import PushedRecord, read_record
from runtime.http.tornado_private import answer_fields, put_fields
from store.apps.profiles import NONE
from store.apps.registration import Registration
from store.crypto.seal import new_id
from store.lifetimes import REQUEST
from store.oauth.pushed import gone


class PushedArrivals(LeanPage):
    """A page to which browsers come with pushed requests."""

    browser = ""
    """The id of a browser that has to come again with a pushed request."""

    async def open_pushed(self, app: Registration, pushed: str) -> PushedRecord:
        """A pushed request, for the browser that arrives with it first. Raises Refused("invalid_request_uri"), also for
        one from before the app got its profile: who pushed it may have proven less."""
        known = self.store.pushed.browser_of(self.read_cookie(BROWSER_COOKIE))
        self.browser_is_new, self.browser = known is None, known or new_id()
        record = read_record(await self.store.pushed.open(app.client_id, pushed, self.browser))
        if app.profile not in (NONE, record.profile):
            raise gone()
        return record

    async def end_pushed(self, app: Registration, pushed: str) -> None:
        """Uses a pushed request up. A new browser is told nothing that opens it again, so its end can wait."""
        self.browser = ""
        if not (self.browser_is_new and self.store.pushed.end_later(app.client_id, pushed)):
            await self.store.pushed.end(app.client_id, pushed)

    def finish(self, chunk: Any = None) -> Any:
        """Gives the browser of a pushed request its cookie with every answer that does not end the request."""
        if self.browser:
            self.write_cookie(BROWSER_COOKIE, self.store.pushed.cookie_of(self.browser), REQUEST)
        return super().finish(chunk)

    def finish_at_once(self, body: bytes, fields: Mapping[str, str]) -> None:
        """As `finish`."""
        if self.browser:
            put_fields(answer_fields(self), fields)
            self.finish(body)
        else:
            super().finish_at_once(body, fields)
