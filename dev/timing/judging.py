"""Statistics on two kinds of requests that must take the same time.

A test that finds no difference proves nothing: with few or noisy samples it finds none either. So this is a test of
equivalence. Each sample is a pair of requests, one of each kind, right after one another, in random order, so that a
slow moment affects both. The order statistics alone give the interval that holds the median difference with 99.9 %
confidence, for any distribution (the sign test). Two kinds take the same time if the whole interval is within a bound
fixed in advance; they differ if zero is outside the interval. If neither holds, or both, the bound decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from statistics import median

Z = 3.2905
"""Standard deviations that a normal variable exceeds once in a thousand times, both sides together."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Times in µs: the medians of both kinds, and of their differences (the first minus the second) with the ends of
    the interval. `chance` is the probability that equal kinds differ in rank as much as these (Mann and Whitney)."""

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
        """Whether there is any difference, with the same confidence."""
        return self.low > 0 or self.high < 0


def judge(samples: Sequence[tuple[float, float]]) -> Judged:
    """The result for pairs of times in µs. Raises ValueError for fewer than 40 pairs, which give no interval."""
    if len(samples) < 40:
        raise ValueError("40 pairs at least")
    differences = sorted(one - other for one, other in samples)
    count = len(differences)
    # The number of heads in `count` tosses of a coin: normal approximation with continuity correction.
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
    """The two-sided p value of the Mann-Whitney test, by normal approximation and with ties."""
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
