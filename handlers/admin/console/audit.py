"""/admin/audit: the security log with filters, and the same as a file."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode

from handlers.admin.base import valid
from handlers.admin.console.base import ConsolePage
from handlers.admin.console.chips import chips_of
from handlers.admin.console.event_names import EVENTS
from handlers.admin.exports import trail_format
from handlers.admin.trails import moment_of
from handlers.core.devices import device_phrase
from handlers.core.page import DownloadPage
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_reading import LATEST, EventFilter
from store.clock import wall
from store.moments import at
from store.operators.event_filter import EVENT_FILTERS, WrongEventFilter
from store.operators.trail_formats import ENDINGS, MEDIA_TYPES, exported
from store.phrases import Phrase
from store.refused import Refused

AUDIT = "/admin/audit"
FILTERS = ("person", "app", "operator", "event", "request", "since", "until")
LONGEST = dict.fromkeys(FILTERS, 254) | {"event": 2000}
"""Characters of each filter. Events are a list."""
PAGE = 30
"""Events on a page."""
RESULTS = {"ok": Phrase("succeeded"), "refused": Phrase("refused"), "failed": Phrase("failed")}
"""How an act ended."""


class ShownEvent(NamedTuple):
    """An event as the page shows it."""

    at: datetime
    text: str
    event: AuditEvent
    app: str
    device: str
    operator: str
    """The user id of the person with a role who did it."""
    key: tuple[str, str]
    """Id and name of the operator key that did it."""
    page: str = ""
    """The address of its page."""
    outcome: str = ""
    """The outcome of an act that did not succeed, where the text doesn't say it."""


class AuditPage(ConsolePage):
    """Shared by the page and the file."""

    wrong = ""
    """The filter that was refused."""

    def chosen(self) -> dict[str, str]:
        """The filters in the address, cut to their longest useful length."""
        params = self.asked()
        cut = {name: (params.get(name) or "").strip()[: LONGEST[name]] for name in FILTERS}
        return {name: value for name, value in cut.items() if value}

    async def filter_of(self, chosen: dict[str, str]) -> tuple[EventFilter, int, int | None]:
        """The filter, and beginning and end in epoch ms. Raises Refused("invalid_request")."""
        try:
            known = await self.store.event_filters.of(*(chosen.get(name, "") for name in EVENT_FILTERS))
        except WrongEventFilter as error:
            self.wrong = error.name
            raise Refused("invalid_request", error.args[0]) from None
        begin, end = self._moment(chosen, "since", Phrase("Since")), self._moment(chosen, "until", Phrase("Until"))
        request = chosen.get("request")
        return (lambda one: known(one) and request in (None, one.request_id)), begin or 0, end

    def _moment(self, chosen: dict[str, str], name: str, label: Phrase) -> int | None:
        """The moment in a filter, in epoch ms; None without it. Raises Refused("invalid_request")."""
        if name not in chosen:
            return None
        self.wrong = name
        with valid():
            moment = moment_of(chosen[name], label)
        self.wrong = ""
        return moment


