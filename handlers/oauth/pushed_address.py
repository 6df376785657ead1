"""The address of a pushed request, on its way through the pages. RFC 9126 4."""

from __future__ import annotations

from handlers.account.authorize_address import LOGIN_HINT, PROGRESS, Pairs
from handlers.core.words.choosing import UI_LOCALES
from store.oauth.pushed import URN

BROWSER_COOKIE = "browser"
"""What only this browser has: a pushed request is for the browser that arrived with it."""
_OURS = ("client_id", "request_uri", PROGRESS)


def pushed_uri(pairs: Pairs) -> str:
    """The `request_uri` of a pushed request in an address; empty if there is none."""
    found = [value for name, value in pairs if name == "request_uri"]
    return found[0] if len(found) == 1 and found[0].startswith(URN) else ""


def pushed_address(here: Pairs, pushed: Pairs) -> Pairs:
    """The parameters of the address that this request keeps. All others count for nothing."""
    return [pair for pair in here if pair[0] in _OURS] + handed_on(pushed)


def handed_on(pairs: Pairs) -> Pairs:
    """What pages on the way read of an address, from the parameters that count."""
    return [pair for pair in pairs if pair[0] in (LOGIN_HINT, UI_LOCALES)]
