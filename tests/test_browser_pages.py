"""Every page in a real browser, light and dark, wide and as narrow as a phone: axe-core finds nothing, and nobody has to
scroll sideways. With LATCHKEY_SHOTS, a folder, pictures of all are written there (`make screenshots`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handlers import ROUTES
from handlers.page import PageHandler
from tests.npm import packages
from tests.pages import ROOT, pages
from tests.tour import walk
from tests.touring import Stand, Tour
from tests.webdriver import Chromium

# What these routes answer is a redirect, a file or JSON, or a page that says what is wrong (`message.html`).
NO_PAGE = {
    *("decide", "signout", "signin-passkey-options", "signin-second-options", "account-passkeys-options"),
    *("account-picture-remove", "account-download", "account-export", "account-app-revoke"),
    *("account-data-delete", "account-document-delete", "account-session-end", "account-sessions-end"),
    *("developer-end-secret", "developer-status"),
}
SHOTS = os.environ.get("LATCHKEY_SHOTS")


@pytest.fixture(scope="module")
def tour() -> Iterator[Tour]:
    """A tour that has seen everything."""
    axe = (packages() / "axe-core" / "axe.min.js").read_text()
    with Stand() as stand, Chromium() as browser:
        made = Tour(stand, browser, axe, Path(SHOTS) if SHOTS else None)
        walk(made)
        yield made


def test_axe_finds_no_violation_on_any_page(tour: Tour) -> None:
    found = [violation for seen in tour.seen for violation in seen.violations]
    assert not found, "\n".join(found)


def test_nobody_has_to_scroll_sideways(tour: Tour) -> None:
    wide = [one for seen in tour.seen for one in seen.wide]
    assert not wide, "\n".join(wide)


def test_no_page_is_left_out(tour: Tour) -> None:
    """A page that is added is seen here, or this fails."""
    names = [seen.name for seen in tour.seen]
    assert len(names) == len(set(names))
    assert set(pages("")) <= set(names)
    for seen in tour.seen:
        place, _, template = seen.name.rpartition("demo ")
        assert place or seen.name.startswith("demo ") or seen.name.split()[0] in seen.templates, seen.name
    assert {path.name for path in (ROOT / "templates").glob("*.html")} <= {
        template for seen in tour.seen for template in seen.templates
    }
    assert {path.name for path in (ROOT / "examples" / "templates").glob("*.html")} == {
        "layout.html",
        *(seen.name.split()[1] for seen in tour.seen if seen.name.startswith("demo ")),
    }


def test_no_route_is_left_out(tour: Tour) -> None:
    """A route that is added is seen here, or named as one without a page of its own."""
    routes = {name for _, handler, name in ROUTES if issubclass(handler, PageHandler)}
    assert routes >= NO_PAGE
    shown = {seen.route for seen in tour.seen if "message.html" not in seen.templates or seen.status == 200}
    assert shown - {""} == routes - NO_PAGE