class ConsoleAuditHandler(AuditPage):
    """The page."""

    async def get(self) -> None:
        """Shows a page of events, newest first."""
        chosen, cursor, error = self.chosen(), self.asked().get("cursor") or "", ""
        asked = f"console audit {urlencode(chosen)}"
        found: list[AuditEvent] = []
        position = ""
        try:
            wanted, begin, end = await self.filter_of(chosen)
            until = self.store.cursors.open(asked, cursor) or ("+" if end is None else str(end + LATEST))
            early = wanted if end is None else lambda one: one.at_ms < end and wanted(one)
            found, position = await self.store.security_events.page(PAGE, begin, early, until)
        except Refused as refusal:
            if refusal.code != "invalid_request" or self.wants_json():
                raise
            self.set_status(400)
            error = refusal.description
        names = await self.names_of(one.client for one in found)
        acted = [who_acted(one.by) for one in found]
        people = await self.addresses_of([*(one.person for one in found), *(user for user, _ in acted)])
        onward = self.store.cursors.seal(asked, position) if position else ""
        self.show_page(
            "admin/audit.html",
            AUDIT,
            Phrase("Audit"),
            chosen=chosen,
            longest=LONGEST,
            error=error,
            wrong=self.wrong,
            people=people,
            events=[
                ShownEvent(
                    at(one.at_ms),
                    EVENTS.get(one.event, one.event),
                    one,
                    names.get(one.client, ""),
                    device_phrase(one.agent) if one.agent else "",
                    *who,
                    page=f"{AUDIT}/{one.entry}",
                    outcome=outcome_of(one),
                )
                for one, who in zip(found, acted, strict=True)
            ],
            files=[
                (label, f"{AUDIT}/export?{urlencode({**chosen, 'format': form})}")
                for form, label in (
                    ("jsonl", Phrase("Download as JSON lines")),
                    ("cef", Phrase("Download as CEF")),
                    ("otlp", Phrase("Download as OTLP logs")),
                )
            ],
            chips=chips_of(AUDIT, chosen),
            days=self.store.security.trail.bounds.days,
            first=f"{AUDIT}?{urlencode(chosen)}" if cursor else "",
            onward=f"{AUDIT}?{urlencode({**chosen, 'cursor': onward})}" if onward else "",
        )


class ConsoleEventHandler(AuditPage):
    """One event. Its address has the id of its entry in the log."""

    async def get(self, entry: str) -> None:
        """Shows every field of the event. Raises Refused("not_found") if the log no longer has it."""
        event = await self.store.security_events.one(entry)
        if event is None:
            raise Refused("not_found", Phrase("This event is no longer in the log."))
        operator, key = who_acted(event.by)
        client, app_page = event.client, ""
        if client and await self.store.apps.remembered(client):
            app_page = f"/admin/apps/{client}"
        elif client and await self.store.apis.find(client):
            app_page = f"/admin/apis/{client}"
        self.show_page(
            "admin/event.html",
            AUDIT,
            EVENTS.get(event.event, event.event),
            scripts=True,
            event=event,
            at=at(event.at_ms),
            people=await self.addresses_of((event.person, operator)),
            app=(await self.names_of((client,))).get(client, ""),
            app_page=app_page,
            device=device_phrase(event.agent) if event.agent else "",
            operator=operator,
            key=key,
            result=RESULTS.get(event.result, event.result),
            outcome=outcome_of(event),
            filtered=lambda **chosen: f"{AUDIT}?{urlencode(chosen)}",
        )


def outcome_of(event: AuditEvent) -> str:
    """The outcome of an act that did not succeed; "" if the sentence of the event says it."""
    if event.result == "ok" or event.result in EVENTS.get(event.event, "").lower():
        return ""
    return RESULTS.get(event.result, event.result)


def who_acted(by: str) -> tuple[str, tuple[str, str]]:
    """The user id of the operator, or else id and name of the operator key, in the `by` of an event. The name of a key
    without one is its id."""
    kind, _, rest = by.partition(" ")
    if kind == "person":
        return rest, ("", "")
    key, _, name = rest.partition(" ")
    return "", (key, name or key)


class ConsoleAuditFileHandler(AuditPage, DownloadPage):
    """The file."""

    async def get(self) -> None:
        """Sends the events, oldest first, as JSON lines, CEF or OTLP logs."""
        form = trail_format(self.asked().get("format") or "")
        wanted, begin, end = await self.filter_of(self.chosen())
        self.store.security.note("trail_exported_by_operator", detail=form)
        name = f"audit-{wall.utc():%Y-%m-%d}.{ENDINGS[form]}"
        pieces = exported(self.store.security_events, form, begin, end, wanted)
        await self.send_file(name, MEDIA_TYPES[form], pieces)
