"""Credits against plain integers: any calls in any order by several apps and people, time going by. SPEC 2.4, 4.6."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from store.credits.calls import Charge, Hold, ReplayedCall, StoredReply
from store.credits.credits import AppLimit, Balance
from store.credits.prices import Price, TokenCounts
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.lifetimes import ACCESS_TOKEN, AI_REPLY, CREDIT_KEY, DAY, GRACE
from store.wiring import Store
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store import credit_books as drawn
from tests.support.store.credit_books import BOOKS, Pair, Purse, Record, Side, Slices, Standing, brisk, month_after
from tests.support.store.credit_spender import Spender, a_world, affordable, cost, held_at, recount
from tests.support.store.world import VISITOR, refusal_of

pytestmark = pytest.mark.slow

T = TypeVar("T")
RING = Keys(KeyRing.parse(KeyRing.generate(1)))
MOST_EACH = 4


class Credits(RuleBasedStateMachine):
    """Makes every call to the store and to the model; recounts the accounts that each step touched."""

    url = "memory"
    clock: FakeClock | None = None

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.run(self.open())

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    async def open(self) -> None:
        """Two people and two apps on one store, where a person has four calls under way at most."""
        client = await connect(self.url)
        hasher = PasswordHasher(8192, 1, workers=1)
        self.store = Store(client, RING, hasher, session_idle=10**9, session_lifetime=10**9, books=BOOKS)
        self.store.calls.most_each = MOST_EACH
        self.people = [await a_world(self.store), await a_world(self.store)]
        self.apps = [world.app for world in self.people]
        self.purses = [Purse(), Purse()]
        self.sides = {(person, app): Side() for person in range(2) for app in range(2)}
        self.holds: list[Standing] = []
        self.records: dict[tuple[Pair, str], Record] = {}
        self.slices = [Slices(), Slices()]
        self.touched: set[int] = set()
        for pair in self.sides:
            await self.reconnect(pair)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()

    async def reconnect(self, pair: Pair) -> None:
        side = self.sides[pair]
        side.app = await Spender.make(self.people[pair[0]], self.apps[pair[1]])
        side.token_ends, side.revoked_at = await self.now() + ACCESS_TOKEN, None

    async def now(self) -> int:
        """The store's time in ms."""
        seconds, micros = await self.store.client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def of(self, pair: Pair) -> tuple[Side, Spender, Purse, int]:
        """All about a pair, and the time. What is over by now is forgotten."""
        side, now = self.sides[pair], self.run(self.now())
        self.touched.add(pair[0])
        assert side.app is not None
        self.records = {key: record for key, record in self.records.items() if record.ends > now}
        return side, side.app, self.purses[pair[0]], now

    def held(self, person: int, now: int, app: int | None = None) -> int:
        """The sum of the holds of a person, or of one pair."""
        return sum(
            one.amount
            for one in self.holds
            if one.state == "held" and one.ends > now and one.pair[0] == person and app in (None, one.pair[1])
        )

    def shard(self, pair: Pair) -> str:
        return self.people[pair[0]].user[:3]

    def on_lease(self, pair: Pair, now: int) -> list[Standing]:
        """The open holds of today that count for the app's daily limit in this person's shard."""
        return [
            one
            for one in self.holds
            if (one.pair[1], self.shard(one.pair), one.day) == (pair[1], self.shard(pair), now // DAY)
            and (one.hold.leased, one.state) == (True, "held")
            and one.ends > now
        ]

    def standing(self, person: int, now: int) -> int:
        """How many open holds a person has."""
        return sum(one.state == "held" and one.ends > now and one.pair[0] == person for one in self.holds)

    def spent(self, pair: Pair, now: int) -> int:
        """What the pair was charged in this month."""
        moment = datetime.fromtimestamp(now / 1000, UTC)
        return self.sides[pair].spent.get((moment.year, moment.month), 0)

    @rule(person=drawn.people, amount=st.integers(-150, 300).filter(bool), key=drawn.some_keys, first=st.booleans())
    def top_up(self, person: int, amount: int, key: str | None, first: bool = False) -> None:
        purse, world, now = self.purses[person], self.people[person], self.run(self.now())
        self.touched.add(person)
        if first and key is None:
            granted = self.run(self.store.credits.begin(world.user, abs(amount), reason="Welcome"))
            assert granted.replayed == purse.begun
            if not purse.begun:
                purse.book(abs(amount), now)
            return
        call = self.store.credits.grant(world.user, amount, key=key)
        before, ends = purse.top_ups.get(key or "", (0, 0))
        if key and ends > now:
            if before != amount:
                assert self.run(refusal_of(call)) == "idempotency_mismatch"
                return
            assert self.run(call).replayed
            return
        if amount < 0 and purse.paid + amount < self.held(person, now):
            assert self.run(refusal_of(call)) == "insufficient_credits"
            return
        granted = self.run(call)
        purse.book(amount, now)
        assert granted.balance == Balance(purse.paid, self.held(person, now))
        if key:
            purse.top_ups[key] = (amount, now + CREDIT_KEY)

    @rule(person=drawn.people, **drawn.movements)
    def pay(self, person: int, **movement: Any) -> None:
        self.touched.add(person)
        self.run(self.purses[person].pay(self.store, self.people[person].user, now=self.run(self.now()), **movement))

    @rule(**drawn.estimates)
    def hold(
        self, pair: Pair, tokens: tuple[int, int, int], price: Price, lasts: int, key: str | None, body: bytes
    ) -> None:
        side, app, purse, now = self.of(pair)
        if side.revoked_at is None and side.token_ends <= now:
            self.run(self.reconnect(pair))
            side, app, purse, now = self.of(pair)
        (i, o, least), fee = tokens, drawn.fee_at(price)
        call = app.ask(i, o, least_output=least, price=price, lasts=lasts, key=key, body=body, fee=fee)
        refusal, room = None, purse.paid - self.held(pair[0], now)
        code = "insufficient_credits"
        if side.limit is not None:
            left = side.limit - self.spent(pair, now) - self.held(pair[0], now, pair[1])
            room, code = (left, "app_spend_limit") if left < room else (room, code)
        daily, today = self.store.calls.daily, now // DAY
        if daily.per_person:
            left = daily.per_person - purse.by_day[today] - self.held(pair[0], now)
            room, code = (left, "person_spend_limit") if left < room else (room, code)
        output = affordable(max(room, 0) - fee, held_at(price), i, o)
        record = self.records.get((pair, key)) if key else None
        if side.revoked_at is not None or side.token_ends <= now:
            refusal = "invalid_token"
        elif record and record.body != body:
            refusal = "idempotency_mismatch"
        elif record and record.charge is None:
            refusal = "idempotency_in_progress"
        elif record and record.reply is None:
            refusal = "idempotency_reply_gone"
        elif not record and self.standing(pair[0], now) >= MOST_EACH:
            refusal = "rate_limited"
        elif not record and (output is None or output < min(least, o)):
            refusal = code
        elif not record and daily.per_app and output is not None and (amount := cost(held_at(price), i, output) + fee):
            held = sum(one.amount for one in self.on_lease(pair, now))
            room = self.slices[pair[1]].room(today, self.shard(pair), held, amount, daily)
            if room < amount and (
                (output := affordable(room - fee, held_at(price), i, o)) is None or output < min(least, o)
            ):
                refusal = "app_spend_limit"
        if refusal:
            assert self.run(refusal_of(call)) == refusal
            return
        answer = self.run(call)
        if record:
            assert isinstance(answer, ReplayedCall)
            assert (answer.stored, answer.charge) == (record.reply, record.charge)
            return
        assert isinstance(answer, Hold)
        assert output is not None
        assert (answer.output_tokens, answer.amount) == (output, cost(held_at(price), i, output) + fee)
        self.holds.append(Standing(answer, pair, price, answer.amount, now + lasts, day=today))
        if key:
            self.records[pair, key] = Record(body, answer.hold_id, now + lasts)

    def record_of(self, one: Standing) -> tuple[tuple[Pair, str], Record] | None:
        """The idempotency key that stands for this call."""
        found = [(key, record) for key, record in self.records.items() if record.hold == one.hold.hold_id]
        return found[0] if found else None

    @rule(used=drawn.reported, replied=st.booleans(), **drawn.estimates)
    def call(self, used: tuple[int, ...], replied: bool, **call: Any) -> None:
        """A hold and its settlement."""
        self.hold(**call)
        self.settle(0, used, replied)

    def pick(self, n: int) -> Standing | None:
        """One of the open holds, or any earlier one."""
        now = self.run(self.now())
        standing = [one for one in self.holds if one.state == "held" and one.ends > now]
        some = standing if standing and n % 4 else self.holds
        return some[-1 - n // 4 % len(some)] if some else None

    @rule(n=drawn.which, used=drawn.reported, replied=st.booleans())
    def settle(self, n: int, used: tuple[int, ...], replied: bool) -> None:
        one = self.pick(n)
        if one is None:
            return
        side, _, purse, now = self.of(one.pair)
        reply = StoredReply("text/plain", one.hold.hold_id.encode(), b"!") if replied else None
        charge = self.run(
            self.store.calls.settle(one.hold, TokenCounts(*used[:-1])._replace(web_search=used[-1]), reply)
        )
        if one.ends <= now or one.state == "released":
            assert charge is None
            return
        if one.state == "held":
            one.state, one.charged = "settled", min(one.amount, cost(one.price, *used))
            self.slices[one.pair[1]].spent[one.day, self.shard(one.pair)] += one.charged if one.hold.leased else 0
            if any(used):
                purse.book(-one.charged, now)
                world = self.people[one.pair[0]]
                entry = self.run(self.store.credits.show(world.user, most=1)).entries[0]
                cached = entry.cache_read_tokens, entry.cache_write_tokens, entry.cache_write_1h_tokens
                assert (entry.input_tokens, entry.output_tokens, *cached, entry.web_searches) == used
                assert entry.price_version == one.price.version
                self.book_spending(side, one.charged, now)
                purse.by_day[now // DAY] += one.charged
            if record := self.record_of(one):
                left = max(0, purse.paid - self.held(one.pair[0], now))
                record[1].charge, record[1].reply = Charge(one.charged, left), reply
                record[1].ends = now + AI_REPLY
        assert charge == Charge(one.charged, max(0, purse.paid - self.held(one.pair[0], now)))

    def book_spending(self, side: Side, amount: int, now: int) -> None:
        """What counts for the month; of a grant that is gone nothing does."""
        if side.revoked_at is None or side.revoked_at + GRACE > now:
            moment = datetime.fromtimestamp(now / 1000, UTC)
            month = moment.year, moment.month
            side.spent[month] = side.spent.get(month, 0) + amount

    @rule(n=drawn.which)
    def release(self, n: int) -> None:
        one = self.pick(n)
        if one is None:
            return
        _, _, _, now = self.of(one.pair)
        self.run(self.store.calls.release(one.hold))
        if one.state == "held" and one.ends > now:
            one.state = "released"
            if record := self.record_of(one):
                del self.records[record[0]]

    @rule(pair=drawn.pairs, limit=st.one_of(st.none(), st.integers(0, 300)))
    def set_limit(self, pair: Pair, limit: int | None) -> None:
        side, app, _, _ = self.of(pair)
        call = app.limit(self.people[pair[0]], limit)
        if side.revoked_at is not None:
            assert self.run(refusal_of(call)) == "not_found"
            return
        self.run(call)
        side.limit = limit

    @rule(person=drawn.person_days, app=drawn.app_days)
    def set_daily_limits(self, person: int, app: int) -> None:
        self.store.calls.daily.per_person, self.store.calls.daily.per_app = person, app

    @rule(pair=drawn.pairs)
    def disconnect_or_connect(self, pair: Pair) -> None:
        side, world = self.sides[pair], self.people[pair[0]]
        self.touched.add(pair[0])
        call = self.store.grants.revoke(world.session, self.apps[pair[1]].client_id, VISITOR)
        if side.revoked_at is not None:
            assert self.run(refusal_of(call)) == "not_found"
            self.run(self.reconnect(pair))
            return
        self.run(call)
        side.revoked_at = self.run(self.now())

    @rule(pair=drawn.pairs)
    def look(self, pair: Pair) -> None:
        """The balance that the app sees."""
        side, app, purse, now = self.of(pair)
        call = app.balance()
        if side.revoked_at is not None or side.token_ends <= now:
            assert self.run(refusal_of(call)) == "invalid_token"
            return
        balance = self.run(call)
        assert (balance.paid, balance.held) == (purse.paid, self.held(pair[0], now))
        if side.limit is None:
            assert balance.app_limit is None
            return
        used = self.spent(pair, now) + self.held(pair[0], now, pair[1])
        assert balance.app_limit == AppLimit(side.limit, used, month_after(now))

    @rule(step=st.sampled_from([1, 1, 31, 31, 31, 400, 601, DAY // 1000, 31 * DAY // 1000, "to the month's end"]))
    def time_passes(self, step: int | str) -> None:
        """Some seconds, where time can be moved."""
        now = self.run(self.now())
        if self.clock is None:
            return
        left = month_after(now).timestamp() - now / 1000
        self.clock.advance(max(0.0, left - 15.3) if isinstance(step, str) else step + 0.137)
        now = self.run(self.now())
        self.touched |= {0, 1}
        for side in self.sides.values():
            if side.revoked_at is not None and side.revoked_at + GRACE <= now:
                side.limit, side.spent = None, {}

    @invariant()
    def the_books_are_right(self) -> None:
        """Opening and ledger add up, what is held is the sum of the open holds, only reversals leave less than is held,
        each hold was charged once (all in `recount`), and all of it is what the model says."""
        now = self.run(self.now())
        for person in self.touched:
            world, purse = self.people[person], self.purses[person]
            counted = self.run(recount(self.store, world.user))
            assert (counted.paid, counted.opening) == (purse.paid, purse.opening)
            assert list(counted.amounts) == [amount for _, amount in purse.entries]
            standing = {
                one.hold.hold_id: one.amount
                for one in self.holds
                if one.pair[0] == person and one.state == "held" and one.ends > now
            }
            assert counted.holds == standing
            settled = {one.hold.hold_id for one in self.holds if one.state == "settled"}
            assert settled >= {*counted.charged, *counted.marks}

    @invariant()
    def the_apps_spent_what_was_charged_this_month(self) -> None:
        now = self.run(self.now())
        for person in self.touched:
            grants = self.run(self.store.grants.list(self.people[person].session)).grants
            recorded = {grant.client: (grant.spend_limit, grant.spent) for grant in grants}
            expected = {}
            for number, app in enumerate(self.apps):
                side = self.sides[person, number]
                if side.revoked_at is None or side.revoked_at + GRACE > now:
                    expected[app.client_id] = (side.limit, self.spent((person, number), now))
            assert recorded == expected
        self.touched.clear()


class Busy(Credits):
    """The same, beginning with some credits and a limit, so that more of the calls are made."""

    @initialize(sums=st.tuples(*[st.integers(50, 900)] * 2), limit=st.integers(10, 300), daily=drawn.days)
    def fill(self, sums: tuple[int, int], limit: int, daily: tuple[int, int]) -> None:
        self.top_up(0, sums[0], None)
        self.top_up(1, sums[1], None)
        self.set_limit((0, 0), limit)
        self.set_daily_limits(*daily)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apps' daily limits are leased in slices of 30 micro-dollars."""
    monkeypatch.setattr("store.credits.daily.LEAST_SLICE", 30)


@pytest.mark.trap(29)
@pytest.mark.trap(31)
def test_random_histories_on_fakeredis_with_a_moving_clock(clock: FakeClock) -> None:
    class OnMemory(Busy):
        pass

    clock.stop()
    OnMemory.clock = clock
    run_state_machine_as_test(OnMemory, settings=brisk)


@pytest.mark.trap(31)
def test_random_histories_on_valkey(valkey_engine: Engine) -> None:
    class OnValkey(Busy):
        url = valkey_engine.url

    run_state_machine_as_test(OnValkey, settings=brisk)
