"""What a model of credits in plain integers knows: holds, idempotency keys, people and pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from store.credits.calls import Charge, Hold, StoredReply
from store.credits.credits import Bookkeeping
from store.credits.daily import DailyLimits, slice_of
from store.credits.payments import Movement, What
from store.credits.prices import Price
from store.lifetimes import DAY
from store.wiring import Store
from tests.support.store.credit_spender import FREE, PRICE, Spender

BOOKS = Bookkeeping(retention=40 * DAY, entries=6)


CACHED = Price("cached", 300_000, 1_700_000, 30_000, 375_000, 600_000, web_search=11)
MOST_SEARCHES = 2
"""The searches that each hold covers."""
pairs = st.sampled_from([(person, app) for person in range(2) for app in range(2)])
people = st.integers(0, 1)
some_keys = st.sampled_from([None, None, "a", "b"])
prices = st.sampled_from([PRICE, PRICE, Price("odd", 300_000, 1_700_000), FREE, CACHED])
person_days, app_days = st.sampled_from([0, 70, 70, 150]), st.sampled_from([0, 60, 60, 200])
days = st.tuples(person_days, app_days)
"""Daily limits of a person and of an app."""
which = st.integers(0, 40)
estimates: dict[str, Any] = {
    "pair": pairs,
    "tokens": st.tuples(st.integers(0, 60), st.sampled_from([0, 1, 40, 90, 600]), st.integers(0, 2)),
    "price": prices,
    "lasts": st.sampled_from([30_500, 600_500]),
    "key": some_keys,
    "body": st.sampled_from([b"1", b"1", b"1", b"2"]),
}
movements: dict[str, Any] = {
    "payment": st.sampled_from(["pi_1", "pi_2"]),
    "what": st.sampled_from(["paid", "paid", "refunded", "withdrawn", "returned"]),
    "amount": st.integers(1, 300),
    "at": st.integers(0, 5),
}
few = st.sampled_from([0, 0, 1, 7, 40])
reported = st.tuples(st.integers(0, 70), st.integers(0, 100), few, few, few, st.sampled_from([0, 0, 0, 1, 2, 3]))
"""Tokens of input, output, read from a cache, written to one, written to one for an hour; and searches."""


def fee_at(price: Price) -> int:
    """Micro-dollars of the searches that a hold covers."""
    return MOST_SEARCHES * (price.web_search or 0)


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
    day: int = 0


@dataclass
class Record:
    """An idempotency key of the model, until `ends`. `charge` is None while the call is under way."""

    body: bytes
    hold: str
    ends: int
    charge: Charge | None = None
    reply: StoredReply | None = None


@dataclass
class Bill:
    """A payment of the model. The newest notice of the refunds' sum counts, and the newest of the one dispute."""

    paid: int = 0
    taken: int = 0
    refunds: tuple[int, int] = (0, 0)
    dispute: tuple[int, bool, int] = (-1, True, 0)

    def note(self, what: str, amount: int, at: int) -> tuple[int, int]:
        """What is bought, and what is taken back."""
        bought = 0
        if what == "paid":
            bought = 0 if self.paid else amount
            self.paid += bought
        elif what == "refunded":
            self.refunds = max(self.refunds, (at, amount))
        elif (at, what == "returned") > self.dispute[:2] or self.dispute[0] < 0:
            self.dispute = (at, what == "returned", amount)
        due = min(self.paid, self.refunds[1] + (0 if self.dispute[1] else self.dispute[2]))
        before, self.taken = self.taken, due
        return bought, due - before


@dataclass
class Purse:
    """What the model knows of a person. `entries` are the unfolded ones, time in ms and amount."""

    paid: int = 0
    opening: int = 0
    entries: list[tuple[int, int]] = field(default_factory=list)
    top_ups: dict[str, tuple[int, int]] = field(default_factory=dict)
    begun: bool = False
    by_day: Counter[int] = field(default_factory=Counter)
    bills: dict[str, Bill] = field(default_factory=dict)

    async def pay(self, store: Store, user: str, payment: str, what: What, amount: int, at: int, now: int) -> None:
        """Something happens to a payment: the store books what the model does."""
        dispute = "dp_1" if what in ("withdrawn", "returned") else ""
        booked = await store.payments.book(Movement(user, payment, what, amount, at, dispute))
        bought, taken = self.bills.setdefault(payment, Bill()).note(what, amount, at)
        for entry in (bought, -taken):
            if entry:
                self.book(entry, now)
        assert (booked.paid, booked.bought, booked.taken) == (self.paid, bought, taken)

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


@dataclass
class Slices:
    """What the model knows of an app's daily limit: by day, and by day and shard, what is leased and what was charged
    of calls that began on that day."""

    leased: Counter[int] = field(default_factory=Counter)
    of_shard: Counter[tuple[int, str]] = field(default_factory=Counter)
    spent: Counter[tuple[int, str]] = field(default_factory=Counter)

    def room(self, day: int, shard: str, held: int, wanted: int, limits: DailyLimits) -> int:
        """What the shard may spend, after it took a slice if it had too little."""
        place = day, shard
        left = self.of_shard[place] - self.spent[place] - held
        if wanted > left:
            given = max(0, min(max(slice_of(limits.per_app), wanted - left), limits.per_app - self.leased[day]))
            self.leased[day] += given
            self.of_shard[place] += given
            left += given
        return left


def month_after(now: int) -> datetime:
    """When the month of a time in ms ends."""
    moment = datetime.fromtimestamp(now / 1000, UTC)
    return datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1, tzinfo=UTC)


brisk = settings(
    max_examples=15,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
