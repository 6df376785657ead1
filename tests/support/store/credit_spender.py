"""An app that spends a person's credits, directly on a store, and a recount of the credits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from store import keys
from store.apps.registration import Registration
from store.credits.calls import CallEstimate, Charge, Hold, ReplayedCall, StoredReply
from store.credits.credits import Balance, Bookkeeping
from store.credits.prices import Price, TokenCounts
from store.lifetimes import AI, AI_REPLY, CREDITS_READ
from store.results import Caller
from store.wiring import Store
from tests.support.store.second_factors import shown
from tests.support.store.world import VISITOR, World

SPENDING = ("profile", "credits:read", "credits:spend", "apps:read")
DOLLAR = 1_000_000
PER = 1_000_000  # prices are for so many tokens
PRICE = Price("2026-01", PER, PER)
"""A micro-dollar per token, so that amounts are numbers of tokens."""
FREE = Price("free", 0, 0)
TEN_MINUTES = 600_000
REPLY = StoredReply("application/json", b'{"said":"hello","credits":', b"}")


def cost(
    price: Price, input_tokens: int, output_tokens: int, read: int = 0, write: int = 0, hour: int = 0, searches: int = 0
) -> int:
    """Whole micro-dollars, rounded up once. `read`, `write`, `hour`: input that was read from a cache, written to one,
    and written to one for an hour. `searches` have a price by the call."""
    exact = input_tokens * price.input + output_tokens * price.output
    for tokens, own in ((read, price.cache_read), (write, price.cache_write), (hour, price.cache_write_1h)):
        exact += tokens * (price.input if own is None else own)
    return -(-exact // PER) + searches * (price.web_search or 0)


def held_at(price: Price) -> Price:
    """The price of a hold: all input may be of the dearest kind."""
    own = (price.cache_read, price.cache_write, price.cache_write_1h)
    return Price(price.version, max(price.input, *(one or 0 for one in own)), price.output)


def affordable(room: int, price: Price, input_tokens: int, output_tokens: int) -> int | None:
    """The most output tokens, up to those requested, that the room covers, found by bisection; None if the room is too
    small even without output."""
    if cost(price, input_tokens, 0) > room:
        return None
    enough, too_many = 0, output_tokens + 1
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        enough, too_many = (middle, too_many) if cost(price, input_tokens, middle) <= room else (enough, middle)
    return enough


async def a_world(store: Store) -> World:
    """A signed-in person and an app that may spend."""
    return await World.make(store, scopes=SPENDING)


@dataclass
class Spender:
    """An app with an access token. Before each hold it empties the person's window, so that a test may place any number
    of holds."""

    store: Store
    caller: Caller

    @classmethod
    async def make(cls, world: World, app: Registration | None = None, scopes: tuple[str, ...] = SPENDING) -> Spender:
        """An app with a token from the operator."""
        tokens = await world.store.tokens.mint(world.user, app or world.app, scopes)
        return cls(world.store, world.caller(tokens.access_token))

    def estimate(self, input_tokens: int = 0, output_tokens: int = 0, **fields: Any) -> CallEstimate:
        """A call whose cost in micro-dollars is its number of tokens."""
        least = min(output_tokens, 1)
        made = CallEstimate("echo", PRICE, input_tokens, output_tokens, least_output=least, lasts=TEN_MINUTES)
        return replace(made, **fields)

    async def ask(self, input_tokens: int = 0, output_tokens: int = 0, **fields: Any) -> Hold | ReplayedCall:
        """Requests a hold of this many micro-dollars, unless `fields` say otherwise."""
        await self.store.client.delete(keys.limit(self.caller.user, AI.name))
        return await self.store.calls.hold(
            self.caller, "credits:spend", self.estimate(input_tokens, output_tokens, **fields)
        )

    async def hold(self, input_tokens: int = 0, output_tokens: int = 0, **fields: Any) -> Hold:
        """Requests a hold and gets it."""
        held = await self.ask(input_tokens, output_tokens, **fields)
        assert isinstance(held, Hold)
        return held

    async def settle(
        self, hold: Hold, input_tokens: int, output_tokens: int = 0, reply: StoredReply | None = None
    ) -> Charge:
        """Settles an open hold."""
        charge = await self.store.calls.settle(hold, TokenCounts(input_tokens, output_tokens), reply)
        assert charge is not None
        return charge

    async def spend(self, amount: int, **fields: Any) -> Charge:
        """A complete call that costs this many micro-dollars."""
        return await self.settle(await self.hold(amount, **fields), amount)

    async def balance(self) -> Balance:
        """The balance that the app sees."""
        await self.store.client.delete(keys.limit(self.caller.user, CREDITS_READ.name, self.caller.client))
        balance, _ = await self.store.credits.balance(self.caller, "credits:read")
        return balance

    async def limit(self, world: World, limit: int | None) -> None:
        """The person sets what the app may spend in a month."""
        await shown(self.store, world.session)
        await self.store.credits.set_spend_limit(world.session, self.caller.client, limit, VISITOR)


def booked(store: Store, **books: int) -> Store:
    """The same store with other credit limits."""
    made = Store(
        store.client, store.keys, store.hasher, session_idle=86400, session_lifetime=86400, books=Bookkeeping(**books)
    )
    made.apps.settle = made.fsck.settle = 0
    made.rates.ai = store.rates.ai
    return made


@dataclass(frozen=True)
class Recount:
    """A person's credits, recounted. `charged` are the holds with charges in the ledger, `holds` the open ones, `marks`
    the settled ones, `replies` the names of the kept replies."""

    paid: int
    opening: int
    amounts: tuple[int, ...]
    charged: tuple[str, ...]
    holds: dict[str, int]
    marks: dict[str, int]
    replies: frozenset[str]

    @property
    def held(self) -> int:
        """The sum of the holds."""
        return sum(self.holds.values())


async def _now(client: Any) -> int:
    seconds, micros = await client.time()
    return int(seconds) * 1000 + int(micros) // 1000


async def recount(store: Store, user: str) -> Recount:
    """Recounts a person's credits from the raw rows and compares them: opening and ledger with the balance, the holds
    with the balance and with the expiry of their key, the sum of the replies with the replies. At last compares with
    the operator's view."""
    names, client = keys.credits(user), store.client
    raw: Any = await client.hgetall(names["balance"])
    row = {name.decode(): int(value) for name, value in raw.items()}
    paid, opening = row.get("paid", 0), row.get("opening", 0)
    amounts, charged, total = [], [], opening
    entries: Any = await client.xrange(names["ledger"])
    for _, entry in entries:
        amounts.append(int(entry[b"amount"]))
        charged += [entry[b"hold"].decode()] if b"hold" in entry else []
        total += amounts[-1]
        assert int(entry[b"paid"]) == total, "each entry says what the balance was after it"
    assert total == paid, "opening and ledger are the balance"
    assert len(set(charged)) == len(charged), "each hold ends once"

    now = await _now(client)
    holds, marks, ends = {}, {}, {}
    rows: Any = await client.hgetall(names["holds"])
    for hold, text in rows.items():
        amount, end, _ = text.decode().split(" ", 2)
        ends[hold.decode()] = int(end)
        if int(end) > now:
            holds[hold.decode()] = int(amount)
    async for key in client.scan_iter(keys.settled(user, "*"), count=1000):
        mark: Any = await client.get(key)
        if mark:
            marks[key.decode().rpartition(":")[2]] = int(mark.split(b" ")[0].removeprefix(b"s"))
    covered = paid + row.get("reversed", 0)
    assert 0 <= sum(holds.values()) <= covered, "only a reversal leaves less than is held"
    # fakeredis may report a millisecond less than was set.
    last = max(ends.values(), default=0)
    assert not ends or await client.pexpiretime(names["holds"]) >= last - 1, "no hold ends before its time"

    kept, size = set(), 0
    members: Any = await client.zrange(names["replies"], 0, -1, withscores=True)
    for member, kept_at in members:
        length, _, name = member.decode().partition(" ")
        size += int(length)
        if kept_at + AI_REPLY > now:
            assert await client.strlen(keys.reply_prefix(user) + name) == int(length)
            kept.add(name)
    assert not members or row.get("reply_bytes", 0) == size, "the sum of the replies is a recount"

    account = await store.credits.show(user)
    assert (account.paid, account.opening) == (paid, opening)
    then, shown = await _now(client), Counter(hold.amount for hold in account.holds)
    assert account.held == sum(hold.amount for hold in account.holds)
    # A hold may expire during these reads.
    assert Counter(amount for hold, amount in holds.items() if ends[hold] > then) <= shown <= Counter(holds.values())
    return Recount(paid, opening, tuple(amounts), tuple(charged), holds, marks, frozenset(kept))
