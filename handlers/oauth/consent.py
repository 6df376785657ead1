"""What the consent page shows of a request."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import urlsplit

from handlers.core.amounts import DEFAULT_SPEND_LIMIT
from store.apps.api_record import ApiRegistration
from store.oauth.authorizations import Pending


def named(api: ApiRegistration | None) -> SimpleNamespace | None:
    """An API as people see it: its name, and the host of its identifier, which it did not choose freely."""
    return SimpleNamespace(name=api.name, host=urlsplit(api.identifier).netloc) if api else None


def offered_limit(pending: Pending) -> int | None:
    """The page's default for the monthly limit, in micro-dollars: the limit of an earlier consent, if there was one."""
    if pending.spend_limit is None and "credits:spend" not in pending.granted:
        return DEFAULT_SPEND_LIMIT
    return pending.spend_limit
