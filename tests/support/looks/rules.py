"""axe-core on one page after another: all rules once, and in each further look of a page the rules that it can change.

A colour scheme changes colours. A narrow window changes places, and more if it shows or hides something. A text of the
same size, weight and colours on the same ground was looked at before, on this page or on another: the rules of colours
take half the time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from tests.support.browser.webdriver import Chromium
from tests.support.processes.npm import packages

# Rules that run only on request.
ALSO = ("target-size", "label-content-name-mismatch", "focus-order-semantics")
ALL: dict[str, Any] = {"rules": {name: {"enabled": True} for name in ALSO}}
# Between colour schemes nothing but colours changes.
OF_COLOURS = ("color-contrast", "link-in-text-block")
OF_PLACES = ("target-size", "scrollable-region-focusable")
BUT_COLOURS: dict[str, Any] = {"rules": {**ALL["rules"], **{name: {"enabled": False} for name in OF_COLOURS}}}
# Without `preload` axe-core parses the style sheets in each run, for a rule that is off.
_RUN = """
const told = (node) => `\\n    ${node.html}\\n    ${node.failureSummary}`;
return axe.run({resultTypes: ["violations"], preload: {assets: ["media"]}, ...ASKED})
  .then((found) => found.violations.map((one) => `${one.id}: ${one.help}${one.nodes.map(told).join("")}`));
"""
# Whether other things are shown than in the wide window; and the looks of all texts, by what their contrast and links
# in them are judged by.
_LOOKS = """
const all = [...document.querySelectorAll("body *:not(svg *)")];
const shown = all.map((one) => one.checkVisibility({visibilityProperty: true}));
if (WIDE) window.wide = shown;
const differs = !window.wide || window.wide.length !== shown.length
  || shown.some((one, place) => one !== window.wide[place]);
const grounds = new Map([[null, ""]]), ground = (one) => {
  if (!grounds.has(one)) {
    const style = getComputedStyle(one), lies = ["absolute", "fixed", "sticky"].includes(style.position);
    const own = `${style.backgroundColor} ${style.backgroundImage} ${style.opacity}${lies ? " over others" : ""}`;
    const solid = style.backgroundColor.startsWith("rgb(") && style.opacity === "1" && !lies;
    grounds.set(one, solid ? own : `${own} on ${ground(one.parentElement)}`);
  }
  return grounds.get(one);
};
const speaks = (one) => one.matches("input, select, textarea")
  || [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
const look = (one) => {
  const style = getComputedStyle(one), size = parseFloat(style.fontSize), bold = style.fontWeight >= 700;
  return [style.color, ground(one), size >= 24 || (bold && size >= 18.66), style.fontWeight, style.textDecorationLine,
    style.textShadow, style.borderBottomStyle, one.matches("p a, li a, dd a, :disabled")].join("; ");
};
return [differs, [...new Set(all.filter((one, place) => shown[place] && speaks(one)).map(look))]];
"""


def load(browser: Chromium) -> None:
    """Brings axe-core to the current page."""
    browser.devtools("Runtime.evaluate", expression=(packages() / "axe-core" / "axe.min.js").read_text())


def run(browser: Chromium, options: dict[str, Any]) -> list[str]:
    """The violations of the current page, which has axe-core."""
    found: list[str] = browser.run(_RUN.replace("ASKED", json.dumps(options)))
    return found


def only(*rules: str) -> dict[str, Any]:
    """The options to run some rules alone."""
    return {"runOnly": {"type": "rule", "values": rules}}


class Rules:
    """Looks at the pages of a tour. It knows which texts it has looked at, by colour scheme."""

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = defaultdict(set)

    def wide(self, browser: Chromium) -> list[str]:
        """The violations in a wide and light window: by all rules, but by those of colours only if a text looks like
        none before."""
        _, looks = self._looks(browser, wide=True)
        new = looks - self._known["light"]
        return self._run(browser, "light", ALL if new else BUT_COLOURS, new)

    def other(self, browser: Chromium, scheme: str) -> list[str]:
        """The violations in another look of the page that was last seen wide and light: by the rules of colours if a
        text looks like none before. If it is light it is narrow, which asks for the rules of places; and for all if
        other things are shown."""
        differs, looks = self._looks(browser, wide=False)
        new = looks - self._known[scheme]
        if scheme == "light" and differs:
            return self._run(browser, scheme, ALL, new)
        asked = (*(OF_PLACES if scheme == "light" else ()), *(OF_COLOURS if new else ()))
        return self._run(browser, scheme, only(*asked), new) if asked else []

    def _looks(self, browser: Chromium, *, wide: bool) -> tuple[bool, set[str]]:
        differs, looks = browser.run(_LOOKS.replace("WIDE", json.dumps(wide)))
        return differs, set(looks)

    def _run(self, browser: Chromium, scheme: str, options: dict[str, Any], looks: set[str]) -> list[str]:
        found = run(browser, options)
        self._known[scheme].update(() if found else looks)
        return found
