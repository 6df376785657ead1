"""A sign-in whose password was right, in a cookie of its own: no session until the second step is shown or set up."""

from __future__ import annotations

from urllib.parse import urlencode

from handlers.core.page import PageHandler
from store.accounts.signin.sessions import SecondStepNeeded
from store.lifetimes import SECOND_STEP, SECOND_STEP_SETUP

HALF_COOKIE = "half"
KEEP = "keep"
"""The field of a person who wants to stay signed in when the browser closes."""


def ask_step(page: PageHandler, needed: SecondStepNeeded, target: str, *, keep: bool) -> None:
    """Leads to the second step, or to the page that sets it up."""
    name, lasts = ("setup", SECOND_STEP_SETUP) if needed.setup else ("second", SECOND_STEP)
    page.write_cookie(HALF_COOKIE, needed.text, lasts)
    page.see_other(f"/signin/{name}?{urlencode({'next': target, **({KEEP: '1'} if keep else {})})}")
