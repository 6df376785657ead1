"""Every page in a real browser, light and dark, wide and as narrow as a phone: axe-core finds nothing, and all fits.

With LATCHKEY_SHOTS, a folder, pictures of all are written there: see `make screenshots`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handlers.core.page import PageHandler
from handlers.routes import ROUTES
from store.fsck.invariants import ERROR
from tests.support.admin.console_samples import RARE
from tests.support.browser.pages import ROOT, pages
from tests.support.browser.tour import walk
from tests.support.browser.tour_kit import Stand, Tour
from tests.support.browser.webdriver import Chromium
from tests.support.store.checked_store import checked, findings

# What these routes answer is a redirect, a file or JSON, or a page that says what is wrong (`base/message.html`).
NO_PAGE = {
    *("signin-choose-remove", "account-passkey-offer"),
    *("signout", "account-picture-remove", "account-download", "account-export", "account-app-revoke"),
    *("account-data-delete", "account-document-delete", "account-session-end", "account-sessions-end"),
    *("signin-callback", "account-identity-add", "account-identity-remove", "account-confirm-elsewhere"),
    *("account-authenticator-remove", "account-app-pause", "account-app-resume", "account-app-end"),
    "account-apps-live",  # a stream of events
    *("developer-end-secret", "developer-status", "developer-webhook-test", "developer-delivery-again"),
    *("developer-team-role", "developer-team-remove", "developer-team-withdraw"),
    *("account-spending-file", "account-usage-file", "developer-usage-file"),
    *("developer-model-usage-file", "account-credit-mails"),
    *("developer-api-end-secret", "developer-api-status", "developer-logo-remove"),
    *("console-search", "console-cancel-deletion", "console-sign-out", "console-reset-factors", "console-export"),
    *("console-end-session", "console-disconnect", "console-app-team", "console-app-team-remove"),
    "console-api-status",
    *("console-audit-file", "console-app-status", "console-app-rules", "console-app-verify"),
    *("console-send-again", "console-credit-days", "console-credit-report", "console-figures-file"),
    # What a script asks for to use a passkey.
    *(route.name for route in ROUTES if route.name.endswith("-options")),
}
MOST_HTML = 40_000
"""Bytes."""
HEIGHT = 900
"""Pixels of the window."""
SHOTS = os.environ.get("LATCHKEY_SHOTS")


@pytest.fixture(scope="module")
def tour() -> Iterator[Tour]:
    """A tour that has seen everything."""
    with Stand() as stand, Chromium(watched=True, windowless=True) as browser:
        made = Tour(stand, browser, Path(SHOTS) if SHOTS else None)
        walk(made)
        yield made


def test_axe_finds_no_violation_on_any_page(tour: Tour) -> None:
    found = [violation for seen in tour.seen for violation in seen.violations]
    assert not found, "\n".join(found)


def test_no_page_scrolls_sideways_or_overflows(tour: Tour) -> None:
    burst = [one for seen in tour.seen for one in seen.burst]
    assert not burst, "\n".join(burst)


def test_no_page_has_more_than_40_kb_of_html(tour: Tour) -> None:
    large = {seen.name: seen.size for seen in tour.seen if not 0 < seen.size < MOST_HTML}
    assert not large


def test_six_scopes_can_be_allowed_without_scrolling(tour: Tour) -> None:
    ends = {seen.name: seen.allow_ends for seen in tour.seen}
    assert 0 < ends["oauth/consent.html first"] <= HEIGHT
    assert 0 < ends["oauth/consent.html"] <= HEIGHT


def test_every_control_is_44_pixels_high(tour: Tour) -> None:
    small = [one for seen in tour.seen for one in seen.small]
    assert not small, "\n".join(small)


def test_nothing_is_lost_in_forced_colours_on_paper_or_in_large_text(tour: Tour) -> None:
    lost = [one for seen in tour.seen for one in seen.lost]
    assert not lost, "\n".join(lost)


def test_no_page_asks_another_origin(tour: Tour) -> None:
    strange = [one for seen in tour.seen for one in seen.strange]
    assert not strange, "\n".join(strange)


def test_no_page_is_left_out(tour: Tour) -> None:
    """Fails on a new template without a stop."""
    names = [seen.name for seen in tour.seen]
    assert len(names) == len(set(names))
    # The page that posts an answer to an app leaves at once.
    assert set(pages("")) - {"oauth/form_post.html"} - RARE <= set(names)
    assert not RARE & set(names)
    of_demo = {name.removeprefix("demo ").split()[0] for name in names if name.startswith("demo ")}
    assert of_demo == {path.name for path in (ROOT / "examples" / "templates").glob("*.html")} - {
        "layout.html",
        "minute.html",
    }
    for seen in tour.seen:
        assert seen.name.startswith("demo ") or seen.name.split()[0] in seen.templates, f"{seen.name} is another page"


def test_no_route_is_left_out(tour: Tour) -> None:
    """Fails on a new route without a stop, unless `NO_PAGE` names it."""
    routes = {route.name for route in ROUTES if issubclass(route.handler, PageHandler)}
    assert routes >= NO_PAGE
    shown = {seen.route for seen in tour.seen if "base/message.html" not in seen.templates or seen.status == 200}
    assert shown - {""} == routes - NO_PAGE


def test_the_store_is_sound_after_the_tour(tour: Tour) -> None:
    async def check() -> None:
        tour.stand.store.fsck.settle = 0
        report = await checked(tour.stand.store, deep=True)
        assert [one for one in findings(report) if one.invariant.severity == ERROR] == []
        assert report.people > 1

    tour.stand.run(check())
