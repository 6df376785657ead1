"""Payments for credits: what a payment provider says of them, and how the ledger books it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from store import keys
from store.accounts.signin.sessions import Session
from store.credits.credits import MAX_PAID, Bookkeeping
from store.engine.scripts import Scripts
from store.lifetimes import CHECKOUT
from store.refused import Refused, refuse_signed_out
from store.results import NO_WARNING, Warned, decoded

What = Literal["paid", "refunded", "withdrawn", "returned"]
MOST_DISPUTES = 20
"""The most disputes about one payment; a payment rarely has two."""
_USER, _ID = re.compile(r"[0-9a-f]{32}"), re.compile(r"[A-Za-z0-9_]{1,100}")


@dataclass(frozen=True, slots=True)
class Movement:
    """What happened to a payment. `paid`: the person bought credits for `amount` micro-dollars; `refunded`: `amount` is
    the sum of all refunds so far; `withdrawn`: a dispute took `amount`; `returned`: the dispute was won. `payment` and
    `dispute`: their ids at the provider; `at`: when the provider noted it, in seconds; `here`: this site sold the
    credits."""

    user: str
    payment: str
    what: What
    amount: int
    at: int
    dispute: str = ""
    here: bool = True

    def __str__(self) -> str:
        """The movement in a line of the log."""
        return f"{self.payment} {self.what} {self.amount}"


@dataclass(frozen=True, slots=True)
class Booked:
    """The outcome of a movement, in micro-dollars: the balance; what was `bought`; what a reversal has `taken`, below
    zero if it gave back. `warned`: whom a mail goes to; nobody if nothing changed."""

    paid: int
    bought: int
    taken: int
    warned: Warned = NO_WARNING


class Payments:
    """Purchases and reversals. `idle` is the idle lifetime of a session in ms."""

    def __init__(self, scripts: Scripts, idle: int, books: Bookkeeping) -> None:
        self._scripts = scripts
        self._idle = idle
        self._books = books

    async def begin(self, session: Session) -> None:
        """Counts that the signed-in person starts a purchase. Raises SignedOut, Refused("rate_limited")."""
        reply = await self._scripts.run(
            "begin_checkout",
            {**session.keys(), "window": keys.limit(session.user, CHECKOUT.name)},
            idle=self._idle,
            limit=CHECKOUT.limit,
            period=CHECKOUT.period,
        )
        refuse_signed_out(reply)
        if reply.word == "rate_limited":
            raise Refused("rate_limited", retry_after=reply.number("retry"))

    async def book(self, movement: Movement) -> Booked:
        """Books a movement. May be called again, in any order: movements that are known change nothing. Raises
        Refused("not_found") if the person has no account, Refused("invalid_request") for a movement that no ledger can
        have, StoreUnavailable."""
        named = _USER.fullmatch(movement.user) and _ID.fullmatch(movement.payment)
        if not named or (movement.dispute and not _ID.fullmatch(movement.dispute)):
            raise Refused("invalid_request", "The payment has no usable id.")
        least = 0 if movement.what == "refunded" else 1
        if not least <= movement.amount <= MAX_PAID or not 0 <= movement.at < 2**40:
            raise Refused("invalid_request", "The payment has no usable amount or time.")
        reply = await self._scripts.run(
            "book_payment",
            keys.person(movement.user),
            payment=movement.payment,
            what=movement.what,
            amount=movement.amount,
            at=movement.at,
            dispute=movement.dispute,
            max_paid=MAX_PAID,
            most_disputes=MOST_DISPUTES,
            retention=self._books.retention,
            most=self._books.entries,
        )
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        if reply.word == "too_much":
            raise Refused("invalid_request", "The balance or the payment has no room for it.")
        to = reply.rows("to")
        paid, bought, taken = (reply.number(name) for name in ("paid", "bought", "taken"))
        return Booked(paid, bought, taken, decoded(to) if to else NO_WARNING)
