"""The scale of a chart: what its grid lines stand for, and how numbers are written beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from handlers.core.format import counted, money

MOST_LINES = 4
"""Grid lines above the base line."""
_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Measure:
    """What a chart counts. `text` writes an exact value for people, `tick` a round one beside a grid line, and `plain`
    one for programs. `least`: the smallest step between grid lines, in the unit of the values."""

    text: Callable[[int], str]
    tick: Callable[[int], str]
    plain: Callable[[int], str]
    least: int


def calls_text(calls: int) -> str:
    """A number of calls with its noun: "1 call", "12,000 calls"."""
    return counted(calls, "call")


def dollars(micro: int) -> str:
    """An amount of micro-dollars for a table that programs read: "4.99", "0.00015"."""
    whole, part = divmod(abs(micro), 1_000_000)
    decimals = f"{part:06d}"
    return f"{'-' if micro < 0 else ''}{whole}.{decimals[:2]}{decimals[2:].rstrip('0')}"


def _round_money(micro: int) -> str:
    return money(micro).removesuffix(".00")


MONEY = Measure(money, _round_money, dollars, 1)
"""Micro-dollars."""
CALLS = Measure(calls_text, "{:,}".format, str, 1)


def grid(most: int, least: int = 1) -> tuple[int, ...]:
    """The values of the grid lines for values up to `most`, the base line's 0 first: equal steps of 1, 2 or 5 times a
    power of ten, at most `MOST_LINES` of them, of which the last is not below `most`."""
    step = power = least
    while True:
        for factor in _STEPS:
            step = factor * power
            if step * MOST_LINES >= most:
                lines = max(1, -(-most // step))
                return tuple(step * line for line in range(lines + 1))
        power *= 10
