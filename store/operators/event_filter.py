"""Filters of security events: by person, app, kind and operator."""

from __future__ import annotations

from typing import Final

from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_log import SecurityLog
from store.accounts.audit.security_reading import EventFilter
from store.names import is_user_id, normalise_email
from store.operations import Operator
from store.refused import Refused

EVENT_FILTERS: Final = ("person", "app", "event", "operator")
"""The filters, by the names that the console, the management interface and the commands have for them."""


class EventFilters:
    """Makes filters."""

    def __init__(self, security: SecurityLog, operator: Operator) -> None:
        self._security = security
        self._operator = operator

    async def of(self, person: str = "", app: str = "", event: str = "", operator: str = "") -> EventFilter:
        """A filter for a person's events (by user id, or by e-mail address with or without an account), an app's
        events, events of these names, a comma between two, and what an operator did (user id or address of a person,
        id of an operator key); empty for any. Raises ValueError, StoreUnavailable."""
        names = {name.strip() for name in event.split(",")}
        user = await self._user(person) if person else ""
        address = "" if not person or is_user_id(person) else normalise_email(person)
        typed = self._security.fingerprints.test(address) if address else None
        by = f"person {await self._user(operator)}" if "@" in operator else operator

        def wanted(one: AuditEvent) -> bool:
            theirs = not person or (user != "" and one.person == user) or bool(typed and one.typed and typed(one.typed))
            did = not by or by in (one.by, *one.by.split(" ")[1:2])
            return theirs and did and app in ("", one.client) and (not event or one.event in names)

        return wanted

    async def _user(self, who: str) -> str:
        """The user id of a person; empty for an address without an account."""
        if is_user_id(who):
            return who
        try:
            return (await self._operator.find(normalise_email(who), 0)).user
        except Refused:
            return ""
