"""The types of webhook events, and the choice that an app makes among them."""

from __future__ import annotations

from collections.abc import Iterable

EVENT_TYPES = ("grant.revoked", "tokens.revoked", "data.deleted", "user.deleted", "app.deleted")
"""The types that an app can choose, in the order of the documentation. A `ping` is sent by hand, and always posted."""
ALL = "all"
EVERY = (ALL,)
"""The choice of an app that has made none: every type, also those of later releases."""


class UnknownEventType(ValueError):
    """A chosen event type does not exist; the message says which do."""


def chosen_types(names: Iterable[str]) -> tuple[str, ...]:
    """The choice with these names, each once and in order; `EVERY` if "all" is among them. Raises UnknownEventType."""
    chosen = set(names)
    if unknown := sorted(chosen - {ALL, *EVENT_TYPES}):
        raise UnknownEventType(f"webhookEvents are {', '.join(EVENT_TYPES)} or {ALL}, not {unknown[0][:100]!a}")
    return EVERY if ALL in chosen else tuple(name for name in EVENT_TYPES if name in chosen)


def is_chosen(chosen: tuple[str, ...], event: str) -> bool:
    """Whether an app with this choice gets events of this type."""
    return chosen == EVERY or event in chosen or event not in EVENT_TYPES
