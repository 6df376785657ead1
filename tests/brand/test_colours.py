"""Colours of a brand: contrast as WCAG defines it, refusals, and what is derived."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from handlers.core.brand.brand import Brand
from handlers.core.brand.colours import (
    COMFORTABLE,
    DARK,
    LEAST,
    LIGHT,
    OUR_COLOURS,
    LowContrast,
    Scheme,
    check,
    contrast,
    palette,
    parse,
    readable,
)

ROOT = Path(__file__).parent.parent.parent
STYLES = (ROOT / "static" / "latchkey.css").read_text("utf-8")
CUBE = [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in product(range(0, 256, 51), repeat=3)]


def variables(dark: bool) -> dict[str, str]:
    """The variables of our stylesheet."""
    parts = re.findall(r":root \{(.*?)\}", STYLES, re.DOTALL)
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", parts[dark]))


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        pytest.param("#000", "#fff", 21.0, id="black and white"),
        pytest.param("#767676", "#ffffff", 4.54, id="the lightest grey for text on white"),
        pytest.param("#777777", "#FFFFFF", 4.48, id="a grey that is too light"),
        pytest.param("#123456", "#123456", 1.0, id="the same"),
    ],
)
def test_the_contrast_is_that_of_wcag(one: str, other: str, ratio: float) -> None:
    assert round(contrast(parse(one), parse(other)), 2) == ratio


@pytest.mark.parametrize(
    "text", ["", "red", "#12", "#12345", "0d6e63", "#0d6e6g", "#0d6e63 ", "rgb(0,0,0)", "#\u0660\u0660\u0660"]
)
def test_only_hex_colours_are_read(text: str) -> None:
    with pytest.raises(ValueError, match="such as #0d6e63"):
        parse(text)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_surfaces_are_those_of_the_stylesheet(scheme: Scheme) -> None:
    known = variables(scheme is DARK)
    assert {name: parse(known[name]) for name in scheme.surfaces} == scheme.surfaces
    assert parse(known["ink"]) == scheme.ink
    assert known["accent"] == OUR_COLOURS[scheme is DARK]


def test_a_pale_colour_is_refused_with_its_ratio_and_a_better_one() -> None:
    with pytest.raises(LowContrast) as refused:
        check(parse("#ffcc00"), LIGHT)
    assert "1.37:1" in str(refused.value)
    assert "darker one, such as #876c00" in str(refused.value)
    check(parse("#876c00"), LIGHT)
    with pytest.raises(LowContrast, match="choose a lighter one"):
        check(parse("#102040"), DARK)


def test_a_ratio_just_below_is_not_rounded_up() -> None:
    # 4.4958 on our page.
    with pytest.raises(LowContrast, match=r"is 4\.49:1"):
        check(parse("#6f716e"), LIGHT)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_all_that_follows_from_an_accepted_colour_can_be_read(scheme: Scheme) -> None:
    accepted = 0
    for text in CUBE:
        try:
            check(parse(text), scheme)
        except LowContrast:
            continue
        accepted += 1
        found = palette(parse(text), scheme)
        accent, strong, on_accent, wash = map(parse, (found.accent, found.strong, found.on_accent, found.wash))
        assert strong != accent
        assert min(contrast(on_accent, accent), contrast(on_accent, strong)) >= LEAST
        assert min(contrast(accent, wash), contrast(scheme.ink, wash)) >= LEAST
        assert all(contrast(strong, surface) >= LEAST for surface in scheme.surfaces.values())
    assert accepted > 50


@pytest.mark.parametrize("text", CUBE)
def test_every_colour_has_a_readable_relative(text: str) -> None:
    for scheme, least in ((LIGHT, LEAST), (DARK, LEAST), (DARK, COMFORTABLE)):
        found = readable(parse(text), scheme, least)
        assert all(contrast(found, surface) >= least for surface in scheme.surfaces.values())


def test_without_a_brand_pages_have_our_own_colours() -> None:
    assert Brand().styles == ()
