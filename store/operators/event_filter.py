"""Filters of security events: by person, app, kind and operator."""

from __future__ import annotations

from typing import Final

from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_log import SecurityLog
from store.accounts.audit.security_reading import EventFilter
from store.names import is_user_id, normalise_email
from store.operations import Operator
from store.phrases import Phrase
from store.refused import Refused

EVENT_FILTERS: Final = ("person", "app", "event", "operator")
"""The filters, by the names that the console, the management interface and the commands have for them."""


class WrongEventFilter(ValueError):
    """A filter that nothing can fit. `name`: the filter."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name


class EventFilters:
    """Makes filters."""

    def __init__(self, security: SecurityLog, operator: Operator) -> None:
        self._security = security
        self._operator = operator

    async def of(self, person: str = "", app: str = "", event: str = "", operator: str = "") -> EventFilter:
        """A filter for a person's events (by user id, or by e-mail address with or without an account), an app's
        events, events of these names, a comma between two, and what an operator did (user id or address of a person,
        id of an operator key); empty for any. Raises WrongEventFilter for what is no address, and for an operator's
        address without an account: their earlier events have only the user id. Raises StoreUnavailable."""
        names = {name.strip() for name in event.split(",")}
        user = person if is_user_id(person) else ""
        address = _address(person, "person") if person and not user else ""
        user = user or await self._user(address)
        typed = self._security.fingerprints.test(address) if address else None
        by = operator
        if "@" in operator:
            acted = await self._user(_address(operator, "operator"))
            if not acted:
                raise WrongEventFilter(
                    Phrase("No account has this address now. Give the operator’s user ID."), "operator"
                )
            by = f"person {acted}"

        def wanted(one: AuditEvent) -> bool:
            theirs = not person or (user != "" and one.person == user) or bool(typed and one.typed and typed(one.typed))
            did = not by or by in (one.by, *one.by.split(" ")[1:2])
            return theirs and did and app in ("", one.client) and (not event or one.event in names)

        return wanted

    async def _user(self, address: str) -> str:
        """The user id of the person with an address; empty for none, and for an address without an account."""
        try:
            return (await self._operator.find(address, 0)).user if address else ""
        except Refused:
            return ""


def _address(text: str, name: str) -> str:
    try:
        return normalise_email(text)
    except ValueError as error:
        raise WrongEventFilter(error.args[0], name) from None
