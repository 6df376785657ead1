"""/docs in a real browser: the viewer works under the page's policy, for any reader."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from handlers.openapi.document import document
from handlers.routes import ROUTES
from tests.support.browser.tour_kit import BURST, MODES, NARROWEST, Stand
from tests.support.browser.webdriver import ENTER, PATIENCE, TAB, Chromium
from tests.support.looks import rules

UNFOLDED = """
const folded = [...document.querySelectorAll(".opblock-summary-control[aria-expanded=false]")];
const schemas = [...document.querySelectorAll("[role=tab][data-name=model][aria-selected=false]")];
const some = [...folded, ...schemas].slice(0, 5);
some.forEach((one) => one.click());
return some.length;
"""


# Addresses of the introduction of which a line ends within a word.
TORN = """
return [...document.querySelectorAll(".intro :not(pre) > code")].filter((code) => code.textContent.includes("://"))
  .flatMap((code) => [...code.childNodes]).filter((text) => {
    const range = document.createRange();
    range.selectNodeContents(text);
    return range.getClientRects().length > 1;
  }).map((text) => "torn: " + text.textContent);
"""


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with Stand() as made:
        yield made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with Chromium() as made:
        yield made


@pytest.fixture
def browser(stand: Stand, chromium: Chromium) -> Chromium:
    chromium.show_as(*MODES["light"])
    chromium.open(stand.site.base_url + "/docs")
    chromium.wait_for("Revoke a token")
    return chromium


def wait(browser: Chromium, condition: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not browser.run(f"return Boolean({condition})"):
        assert time.monotonic() < deadline, browser.text
        time.sleep(0.02)


def test_every_group_and_operation_is_shown_and_nothing_is_loaded_from_elsewhere(
    browser: Chromium, stand: Stand
) -> None:
    described = document(ROUTES, stand.site.base_url)
    shown = browser.run(
        "return [...document.querySelectorAll('.opblock-summary')].map((one) => one.innerText.split('\\n')"
        ".map((part) => part.replaceAll('\\u200b', '').trim()).filter(Boolean))"
    )
    assert sorted(shown) == sorted(
        [method.upper(), path, operation["summary"]]
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    )
    assert [line for line in browser.text.split("\n") if line in {tag["name"] for tag in described["tags"]}] == [
        tag["name"] for tag in described["tags"]
    ]
    loaded = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert loaded
    assert all(address.startswith(stand.site.base_url + "/") for address in loaded)
    assert browser.console() == []


def unfold(browser: Chromium) -> None:
    """Unfolds everything, a few at a time: drawing all of it at once takes a browser longer than it is waited for. Out
    of sight, it is laid out once."""
    browser.run("document.querySelector('#viewer').hidden = true")
    while browser.run(UNFOLDED):
        time.sleep(0.05)  # for the viewer to draw what has come
    browser.run("document.querySelector('#viewer').hidden = false")


def test_the_unfolded_page_takes_no_input_and_has_no_axe_violation_and_no_overflow(browser: Chromium) -> None:
    """One test, because unfolding takes most of its time."""
    unfold(browser)
    wait(browser, "document.querySelectorAll('.json-schema-2020-12').length > 20")
    assert "A code lives 60 seconds and works once" in browser.text
    fields = "document.querySelectorAll('#viewer input, #viewer textarea, #viewer form')"
    assert browser.run(f"return [...{fields}].filter((one) => one.offsetParent).length") == 0
    assert "Try it out" not in browser.text
    assert "Authorize" not in browser.text.replace("An app asks", "")
    looks = {
        "light": rules.ALL,
        # Nothing but colours and the size of things differs.
        "phone-dark": rules.only(*rules.OF_COLOURS, "target-size"),
    }
    rules.load(browser)
    found = []
    for mode, options in looks.items():
        browser.show_as(*MODES[mode])
        found += [f"{mode}: {one}" for one in rules.run(browser, options)]
    browser.show_as(NARROWEST, "light")
    found += browser.run(BURST) + browser.run(TORN)
    # On a phone, the description of an answer has the full width, not that of a letter.
    widths = browser.run(
        "return [...document.querySelectorAll('.response-col_description')].map((one) => one.offsetWidth)"
    )
    found += [f"an answer is {width} px wide" for width in widths if 0 < width < NARROWEST / 2]
    assert not found, "\n".join(found)
    assert browser.console() == []


def test_links_and_the_keyboard_reach_an_operation(browser: Chromium, stand: Stand) -> None:
    browser.open("about:blank")
    browser.open(stand.site.base_url + "/docs#/OAuth/revoke")
    browser.wait_for("A refresh token ends with its whole family")
    assert "A code lives 60 seconds and works once" not in browser.text
    browser.run("document.querySelector('#operations-OAuth-token .opblock-summary-control').focus()")
    browser.press(ENTER)
    browser.wait_for("A code lives 60 seconds and works once")
    assert browser.url.endswith("#/OAuth/token")
    browser.press(TAB)
    focused = browser.focused()
    assert focused.outline
    assert focused.seen


def test_without_scripts_the_page_links_to_the_document(browser: Chromium, stand: Stand) -> None:
    browser.allow_scripts(False)
    try:
        browser.open(stand.site.base_url + "/docs")
        browser.wait_for("This page needs JavaScript")
    finally:
        browser.allow_scripts(True)


def test_a_document_that_fails_to_load_is_reported(browser: Chromium, stand: Stand) -> None:
    browser.devtools("Network.enable")
    browser.devtools("Network.setBlockedURLs", urls=["*/openapi.json"])
    try:
        browser.open(stand.site.base_url + "/docs")
        browser.wait_for("The document could not be loaded")
        browser.console()  # which says so too
    finally:
        browser.devtools("Network.setBlockedURLs", urls=[])
    browser.click("Try again")
    browser.wait_for("Revoke a token")
