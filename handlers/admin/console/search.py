"""/admin/search: one field that leads to a person, an app, an API, a request or a kind of event."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from handlers.admin.console.base import CONSOLE, ConsolePage
from handlers.admin.console.people import PEOPLE
from store.names import is_user_id
from store.security_events import EVENTS

_CLIENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REQUEST = re.compile(r"[0-9a-f]{16,32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ConsoleSearchHandler(ConsolePage):
    """The search."""

    async def get(self) -> None:
        """Leads to the page of what was typed; to the list of people, if it is no exact name of anything."""
        typed = (self.asked().get("q") or "").strip()[:254]
        self.see_other(await self._place(typed) or f"{PEOPLE}?{urlencode({'query': typed})}")

    async def _place(self, typed: str) -> str | None:
        if not typed:
            return None
        if is_user_id(typed) or "@" in typed:
            found = await self.store.people_pages.page(typed, limit=1)
            # Search may also find people whose addresses only begin so.
            exact = [one for one in found.people if typed.casefold() in (one.user, one.email)]
            return f"{PEOPLE}/{exact[0].user}" if exact else None
        if _CLIENT.fullmatch(typed):
            if await self.store.apps.find(typed):
                return f"{CONSOLE}/apps/{quote(typed)}"
            if await self.store.apis.find(typed):
                return f"{CONSOLE}/apis/{quote(typed)}"
            if typed in EVENTS:
                return f"{CONSOLE}/audit?{urlencode({'event': typed})}"
        if _REQUEST.fullmatch(typed):
            return f"{CONSOLE}/audit?{urlencode({'request': typed})}"
        return None
