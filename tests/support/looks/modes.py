"""The looks of a page that pictures in light and dark do not show: forced colours, paper, and text of twice the size.

Each check is a script that returns complaints. The rules are stated above each; `lost` runs them all on a page.
"""

from __future__ import annotations

from tests.support.browser.webdriver import Chromium

PAPER = 718
"""Pixels: the width of A4 between margins of a centimetre."""
LARGE_TEXT = (360, 1280)
"""Widths in pixels at which the text has twice its size (WCAG 1.4.4)."""

_HELP = """
const ours = document.querySelector("link[href^='/static/latchkey.css']");
const shown = (one) => one.getClientRects().length > 0 && one.checkVisibility({visibilityProperty: true});
const unseen = (one) => one.closest(".unseen, .skip") || (one.offsetWidth <= 1 && one.offsetHeight <= 1);
const numbers = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
const clear = (colour) => numbers(colour)[3] === 0;
const light = (colour) => {
  const [red, green, blue] = numbers(colour).map((one) => one / 255).map(
    (one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (one, other) => {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const backdrop = (one) => {
  for (let at = one; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!clear(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const told = (found, rule) => found.slice(0, 3).map((one) => `${rule}: ${one.outerHTML.slice(0, 160)}`);
"""
# In ordinary colours: what stands out by its background.
_FILLED = """
if (document.querySelector("#viewer")) return false;  // the page of another project
const solid = "body *:not(svg *, img, input, [aria-disabled])";
window.filled = [...document.querySelectorAll(solid)].filter((one) => shown(one) && !unseen(one)
  && !clear(getComputedStyle(one).backgroundColor)
  && getComputedStyle(one).backgroundColor !== backdrop(one.parentElement));
return true;
"""
# In forced colours: what had a background, and every control, has a border, an outline, an underline, or a background
# that still stands out. Shapes, but for logos of others, stand out from what is behind them at 3 to 1 (WCAG 1.4.11).
# What is current differs from its neighbours in more than colour.
_FORCED = """
const drawn = (one) => {
  const style = getComputedStyle(one);
  const sides = ["Top", "Right", "Bottom", "Left"].some((side) => style[`border${side}Style`] !== "none"
    && parseFloat(style[`border${side}Width`]) >= 1
    && contrast(style[`border${side}Color`], backdrop(one.parentElement)) >= 3);
  const filled = !clear(style.backgroundColor) && contrast(style.backgroundColor, backdrop(one.parentElement)) >= 3;
  return sides || filled || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1)
    || style.textDecorationLine.includes("underline") || style.forcedColorAdjust === "none";
};
const controls = [...document.querySelectorAll("button, .button, select, textarea, input")].filter((one) => shown(one)
  && !unseen(one) && !one.matches("[type=checkbox], [type=radio], [type=file], [type=hidden]"));
const shapes = [...document.querySelectorAll("svg :is(rect, path, circle, line, polygon, text)")].filter((one) => {
  const box = one.getBoundingClientRect(), all = one.closest("svg").getBoundingClientRect();
  if (box.width >= all.width && box.height >= all.height) return false;  // the ground of the picture
  return one.checkVisibility() && !one.closest(".mark") && (one.matches("line") || (box.width > 0 && box.height > 0));
});
const faint = shapes.filter((one) => {
  const style = getComputedStyle(one), behind = backdrop(one.closest("svg"));
  const paints = [style.fill, parseFloat(style.strokeWidth) > 0 ? style.stroke : "none"];
  return !paints.some((paint) => paint.startsWith("rgb") && !clear(paint) && contrast(paint, behind) >= 3);
});
const tell = (one) => {
  const style = getComputedStyle(one);
  return [style.fontWeight, style.textDecorationLine, style.borderTopStyle, style.borderBottomStyle,
    style.borderTopWidth, style.borderBottomWidth].join();
};
const others = (one) => [...one.closest("nav, ul, div").querySelectorAll("a:not([aria-current])")];
const same = [...document.querySelectorAll("a[aria-current]")].filter(
  (one) => shown(one) && others(one).some((other) => tell(other) === tell(one)));
return [...told(window.filled.filter((one) => shown(one) && !drawn(one)), "has no border"),
  ...told(controls.filter((one) => !drawn(one)), "a control without a border"),
  ...told(faint, "a shape that is hard to see"), ...told(same, "current by its colour alone")];
"""
# On paper: dark ink on white, nothing that only works on a screen, nothing cut, and some text.
_PAPER = """
if (!ours) return [];
const all = [...document.querySelectorAll("body *:not(svg *)")].filter((one) => shown(one) && !unseen(one));
const pressed = all.filter((one) => one.matches(
  ".bar, body > footer, .tabs, .rules, .pager, .ranges, button, .button, [type=submit], [type=file], [role=search]")
  && !one.matches(".choice"));
const cut = all.filter((one) => getComputedStyle(one).overflow !== "visible" && !one.matches("select, input, img")
  && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 2));
const dark = all.filter((one) => !one.matches("img, .swatch")
  && !clear(getComputedStyle(one).backgroundColor) && light(getComputedStyle(one).backgroundColor) < 0.5);
const pale = all.filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())
  && contrast(getComputedStyle(one).color, backdrop(one)) < 4.5);
const edge = document.documentElement.clientWidth;
const wide = all.filter((one) => one.getBoundingClientRect().right > edge + 0.5);
const empty = document.querySelector("main")?.innerText.trim() ? [] : ["nothing is on the paper"];
return [...told(pressed, "only works on a screen"), ...told(cut, "is cut"), ...told(dark, "prints a dark area"),
  ...told(pale, "is pale"), ...told(wide, "is wider than the paper"), ...empty];
"""
# With large text: what is cut without a sign. What does not fit is found by the script that also looks at phones.
_CUT = """
const all = [...document.querySelectorAll("body *:not(svg *)")].filter((one) => shown(one) && !unseen(one));
return told(all.filter((one) => ["hidden", "clip"].includes(getComputedStyle(one).overflowX)
  && getComputedStyle(one).textOverflow !== "ellipsis" && !one.matches("img, select, input")
  && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 2)), "is cut");
"""
_ZOOM = "document.documentElement.style.fontSize = {}"


def show_forced(browser: Chromium, scheme: str) -> None:
    """Forces colours, as people do who need high contrast: `light` ones or `dark` ones."""
    features = [{"name": "forced-colors", "value": "active"}, {"name": "prefers-color-scheme", "value": scheme}]
    browser.emulate({"features": features})


def show_on_paper(browser: Chromium) -> None:
    """Shows the printed page, for somebody with a dark screen."""
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.emulate({"media": "print", "features": features}, PAPER)


def lost(browser: Chromium, burst: str, turn: int = 0) -> list[str]:
    """What the current page loses in one of these looks. `burst` finds what does not fit. Neighbouring stops are
    alike: an even `turn` takes light forced colours and the narrow window, an odd one the others."""
    found: list[str] = []
    browser.show_as(1100, "light")
    if not browser.run(_HELP + _FILLED):
        return found
    scheme = ("light", "dark")[turn % 2]
    show_forced(browser, scheme)
    found += [f"forced {scheme} colours: {one}" for one in browser.run(_HELP + _FORCED)]
    show_on_paper(browser)
    found += [f"paper: {one}" for one in browser.run(_HELP + _PAPER)]
    width = LARGE_TEXT[turn % 2]
    browser.show_as(width, "light")
    browser.run(_ZOOM.format("'200%'"))
    found += [f"large text, {width} px: {one}" for one in browser.run(burst) + browser.run(_HELP + _CUT)]
    browser.run(_ZOOM.format("''"))
    return found
