"""Two kinds of requests that must take the same time: what was measured, and what it says.

A test that finds no difference proves nothing: with few samples, or noisy ones, it finds none either. So this is a test
of equivalence. Each sample is a pair of requests, one of each kind, right after one another, in an order that a coin
decides: whatever slows the machine for a while slows both. The interval that holds the median of the differences with
99.9 % confidence, whatever their distribution, follows from their order alone (the sign test). Two kinds take the same
time when all of that interval lies within a bound that was named before; they differ when zero lies outside of it. With
neither, or with both, it is the bound that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from statistics import median

Z = 3.2905
"""Standard deviations beyond which a normal variable lies once in a thousand times, on both sides together."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Times in µs: the medians of both kinds, and of their differences (the first less the second) with the ends of the
    interval. `chance` is the probability that two kinds alike are apart in rank as far as these (Mann and Whitney)."""

    pairs: int
    first: float
    second: float
    difference: float
    low: float
    high: float
    chance: float

    def within(self, bound: float) -> bool:
        """Whether the difference is smaller than this, with 99.9 % confidence."""
        return -bound < self.low and self.high < bound

    @property
    def differs(self) -> bool:
        """Whether there is a difference at all, with the same confidence."""
        return self.low > 0 or self.high < 0


def judge(samples: Sequence[tuple[float, float]]) -> Judged:
    """What pairs of times in µs say. Raises ValueError for fewer than 40 pairs, of which no interval follows."""
    if len(samples) < 40:
        raise ValueError("40 pairs at least")
    differences = sorted(one - other for one, other in samples)
    count = len(differences)
    # How many of `count` tosses of a coin show heads: the normal law, with the correction for steps.
    steps = int(count / 2 - Z * sqrt(count) / 2 - 0.5)
    firsts, seconds = [one for one, _ in samples], [other for _, other in samples]
    return Judged(
        count,
        median(firsts),
        median(seconds),
        median(differences),
        differences[steps],
        differences[count - 1 - steps],
        rank_chance(firsts, seconds),
    )


def rank_chance(firsts: Sequence[float], seconds: Sequence[float]) -> float:
    """The two-sided p of the test of Mann and Whitney, by the normal law and with ties."""
    together = sorted([(value, 0) for value in firsts] + [(value, 1) for value in seconds])
    ranks, ties, at = 0.0, 0.0, 0
    while at < len(together):
        end = at
        while end < len(together) and together[end][0] == together[at][0]:
            end += 1
        alike = end - at
        ranks += (at + end + 1) / 2 * sum(1 for _, kind in together[at:end] if kind == 0)
        ties += alike**3 - alike
        at = end
    one, other, total = len(firsts), len(seconds), len(together)
    spread = sqrt(one * other / 12 * (total + 1 - ties / (total * (total - 1))))
    away = abs(ranks - one * (total + 1) / 2)
    return erfc(away / spread / sqrt(2)) if spread else 1.0
