"""What pages do between the widths of a phone and of a desk, in all languages and without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handlers.core.words.table import LANGUAGES
from runtime import demo
from tests.support.admin.tour_console import EVA, enter
from tests.support.browser.furnished_account import furnish
from tests.support.browser.tour_kit import Stand, Tour
from tests.support.browser.tour_people import PASSWORD
from tests.support.browser.webdriver import Chromium

OWN = "/developer/apps/weather-diary"
PHONE, WIDE = 390, 1280
FINGER = 48
"""Pixels: what a single line for fingers takes at most."""
# Tabs in more than one line, and a current one out of sight.
TABS = """
const all = document.querySelector(".tabs"), edge = document.documentElement.clientWidth;
const now = all.querySelector("[aria-current]").getBoundingClientRect();
const seen = document.elementFromPoint((now.left + now.right) / 2, (now.top + now.bottom) / 2);
return all.offsetHeight > LINE || now.left < 0 || now.right > edge || !seen?.matches(".tabs [aria-current]");
"""
# How many fields and buttons each line of a filter has.
LINES = """
return [...document.querySelectorAll(".filter[role]")].map((form) => {
  const shown = [...form.children].filter((one) => one.offsetHeight);
  const lines = Object.groupBy(shown, (one) => Math.round(one.getBoundingClientRect().bottom));
  return Object.values(lines).map((line) => line.length);
});
"""


@pytest.fixture(scope="module")
def tour() -> Iterator[Tour]:
    """A browser in which pages run no scripts."""
    with Stand() as stand, Chromium(windowless=True) as browser:
        made = Tour(stand, browser, None)
        stand.run(furnish(stand))
        browser.allow_scripts(False)
        browser.devtools("Network.enable")
        yield made


def speak(tour: Tour, tag: str) -> None:
    """Asks for pages in a language from now on."""
    tour.browser.devtools("Network.setExtraHTTPHeaders", headers={"Accept-Language": tag})


def operate(tour: Tour) -> None:
    """Signs in as an operator who may do everything."""
    store = tour.stand.store
    user = tour.stand.run(tour.stand.service.add_person(EVA, "Eva Admin", PASSWORD))
    tour.stand.run(store.role_holders.give(user, "admin"))
    speak(tour, "en")
    enter(tour, EVA, user)


def test_the_sections_of_settings_are_folded_on_a_phone_and_all_shown_in_a_wide_window(tour: Tour) -> None:
    tour.sign_in(demo.EMAIL, demo.PASSWORD)
    tour.browser.show_as(PHONE, "light")
    tour.open(f"{OWN}/settings")
    assert tour.browser.run("return document.querySelector('.sections').offsetHeight") <= FINGER
    tour.browser.click("Sections of this page")
    tour.browser.click("Documents and sign-ins")
    assert tour.browser.url.endswith("/settings#documents")
    tour.browser.show_as(WIDE, "light")
    tour.open(f"{OWN}/settings")
    assert tour.browser.run("return document.querySelector('.sections a[href=\"#documents\"]').checkVisibility()")
    assert tour.browser.run("return document.querySelector('.sections summary').offsetHeight") == 0


def test_tabs_have_one_line_with_the_current_one_in_sight_in_every_language(tour: Tour) -> None:
    tour.sign_in(demo.EMAIL, demo.PASSWORD)
    wrong = []
    for row in LANGUAGES:
        speak(tour, row.tag)
        for path in ("/account", "/account/security", f"{OWN}/usage", f"{OWN}/team"):
            for width in (320, PHONE, 600, 725, 1000):
                tour.browser.show_as(width, "light")
                tour.open(path)
                if tour.browser.run(TABS.replace("LINE", str(FINGER))):
                    wrong.append((row.code, path, width))
    assert not wrong


def test_no_field_or_button_of_a_filter_stands_alone_in_a_line(tour: Tour) -> None:
    operate(tour)
    alone = []
    for name in ("people", "apps", "apis", "webhooks", "credits", "audit", "settings"):
        tour.open(f"/admin/{name}")
        for width in (*range(560, 1001, 40), WIDE):
            tour.browser.show_as(width, "light")
            alone += [(name, width, lines) for lines in tour.browser.run(LINES) if 1 in lines]
    assert not alone
