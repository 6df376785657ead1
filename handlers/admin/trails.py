"""/api/admin/v1/audit and /grants."""

from __future__ import annotations

from datetime import UTC, datetime

from handlers.admin.base import AdminHandler, valid
from store.operations import person_named
from store.operators.event_filter import EVENT_FILTERS
from store.operators.records import event_record, grant_record
from store.phrases import Phrase
from store.refused import Refused


class AdminAuditHandler(AdminHandler):
    """The security log."""

    async def get(self) -> None:
        """A page of events, newest first: of a person (address or id), of an app, of some names, by an operator,
        since a time. With `follow`, those that came after the cursor, oldest first, and whether there is more."""
        params = self.query(*EVENT_FILTERS, "since", "follow", "limit", "cursor")
        limit, cursor = self.page(params)
        person, app, event, operator = filters = [params.get(name) or "" for name in EVENT_FILTERS]
        since, follow = params.get("since") or "", self.flag(params, "follow")
        asked = f"audit {'follow ' if follow else ''}{person} {app} {event} {since}"
        asked += f" {operator}" if operator else ""  # followers keep cursors of earlier releases, without it
        place = self.store.cursors.open(asked, cursor)
        with valid():
            wanted = await self.store.event_filters.of(*filters)
            begin = moment_of(since, "since") if since else None
        events, more = self.store.security_events, None
        if follow:
            if "limit" in params.names():
                raise Refused("invalid_request", "limit does not go with follow: a page has what has come.")
            found, after, more = await events.came(
                tuple(place.split()) or await events.start(begin), begin or 0, wanted
            )
            position = " ".join(after)
        else:
            found, position = await events.page(limit, begin or 0, wanted, place or "+")
        onward = self.store.cursors.seal(asked, position) if position else ""
        ended = {} if more is None else {"more": more}
        self.write_page([event_record(one) for one in found], onward, **ended)


class AdminGrantsHandler(AdminHandler):
    """The apps that a person connected."""

    async def get(self) -> None:
        """The grants of a person: at most 500, so this list has one page."""
        with valid():
            who = person_named(self.query("person").require("person"))
        person = await self.store.operator.find(who, 0)
        self.write_page([grant_record(person.user, grant) for grant in person.grants], "")


def bounds_of(since: str, until: str) -> tuple[int, int | None]:
    """Epoch milliseconds of `since` and `until`, as they were sent; the beginning and None without one. Raises
    ValueError."""
    return moment_of(since, "since") if since else 0, moment_of(until, "until") if until else None


def moment_of(text: str, name: str) -> int:
    """Epoch milliseconds of a date or a time that was sent as `name`. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            Phrase("%(name)s must be a date or a time, such as 2026-11-23T06:30:00Z.", name=name)
        ) from None
    return max(0, round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
