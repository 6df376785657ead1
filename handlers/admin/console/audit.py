"""/admin/audit: the security log with filters, and the same as JSON lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode

import orjson

from handlers.account.connected_apps import EVENTS
from handlers.admin.base import valid
from handlers.admin.console.base import ConsolePage
from handlers.admin.trails import moment_of
from handlers.core.devices import device_phrase
from handlers.core.page import DownloadPage
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_reading import EventFilter
from store.clock import wall
from store.moments import at
from store.names import is_user_id
from store.operators.records import event_record
from store.phrases import Phrase
from store.refused import Refused

AUDIT = "/admin/audit"
FILTERS = ("person", "app", "event", "since", "request")
PAGE, PIECE = 50, 500
"""Events on a page, and in a piece of the file."""
MOST_EXPORTED = 50_000
"""Events in a file, the newest."""


class ShownEvent(NamedTuple):
    """An event as the page shows it."""

    at: datetime
    text: str
    event: AuditEvent
    app: str
    device: str


class AuditPage(ConsolePage):
    """Shared by the page and the file."""

    def chosen(self) -> dict[str, str]:
        """The filters in the address."""
        params = self.asked()
        return {name: value for name in FILTERS if (value := (params.get(name) or "").strip())}

    async def filter_of(self, chosen: dict[str, str]) -> tuple[EventFilter, int]:
        """The filter, and the beginning in epoch ms. Raises Refused("invalid_request")."""
        with valid():
            known = await self.store.event_filters.of(
                chosen.get("person", ""), chosen.get("app", ""), chosen.get("event", "")
            )
            begin = moment_of(chosen["since"], Phrase("Since")) if "since" in chosen else 0
        request = chosen.get("request")
        return (lambda one: known(one) and request in (None, one.request_id)), begin


class ConsoleAuditHandler(AuditPage):
    """The page."""

    async def get(self) -> None:
        """Shows a page of events, newest first."""
        chosen, cursor, error = self.chosen(), self.asked().get("cursor") or "", ""
        asked = f"console audit {urlencode(chosen)}"
        found: list[AuditEvent] = []
        position = ""
        try:
            wanted, begin = await self.filter_of(chosen)
            until = self.store.cursors.open(asked, cursor) or "+"
            found, position = await self.store.security_events.page(PAGE, begin, wanted, until)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            self.set_status(400)
            error = refusal.description
        names = await self.names_of(one.client for one in found)
        users = dict.fromkeys(one.person for one in found if is_user_id(one.person))
        people = {one.user: one.email for one in await self.store.teams.persons(users)}
        onward = self.store.cursors.seal(asked, position) if position else ""
        self.show_page(
            "admin/audit.html",
            AUDIT,
            Phrase("Audit"),
            chosen=chosen,
            error=error,
            people=people,
            events=[
                ShownEvent(
                    at(one.at_ms),
                    EVENTS.get(one.event, one.event),
                    one,
                    names.get(one.client, ""),
                    device_phrase(one.agent) if one.agent else "",
                )
                for one in found
            ],
            file=f"{AUDIT}/export?{urlencode(chosen)}",
            first=f"{AUDIT}?{urlencode(chosen)}" if cursor else "",
            onward=f"{AUDIT}?{urlencode({**chosen, 'cursor': onward})}" if onward else "",
        )


class ConsoleAuditFileHandler(AuditPage, DownloadPage):
    """The file."""

    async def get(self) -> None:
        """Sends the newest events as JSON lines, newest first."""
        wanted, begin = await self.filter_of(self.chosen())
        name = f"audit-{wall.utc():%Y-%m-%d}.jsonl"
        await self.send_file(name, "application/jsonl", self._pieces(wanted, begin))

    async def _pieces(self, wanted: EventFilter, begin: int) -> AsyncGenerator[bytes, None]:
        until, sent = "+", 0
        while until and sent < MOST_EXPORTED:
            found, until = await self.store.security_events.page(PIECE, begin, wanted, until)
            sent += len(found)
            yield b"".join(orjson.dumps(event_record(one)) + b"\n" for one in found)
