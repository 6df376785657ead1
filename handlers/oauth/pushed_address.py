"""The address of a pushed request, on its way through the pages. RFC 9126 4."""

from __future__ import annotations

from handlers.account.authorize_address import PROGRESS, Pairs
from store.oauth.pushed import URN

BROWSER_COOKIE = "browser"
"""What only this browser has: a pushed request is for the browser that arrived with it."""
_OURS = ("client_id", "request_uri", PROGRESS)
HANDED_ON = ("login_hint",)
"""What the sign-in page reads of an address."""


def pushed_uri(pairs: Pairs) -> str:
    """The `request_uri` of a pushed request in an address; empty if there is none."""
    found = [value for name, value in pairs if name == "request_uri"]
    return found[0] if len(found) == 1 and found[0].startswith(URN) else ""


def pushed_address(here: Pairs, pushed: Pairs) -> Pairs:
    """The parameters of the address that this request keeps. Others beside `request_uri` count for nothing."""
    kept = [pair for pair in here if pair[0] in _OURS]
    hints = [pair for pair in here if pair[0] in HANDED_ON] or [pair for pair in pushed if pair[0] in HANDED_ON]
    return [*kept, *hints]
