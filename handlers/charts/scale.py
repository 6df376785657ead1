"""The scale of a chart: what its grid lines stand for, and how numbers are written beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from handlers.core.format import money_places, plain_dollars
from handlers.core.words.wording import Wording

MOST_LINES = 4
"""Grid lines above the base line."""
_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Measure:
    """What a chart counts. `text` writes an exact value for people, `cell` the same below a heading that names what is
    counted, `ticks` the values beside all grid lines."""

    text: Callable[[Wording, int], str]
    cell: Callable[[Wording, int], str]
    ticks: Callable[[Wording, Sequence[int]], list[str]]


def _calls(wording: Wording, calls: int) -> str:
    _n = wording.language.plain_n
    return _n("%(count)s call", "%(count)s calls", calls)


def _number(wording: Wording, count: int) -> str:
    return wording.language.number(count)


def _money(wording: Wording, micro: int) -> str:
    return wording.total(micro)


def _money_ticks(wording: Wording, values: Sequence[int]) -> list[str]:
    whole = all(value % 1_000_000 == 0 for value in values)
    places = 0 if whole else money_places(values)
    return [wording.money(value, places) for value in values]


def _number_ticks(wording: Wording, values: Sequence[int]) -> list[str]:
    return [wording.language.number(value) for value in values]


MONEY = Measure(_money, _money, _money_ticks)
"""Micro-dollars."""
CALLS = Measure(_calls, _number, _number_ticks)
NUMBER = Measure(_number, _number, _number_ticks)
"""Anything else that the heading names."""


def dollars(micro: int) -> str:
    """An amount of micro-dollars for programs: "4.99", "0.00015", "-1.50"."""
    return f"{'-' if micro < 0 else ''}{plain_dollars(abs(micro))}"


def grid(most: int) -> tuple[int, ...]:
    """The values of the grid lines for values up to `most`, the base line's 0 first: equal steps of 1, 2 or 5 times a
    power of ten, at most `MOST_LINES` of them, of which the last is not below `most`."""
    step = power = 1
    while True:
        for factor in _STEPS:
            step = factor * power
            if step * MOST_LINES >= most:
                lines = max(1, -(-most // step))
                return tuple(step * line for line in range(lines + 1))
        power *= 10
