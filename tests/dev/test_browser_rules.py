"""What the browser tests rely on: a click waits for its button, and a mistake that one look of a page has is found."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.support.browser.tour_kit import MODES
from tests.support.browser.webdriver import Chromium
from tests.support.looks.rules import Rules, load

PAGE = """<!DOCTYPE html><html lang="en"><title>A page</title><style>
:root {{ color-scheme: light dark; color: #111; background: #fff; }}
a {{ display: block; padding: 1rem; color: inherit; }}
@media (prefers-color-scheme: dark) {{ :root {{ color: #eee; background: #111; }} }}
{}</style><main><h1>A page</h1><a href="#1"><span>First</span></a><a href="#2">Second</a><a href="#3">Third</a></main>
"""
PHONE, DARK = "(max-width: 30rem)", "(prefers-color-scheme: dark)"
WIDE = "(min-width: 60rem) and (prefers-color-scheme: light)"
CASES = {
    "": ("", []),
    "h1 { color: #ccc; }": ("", ["light: color-contrast", "phone: color-contrast"]),
    "h1 { color: #cdcdcd; }": (WIDE, ["light: color-contrast"]),
    "a { color: #fff; background: #222; }": (WIDE, []),
    "a { color: #fff; background: #222; } h1 { position: absolute; top: 8px; margin: 0; }": (
        WIDE,
        ["light: color-contrast"],
    ),
    "a { color: #999; }": (DARK + " and (min-width: 1px)", []),
    "h1 { color: #333; }": (DARK, ["dark: color-contrast", "phone-dark: color-contrast"]),
    "h1 { color: #bbb; }": (PHONE + " and (prefers-color-scheme: light)", ["phone: color-contrast"]),
    "h1 { color: #444; }": (f"{PHONE} and {DARK}", ["phone-dark: color-contrast"]),
    "span { display: none; }": (PHONE, ["phone: link-name"]),
    "a { width: 9px; height: 9px; padding: 0; overflow: hidden; }": (PHONE, ["phone: target-size"]),
}
"""By a rule of the style sheet: when it applies, and the violations."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium(windowless=True) as made:
        yield made


def test_a_click_waits_for_its_button_and_until_the_page_accepts_clicks(browser: Chromium) -> None:
    script = """
const button = document.createElement("button");
button.textContent = "Go on";
button.setAttribute("aria-disabled", "true");
button.onclick = () => { document.title = button.hasAttribute("aria-disabled") ? "early" : "in time"; };
setTimeout(() => document.body.append(button), 200);
setTimeout(() => button.removeAttribute("aria-disabled"), 400);
"""
    browser.open("data:text/html;charset=utf-8," + quote(f"<!DOCTYPE html><body><script>{script}</script>"))
    browser.click("Go on")
    assert browser.run("return document.title") == "in time"


def test_a_mistake_in_one_look_of_a_page_is_found(browser: Chromium) -> None:
    """Pages come one after another, as on the tour: what passed on one is known on the next."""
    rules = Rules()
    told: dict[str, list[str]] = {}
    for style, (media, _) in CASES.items():
        page = PAGE.format(f"@media {media} {{ {style} }}" if media else style)
        browser.show_as(*MODES["light"])
        browser.open("data:text/html;charset=utf-8," + quote(page))
        load(browser)
        told[style] = []
        for mode in ("light", "dark", "phone-dark", "phone"):
            browser.show_as(*MODES[mode])
            found = rules.wide(browser) if mode == "light" else rules.other(browser, MODES[mode][1])
            told[style] += [f"{mode}: {one.split(':')[0]}" for one in found]
    assert told == {style: wanted for style, (_, wanted) in CASES.items()}
