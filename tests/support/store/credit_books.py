"""What a model of credits in plain integers knows: holds, idempotency keys, people and pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

from store.credits.calls import Charge, Hold, StoredReply
from store.credits.credits import Bookkeeping
from store.credits.prices import Price
from store.lifetimes import DAY
from tests.support.store.credit_spender import Spender

BOOKS = Bookkeeping(retention=40 * DAY, entries=6)


Pair = tuple[int, int]


@dataclass
class Standing:
    """A hold of the model; `state` is `held`, `settled` or `released`, and whatever it is, it is over at `ends`."""

    hold: Hold
    pair: Pair
    price: Price
    amount: int
    ends: int
    state: str = "held"
    charged: int = 0


@dataclass
class Record:
    """An idempotency key of the model, until `ends`. `charge` is None while the call is under way."""

    body: bytes
    hold: str
    ends: int
    charge: Charge | None = None
    reply: StoredReply | None = None


@dataclass
class Purse:
    """What the model knows of a person. `entries` are the unfolded ones, time in ms and amount."""

    paid: int = 0
    opening: int = 0
    entries: list[tuple[int, int]] = field(default_factory=list)
    top_ups: dict[str, tuple[int, int]] = field(default_factory=dict)
    begun: bool = False

    def book(self, amount: int, now: int) -> None:
        """An entry, and what is folded for it."""
        self.begun = True
        self.paid += amount
        self.entries.append((now, amount))
        for place, (at, old) in enumerate(list(self.entries)):
            if len(self.entries) <= BOOKS.entries and at > now - BOOKS.retention:
                break
            assert place < 100
            self.opening += old
            self.entries.pop(0)


@dataclass
class Side:
    """What the model knows of a pair. `spent` is by month."""

    limit: int | None = None
    spent: dict[tuple[int, int], int] = field(default_factory=dict)
    token_ends: int = 0
    revoked_at: int | None = None
    app: Spender | None = None
