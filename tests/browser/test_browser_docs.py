"""/docs in a real browser: the viewer works under the page's policy, for any reader."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from handlers.openapi.document import document
from handlers.routes import ROUTES
from tests.support.browser.tour_kit import BURST, MODES, NARROWEST, Stand
from tests.support.browser.webdriver import ENTER, LONGEST_SCRIPT, TAB, Chromium
from tests.support.looks import rules

# Unfolds some of a group's operations and schemas; how many, and how many operations have not come yet.
UNFOLD = """
const group = document.querySelectorAll(".opblock-tag-section")[GROUP];
const folded = [...group.querySelectorAll(".opblock-summary-control[aria-expanded=false]")];
const schemas = [...group.querySelectorAll("[role=tab][data-name=model][aria-selected=false]")];
const some = [...folded, ...schemas].slice(0, 5);
some.forEach((one) => one.click());
const coming = [...group.querySelectorAll(".opblock")].filter((one) => !one.querySelector(".responses-wrapper"));
return some.length + coming.length;
"""
FOLD = """
const open = [...document.querySelectorAll(".opblock-summary-control[aria-expanded=true]")];
open.forEach((one) => one.click());
return open.length;
"""
# The ids of a page that others of its elements name. Each must be there once, whatever is unfolded.
NAMED = """
const names = ["for", "aria-controls", "aria-labelledby", "aria-describedby", "aria-owns"];
const named = new Set([...document.querySelectorAll(names.map((name) => `[${name}]`).join())].flatMap(
  (one) => names.flatMap((name) => one.getAttribute(name)?.split(" ") ?? [])));
return [...document.querySelectorAll(".opblock-body [id]")].map((one) => one.id).filter((one) => named.has(one));
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
    with Chromium(windowless=True) as made:
        yield made


@pytest.fixture
def browser(stand: Stand, chromium: Chromium) -> Chromium:
    chromium.show_as(*MODES["light"])
    chromium.open(stand.site.base_url + "/docs")
    chromium.wait_for("Revoke a token")
    return chromium


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


def unfold(browser: Chromium, group: int) -> None:
    """Unfolds all of a group, a few at a time: drawing all of it at once takes a browser longer than it is waited for.
    Out of sight, it is laid out once."""
    browser.run("document.querySelector('#viewer').hidden = true")
    deadline = time.monotonic() + LONGEST_SCRIPT
    while browser.run(UNFOLD.replace("GROUP", str(group))):
        assert time.monotonic() < deadline, browser.text
        time.sleep(0.05)  # for the viewer to draw what has come
    browser.run("document.querySelector('#viewer').hidden = false")


def faults(browser: Chromium, known: rules.Rules) -> list[str]:
    """What axe-core finds on the page in each of its looks, and what does not fit in a narrow window."""
    rules.load(browser)
    browser.show_as(*MODES["light"])
    found = known.wide(browser)
    for mode in ("phone-dark", "phone"):
        browser.show_as(*MODES[mode])
        found += [f"{mode}: {one}" for one in known.other(browser, MODES[mode][1])]
    browser.show_as(NARROWEST, "light")
    found += browser.run(BURST) + browser.run(TORN)
    # On a phone, the description of an answer has the full width, not that of a letter.
    widths = browser.run(
        "return [...document.querySelectorAll('.response-col_description')].map((one) => one.offsetWidth)"
    )
    return found + [f"an answer is {width} px wide" for width in widths if 0 < width < NARROWEST / 2]


def test_the_unfolded_page_takes_no_input_and_has_no_axe_violation_and_no_overflow(browser: Chromium) -> None:
    """One test, because unfolding takes most of its time: group by group, because axe-core takes minutes for the page
    with all groups unfolded."""
    known, texts, found, ids, schemas = rules.Rules(), list[str](), list[str](), list[str](), 0
    for group in range(browser.run("return document.querySelectorAll('.opblock-tag-section').length")):
        unfold(browser, group)
        found += faults(browser, known)
        texts.append(browser.text)
        ids += browser.run(NAMED)
        schemas += browser.run("return document.querySelectorAll('.json-schema-2020-12').length")
        fields = "document.querySelectorAll('#viewer input, #viewer textarea, #viewer form')"
        assert browser.run(f"return [...{fields}].filter((one) => one.offsetParent).length") == 0
        while browser.run(FOLD):
            time.sleep(0.05)
    assert not found, "\n".join(found)
    assert ids
    assert len(ids) == len(set(ids))
    assert len(texts) > 5
    assert schemas > 20
    said = "\n".join(texts)
    assert "A code lives 60 seconds and works once" in said
    assert "Try it out" not in said
    assert "Authorize" not in said.replace("An app asks", "")
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
