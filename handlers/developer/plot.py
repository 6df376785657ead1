"""Small plots: the numbers for the templates' SVG, in units of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120
GAP = 0.25
"""The free part of each bar's width."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float


def bars(values: Sequence[int]) -> list[Bar]:
    """A bar for each value; none may be negative. The greatest is as high as the picture, and every non-zero value is
    visible."""
    most, room = max([*values, 1]), WIDTH / max(1, len(values))
    heights = [max(2.0, HEIGHT * value / most) if value > 0 else 0.0 for value in values]
    return [
        Bar(round((place + GAP / 2) * room, 1), round(HEIGHT - height, 1), round(room * (1 - GAP), 1), round(height, 1))
        for place, height in enumerate(heights)
    ]
