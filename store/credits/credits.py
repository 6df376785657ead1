"""A person's credits: balance, holds, ledger and grants. Amounts are whole micro-dollars."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from store import keys
from store.accounts.signin.sessions import Session
from store.crypto.seal import fingerprint
from store.engine.scripts import Reply, Scripts
from store.lifetimes import CREDIT_KEY, CREDITS_READ, PROOF, SPENDING_MAIL, UNDO_LINK
from store.moments import at
from store.names import check_credit_reason
from store.oauth.budgets import amounts
from store.oauth.guard import admitted
from store.phrases import Phrase
from store.refused import Refused, reason_of, refuse_signed_out, refuse_unproved
from store.results import Allowance, Caller, Profile, Visitor, Window, allowance_of, profile_of

CURRENCY = "USD"
SCALE = 6
"""An amount is this many decimal places of the currency."""
MAX_AMOUNT = 10**12
"""The most that one grant adds or takes: a million dollars."""
MAX_PAID = 10**15
ENTRIES_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """How long (ms) and how many entries stay in the ledger before they are folded into the opening balance."""

    retention: int = 400 * 86_400_000
    entries: int = 10_000


@dataclass(frozen=True, slots=True)
class AppLimit:
    """The caller's spending limit for a calendar month (UTC); `used` is charged or held."""

    limit: int
    used: int
    resets_at: datetime


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance as apps see it: `paid` is the sum of the ledger, `held` the most that calls in progress may cost."""

    paid: int
    held: int
    app_limit: AppLimit | None = None

    @property
    def spendable(self) -> int:
        """The amount left to spend, in micro-dollars; 0 if a reversal left less than is held."""
        return max(0, self.paid - self.held)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A line of the ledger. `kind` is `grant`, `charge`, `purchase` or `reversal`; `paid` is the balance afterwards. A
    charge has client, model, tokens, price version and hold; a grant has `reason`. A purchase has the id of its
    `payment`; a reversal too, and its `cause`, `refund` or `dispute`; its amount is above zero if it gave back. No
    token is in two of the counts; entries of earlier releases have all input in `input_tokens`."""

    entry_id: str
    at: datetime
    kind: str
    amount: int
    paid: int
    reason: str = ""
    client: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    price_version: str = ""
    hold: str = ""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    web_searches: int = 0
    payment: str = ""
    cause: str = ""

    @property
    def all_input_tokens(self) -> int:
        """All input, with what was read from and written to a cache."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.cache_write_1h_tokens


@dataclass(frozen=True, slots=True)
class OpenHold:
    """An open hold: its app, its amount, and when it expires."""

    client: str
    amount: int
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Account:
    """A person's credits, newest entries first. `opening` is the sum of the folded entries, and `opening_at` the time
    of the newest of these; opening and all entries add up to `paid`. `mails`: whether the person wants mails about
    limits; only the person's own page asks."""

    paid: int
    held: int
    opening: int
    opening_at: datetime | None
    holds: tuple[OpenHold, ...]
    entries: tuple[LedgerEntry, ...]
    mails: bool = True

    @property
    def spendable(self) -> int:
        """The amount left to spend, in micro-dollars; 0 if a reversal left less than is held."""
        return max(0, self.paid - self.held)


@dataclass(frozen=True, slots=True)
class Spending:
    """Charges of apps on the days up to `today` (UTC): day, client id and sum, for each day and app with charges.
    `whole`: the sums include every entry of those days."""

    today: date
    whole: bool
    charged: tuple[tuple[date, str, int], ...]


@dataclass(frozen=True, slots=True)
class Granted:
    """The balance after a grant; `replayed`: an earlier call with the same key made this grant."""

    balance: Balance
    replayed: bool


