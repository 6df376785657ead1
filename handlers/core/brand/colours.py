"""The colours of a brand: their contrast on our surfaces, and all that is derived from them.

Text and links need 4.5:1 (WCAG 2.2, 1.4.3, level AA). The surfaces are those of static/latchkey.css.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LEAST = 4.5
"""The least contrast of text."""
COMFORTABLE = 6.5
"""The contrast of a dark colour that we choose: with less, washed areas could not be told from others."""
Colour = tuple[int, int, int]
"""Red, green and blue, 0 to 255 each."""
OUR_COLOURS = "#0d6e63", "#63cbb9"
"""Of links and buttons in static/latchkey.css, in both schemes."""
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
_WRITTEN = re.compile(r"#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})")


@dataclass(frozen=True, slots=True)
class Scheme:
    """A colour scheme of our stylesheet. `surfaces`: what links and buttons are on, by the names of its variables;
    `away`: the direction in which contrast grows; `wash`: the share of the colour in washed areas."""

    name: str
    surfaces: dict[str, Colour]
    ink: Colour
    away: Colour
    wash: float


LIGHT = Scheme(
    "light",
    {"page": (0xF3, 0xF5, 0xF3), "surface": WHITE, "sunken": (0xF5, 0xF8, 0xF6)},
    (0x17, 0x21, 0x1E),
    BLACK,
    0.12,
)
DARK = Scheme(
    "dark",
    {"page": (0x0F, 0x15, 0x14), "surface": (0x17, 0x1F, 0x1D), "sunken": (0x1D, 0x27, 0x24)},
    (0xE7, 0xEE, 0xEB),
    WHITE,
    0.18,
)


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of one scheme, as CSS writes them: links and buttons, the same under the pointer, text on buttons,
    and washed areas."""

    accent: str
    strong: str
    on_accent: str
    wash: str


class LowContrast(ValueError):
    """A colour that people could not read; the message completes "must be ..."."""


def parse(text: str) -> Colour:
    """The colour of "#rgb" or "#rrggbb". Raises ValueError, which completes "must be ..."."""
    if not _WRITTEN.fullmatch(text):
        raise ValueError("a colour such as #0d6e63")
    digits = text[1:] if len(text) == 7 else "".join(2 * digit for digit in text[1:])
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def written(colour: Colour) -> str:
    """The colour as CSS writes it: "#rrggbb"."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def contrast(one: Colour, other: Colour) -> float:
    """The contrast ratio of two colours, from 1 to 21. WCAG 2.2, "contrast ratio"."""
    brighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def check(colour: Colour, scheme: Scheme) -> None:
    """Raises LowContrast, with the measured ratio and a colour that would do, unless text of this colour can be read on
    all surfaces of the scheme."""
    found, name = _least(colour, scheme)
    if found < LEAST:
        better = written(readable(colour, scheme))
        direction = "darker" if scheme.away == BLACK else "lighter"
        # Cut, not rounded: 4.496 must not read 4.5.
        surface, ratio = written(scheme.surfaces[name]), f"{int(found * 100) / 100:g}:1"
        raise LowContrast(
            f"readable on our {scheme.name} surfaces: its contrast with {name} ({surface}) is {ratio}, and WCAG AA "
            f"asks for {LEAST:g}:1; choose a {direction} one, such as {better}"
        )


def readable(colour: Colour, scheme: Scheme, least: float = LEAST) -> Colour:
    """The colour, or the nearest one on its way to black or white that has this contrast with all surfaces of the
    scheme."""
    for percent in range(101):
        found = _mixed(colour, scheme.away, percent / 100)
        if _least(found, scheme)[0] >= least:
            return found
    raise AssertionError("black or white can be read everywhere")


def palette(colour: Colour, scheme: Scheme) -> Palette:
    """The colours that follow from one that `check` accepts."""
    # Black can't become blacker under the pointer, nor white whiter.
    turned = _luminance(colour) < 0.02 if scheme.away == BLACK else _luminance(colour) > 0.9
    strong = _mixed(colour, (WHITE if scheme.away == BLACK else BLACK) if turned else scheme.away, 0.2)
    on_accent = max((BLACK, WHITE), key=lambda ink: min(contrast(ink, colour), contrast(ink, strong)))
    return Palette(written(colour), written(strong), written(on_accent), written(_washed(colour, scheme)))


def _washed(colour: Colour, scheme: Scheme) -> Colour:
    """A surface with a little of the colour, on which both the colour and ordinary text can be read."""
    share = scheme.wash
    while True:
        found = _mixed(scheme.surfaces["surface"], colour, share)
        if share <= 0 or min(contrast(colour, found), contrast(scheme.ink, found)) >= LEAST:
            return found
        share = max(0.0, share - 0.02)


def _least(colour: Colour, scheme: Scheme) -> tuple[float, str]:
    return min((contrast(colour, surface), name) for name, surface in scheme.surfaces.items())


def _mixed(colour: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(one + (two - one) * share) for one, two in zip(colour, other, strict=True))
    return red, green, blue


def _luminance(colour: Colour) -> float:
    """WCAG 2.2, "relative luminance"."""
    parts = (part / 255 for part in colour)
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


OUR_PALETTES = palette(parse(OUR_COLOURS[0]), LIGHT), palette(parse(OUR_COLOURS[1]), DARK)
