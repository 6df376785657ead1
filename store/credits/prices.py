"""What AI calls cost: tokens by kind, and a price for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MAX_TOKENS = 10**9
"""The most tokens of a kind that an upstream's report counts for; more than any hold covers."""
CACHED = ("cache_read", "cache_write", "cache_write_1h")
INPUT_KINDS = ("input", *CACHED)
KINDS = ("output", *INPUT_KINDS)
"""The kinds of tokens that have a price of their own. No token is of two kinds."""
_PER = 1_000_000


class TokenCounts(NamedTuple):
    """Tokens by kind; no token is in two of them, except that `reasoning` is a part of `output`. `web_search` is the
    number of searches that the model's server made."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0
    web_search: int = 0

    @property
    def prompt(self) -> int:
        """All input, with what was read from and written to a cache."""
        return self.input + self.cache_read + self.cache_write + self.cache_write_1h

    @property
    def counted(self) -> tuple[int, ...]:
        """What rows of usage count: the tokens of each kind, and the searches."""
        return (self.input, self.output, self.cache_read, self.cache_write, self.cache_write_1h, self.web_search)

    @classmethod
    def of_counted(cls, numbers: Sequence[int]) -> TokenCounts:
        """The same from these numbers. A row of an earlier release has no searches."""
        return cls(*numbers[:5])._replace(web_search=sum(numbers[5:6]))

    @property
    def bounded(self) -> TokenCounts:
        """The same, with at most MAX_TOKENS of a kind."""
        if min(self) >= 0 and max(self) <= MAX_TOKENS:
            return self
        return TokenCounts(*(max(0, min(count, MAX_TOKENS)) for count in self))


@dataclass(frozen=True, slots=True)
class Price:
    """A price in whole micro-dollars per million tokens of each kind, and its name in the ledger. A kind without a
    price of its own costs what `input` does. `web_search`: micro-dollars for each search that the model's server makes;
    None if it may make none."""

    version: str
    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    web_search: int | None = None

    def of(self, kind: str) -> int:
        """The price of a kind of tokens."""
        price: int | None = getattr(self, kind)
        return self.input if price is None else price

    @property
    def own_cache(self) -> bool:
        """Whether a kind of cached input has a price of its own."""
        return any(self.of(kind) != self.input for kind in INPUT_KINDS)

    @property
    def dearest_input(self) -> int:
        """The most that a token of input may cost, whatever kind the upstream reports for it."""
        return max(self.input, self.cache_read or 0, self.cache_write or 0, self.cache_write_1h or 0)

    def cost(self, tokens: TokenCounts) -> int:
        """The cost of these tokens and searches in micro-dollars: the exact sum, rounded up once."""
        exact = tokens.input * self.input + tokens.output * self.output
        for kind in CACHED:
            if number := getattr(tokens, kind):
                exact += number * self.of(kind)
        return -(-exact // _PER) + tokens.web_search * (self.web_search or 0)