class Credits:
    """Credits as apps, people and the operator see them, and the operator's grants. `idle` is the idle lifetime of a
    session in ms."""

    def __init__(self, scripts: Scripts, idle: int, books: Bookkeeping) -> None:
        self._scripts = scripts
        self._idle = idle
        self._books = books

    async def balance(self, caller: Caller, needed: str) -> tuple[Balance, Window]:
        """The balance as the app sees it. Raises Refused("invalid_token", "insufficient_scope" or "rate_limited")."""
        reply = await self._scripts.run(
            "read_balance",
            {
                **keys.token(caller.user, caller.client, caller.family, caller.generation),
                **keys.credits(caller.user),
                "window": keys.limit(caller.user, CREDITS_READ.name, caller.client),
            },
            needed=caller.demands(needed),
            limit=CREDITS_READ.limit,
            period=CREDITS_READ.period,
            proof=caller.proof,
            client=caller.client,
        )
        window = admitted(reply, CREDITS_READ, needed)
        limit = None
        if reply.raw("spend_limit"):
            limit = AppLimit(reply.number("spend_limit"), reply.number("used"), at(reply.number("resets_at")))
        return Balance(reply.number("paid"), reply.number("held"), limit), window

    async def grant(self, user: str, amount: int, *, reason: str = "", key: str | None = None) -> Granted:
        """Adds to a person's credits, or takes from them if `amount` is negative; the same key works once in 90 days.
        Raises Refused("not_found", "invalid_request", "idempotency_mismatch", or "insufficient_credits" for more than
        is spendable)."""
        if not 0 < abs(amount) <= MAX_AMOUNT:
            raise Refused("invalid_request", f"amount is 1 to {MAX_AMOUNT} micro-dollars, or as many below zero.")
        try:
            check_credit_reason(reason)
        except ValueError as error:
            raise Refused("invalid_request", reason_of(error)) from None
        if key is not None and (not 1 <= len(key) <= 255 or not key.isprintable()):
            raise Refused("invalid_request", "An idempotency key is 1 to 255 printable characters.")
        # A grant without a key gets one, so that it can be sent again if the answer is lost.
        return await self._grant(user, amount, reason, secrets.token_hex(16) if key is None else key, first=False)

    async def begin(self, user: str, amount: int, *, reason: str) -> Granted:
        """Gives first credits to a person who never had any; otherwise does nothing. Raises Refused("not_found")."""
        return await self._grant(user, amount, reason, f"first {secrets.token_hex(16)}", first=True)

    async def _grant(self, user: str, amount: int, reason: str, key: str, *, first: bool) -> Granted:
        reply = await self._scripts.run(
            "grant_credit",
            {**keys.person(user), **keys.idempotency(user, "", fingerprint(key))},
            amount=amount,
            reason=reason,
            digest=hashlib.sha256(f"{amount} {reason}".encode()).hexdigest()[:32],
            first="1" if first else "",
            max_paid=MAX_PAID,
            keep=CREDIT_KEY,
            retention=self._books.retention,
            most=self._books.entries,
            detail=f"{exact_dollars(amount)} {CURRENCY}",
        )
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        if reply.word == "mismatch":
            raise Refused("idempotency_mismatch", Phrase("This key was already used with another amount or reason."))
        if reply.word == "too_much":
            raise Refused("invalid_request", Phrase("A balance can't exceed %(most)s micro-dollars.", most=MAX_PAID))
        if reply.word == "insufficient_credits":
            raise Refused("insufficient_credits", Phrase("The balance is too low to take that much."))
        return Granted(Balance(reply.number("paid"), reply.number("held")), reply.number("replayed") == 1)

    async def show(self, user: str, *, before: str = "", most: int = ENTRIES_AT_ONCE) -> Account:
        """A person's credits for the operator, with the newest entries before the entry `before`. Raises
        Refused("not_found", or "invalid_request" if `before` is no entry id)."""
        reply = await self._scripts.run("show_credits", keys.person(user), before=_place(before), most=most)
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        return _account(reply)

    async def of(self, session: Session, *, before: str = "", most: int = ENTRIES_AT_ONCE) -> tuple[Profile, Account]:
        """The signed-in person and their credits. Raises SignedOut, Refused("invalid_request") if `before` is no entry
        id."""
        reply = await self._scripts.run(
            "read_credits",
            {**session.keys(), **keys.credits(session.user)},
            idle=self._idle,
            before=_place(before),
            most=most,
        )
        refuse_signed_out(reply)
        return profile_of(session.user, reply), _account(reply)

    async def choose_mails(self, session: Session, *, wanted: bool) -> None:
        """Sets whether the signed-in person gets mails about limits and a low balance. Raises SignedOut."""
        refuse_signed_out(
            await self._scripts.run(
                "choose_credit_mails", session.keys(), idle=self._idle, wanted="1" if wanted else ""
            )
        )

    async def spending(self, session: Session, days: int, most: int = 5000) -> Spending:
        """The charges of apps today and on the days before, `days` in all, from the newest `most` entries. Raises
        SignedOut."""
        reply = await self._scripts.run("read_spending", session.keys(), idle=self._idle, days=days, most=most)
        refuse_signed_out(reply)
        rows = ((_day(int(day)), client.decode(), int(amount)) for day, client, amount in reply.rows("rows"))
        return Spending(_day(reply.number("today")), reply.number("whole") == 1, tuple(rows))

    async def set_spend_limit(
        self,
        session: Session,
        client: str,
        limit: int | Literal[""] | None,
        visitor: Visitor,
        budgets: Mapping[str, int] | None = None,
    ) -> Allowance | None:
        """Sets what a connected app may spend in a calendar month, in micro-dollars; None removes the limit, "" leaves
        it. `budgets`: new amounts of the app's budgets, by type; a type without a budget is ignored. Returns the
        notice to mail to the person if that is more than before. Raises SignedOut, Unproved unless the person
        re-authenticated within 10 minutes, Refused("not_found") for an app that may not spend at all."""
        reply = await self._scripts.run(
            "set_spend_limit",
            {
                **session.keys(),
                "grant": keys.grant(session.user, client),
                "mails": keys.limit(session.user, SPENDING_MAIL.name),
            },
            client=client,
            spend_limit="none" if limit is None else limit,
            idle=self._idle,
            mails_most=SPENDING_MAIL.limit,
            mails_period=SPENDING_MAIL.period,
            raise_kept=UNDO_LINK,
            proof=PROOF,
            amounts=amounts((budgets or {}).items()),
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        refuse_unproved(reply)
        if reply.word == "not_found":
            raise Refused("not_found", "This app is not connected, or may not spend.")
        return allowance_of(reply)


def exact_dollars(amount: int) -> str:
    """Micro-dollars as exact dollars."""
    whole_part, part = divmod(abs(amount), 10**SCALE)
    return f"{'-' if amount < 0 else ''}{whole_part}.{part:0{SCALE}}"


def _place(before: str) -> str:
    """A position in the ledger: the id of an entry, or "" for its newest end."""
    # Both parts fit in 64 bits, and the first id is greater than the least possible one.
    if before and not re.fullmatch(r"[1-9][0-9]{0,17}-[0-9]{1,18}", before):
        raise Refused("invalid_request", "This is no entry of the ledger.")
    return before


def _day(number: int) -> date:
    """The date of a day number since the epoch."""
    return date(1970, 1, 1) + timedelta(days=number)


def _account(reply: Reply) -> Account:
    opening_at = reply.number("opening_at")
    return Account(
        reply.number("paid"),
        reply.number("held"),
        reply.number("opening"),
        at(opening_at) if opening_at else None,
        tuple(OpenHold(client.decode(), int(amount), at(int(ends))) for client, amount, ends in reply.rows("standing")),
        tuple(entry_of(row) for row in reply.rows("entries")),
        "mails" not in reply.fields or reply.number("mails") == 1,
    )


def entry_of(row: list[object]) -> LedgerEntry:
    """The entry in a row of the ledger."""
    entry_id, flat = row
    assert isinstance(entry_id, bytes) and isinstance(flat, list)
    fields = {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2], strict=True)}
    return LedgerEntry(
        entry_id.decode(),
        at(int(entry_id.partition(b"-")[0])),
        fields["kind"],
        int(fields["amount"]),
        int(fields["paid"]),
        fields.get("reason", ""),
        fields.get("client", ""),
        fields.get("model", ""),
        int(fields.get("input", 0)),
        int(fields.get("output", 0)),
        fields.get("price", ""),
        fields.get("hold", ""),
        int(fields.get("cache_read", 0)),
        int(fields.get("cache_write", 0)),
        int(fields.get("cache_write_1h", 0)),
        int(fields.get("web_search", 0)),
        payment=fields.get("payment", ""),
        cause=fields.get("cause", ""),
    )
