"""Small plots, drawn as SVG by the templates: the numbers they need, in units of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120
GAP = 0.25
"""Part of the room of a bar that is left free beside it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float


def bars(values: Sequence[int]) -> list[Bar]:
    """A bar for each value, none below zero, the greatest as high as the picture. What is not nothing can be seen."""
    most, room = max([*values, 1]), WIDTH / max(1, len(values))
    heights = [max(2.0, HEIGHT * value / most) if value > 0 else 0.0 for value in values]
    return [
        Bar(round((place + GAP / 2) * room, 1), round(HEIGHT - height, 1), round(room * (1 - GAP), 1), round(height, 1))
        for place, height in enumerate(heights)
    ]
