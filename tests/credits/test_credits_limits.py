"""An app's monthly spending limit on every engine: the limit, what counts, and when it resets."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tornado.ioloop import IOLoop

from store import keys
from store.credits.credits import AppLimit
from store.engine.script_source import LUA, load_scripts
from store.engine.scripts import Scripts
from store.lifetimes import GRACE, PROOF
from store.refused import Unproved
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.credit_spender import DOLLAR, FREE, SPENDING, Spender, a_world, recount
from tests.support.store.second_factors import reauth
from tests.support.store.world import VISITOR, World, every_key, refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)


async def limited(store: Store, limit: int | None, paid: int = DOLLAR) -> tuple[World, Spender]:
    """A person with this much, and an app that may spend this much of it in a month."""
    world = await a_world(store)
    app = await Spender.make(world)
    await store.credits.grant(world.user, paid)
    await app.limit(world, limit)
    return world, app


@pytest.mark.gen_test
async def test_changing_a_limit_needs_a_recent_reauthentication_in_the_script(
    memory_store: Store, clock: FakeClock
) -> None:
    world, app = await limited(memory_store, 100)
    client = app.caller.client
    clock.advance(PROOF / 1000 + 1)
    world.session = await world.sign_in()
    for confirmed in (False, True):
        if confirmed:
            await reauth(world)
            clock.advance(PROOF / 1000 + 1)
        with pytest.raises(Unproved):
            await memory_store.credits.set_spend_limit(world.session, client, None, VISITOR)
    await reauth(world)
    assert await memory_store.credits.set_spend_limit(world.session, client, None, VISITOR)


async def used(app: Spender) -> int:
    """The amount that counts against the limit, as the app sees it."""
    limit = (await app.balance()).app_limit
    assert limit is not None
    return limit.used


@within_a_minute
async def test_an_app_spends_no_more_than_its_limit(store: Store) -> None:
    world, app = await limited(store, 100)
    hold = await app.hold(0, 1000)
    assert (hold.output_tokens, hold.amount) == (100, 100), "cut to the limit"
    assert await used(app) == 100, "what is held counts"
    assert await refusal_of(app.ask(0, 1)) == "app_spend_limit"
    await app.settle(hold, 0, 60)
    assert await used(app) == 60
    assert (await app.hold(0, 1000)).amount == 40
    assert await refusal_of(app.ask(0, 1)) == "app_spend_limit"
    assert (await recount(store, world.user)).amounts == (DOLLAR, -60)


@within_a_minute
async def test_an_app_sees_its_limit_and_the_end_of_the_month(store: Store) -> None:
    _, app = await limited(store, 100)
    now = datetime.now(UTC)
    month = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    assert (await app.balance()).app_limit == AppLimit(100, 0, month)
    await app.spend(30)
    assert (await app.balance()).app_limit == AppLimit(100, 30, month)


@within_a_minute
@pytest.mark.parametrize(
    ("paid", "limit", "refusal"),
    [
        pytest.param(10, None, "insufficient_credits", id="there is no limit"),
        pytest.param(10, 50, "insufficient_credits", id="there is less than the limit"),
        pytest.param(10, 10, "insufficient_credits", id="there is as much as the limit"),
        pytest.param(50, 10, "app_spend_limit", id="there is more than the limit"),
        pytest.param(50, 0, "app_spend_limit", id="the app may spend nothing"),
        pytest.param(0, 10, "insufficient_credits", id="there is nothing"),
    ],
)
async def test_a_refusal_names_the_limit_that_applies(store: Store, paid: int, limit: int | None, refusal: str) -> None:
    world, app = await limited(store, limit, paid + 1)
    await store.credits.grant(world.user, -1)
    assert await refusal_of(app.ask(60, 1)) == refusal
    assert (await recount(store, world.user)).held == 0


@within_a_minute
async def test_other_apps_spending_reduces_only_the_balance(store: Store) -> None:
    world, app = await limited(store, 40, paid=100)
    other = await Spender.make(world, (await a_world(store)).app)
    assert (await other.balance()).app_limit is None
    hold = await other.hold(70)
    assert await used(app) == 0
    assert (await app.hold(0, 1000)).amount == 30, "the balance binds"
    await other.settle(hold, 20)
    assert (await app.hold(0, 1000)).amount == 10, "the limit binds"
    assert (await recount(store, world.user)).held == 40


@within_a_minute
async def test_a_limit_below_the_spending_allows_only_free_calls(store: Store) -> None:
    world, app = await limited(store, 100)
    await app.spend(80)
    hold = await app.hold(20)
    await app.limit(world, 50)
    assert await refusal_of(app.ask(0, 1)) == "app_spend_limit"
    assert await refusal_of(app.ask(0, 1, least_output=0)) is None, "no output at no price"
    assert await refusal_of(app.ask(1, 1, least_output=0)) == "app_spend_limit"
    assert (await app.hold(5, 5, price=FREE)).amount == 0
    assert (await app.settle(hold, 20)).charged == 20, "what was held is charged"
    assert await used(app) == 100
    await app.limit(world, 101)
    assert (await app.hold(0, 9)).amount == 1
    await app.limit(world, None)
    assert (await app.hold(0, 9)).amount == 9
    assert (await app.balance()).app_limit is None
    assert (await recount(store, world.user)).amounts[:3] == (DOLLAR, -80, -20)


@within_a_minute
async def test_only_a_connected_app_that_may_spend_can_have_a_limit(store: Store) -> None:
    world, app = await limited(store, None)
    stranger = await a_world(store)
    reader = await Spender.make(world, stranger.app, ("profile", "credits:read"))
    before = await every_key(store.client)
    assert await refusal_of(reader.limit(world, 5)) == "not_found"
    assert await refusal_of(app.limit(stranger, 5)) == "not_found"
    await world.revoke_app()
    assert await refusal_of(app.limit(world, 5)) == "not_found"
    outbox = keys.outbox(world.user).encode()  # that the person disconnected the app
    assert set(await every_key(store.client)) == {*before, outbox}
    assert "spend_limit_set" in await world.events()


@within_a_minute
async def test_limit_and_spending_survive_a_reconnection(store: Store) -> None:
    world, app = await limited(store, 100)
    await app.spend(60)
    hold = await app.hold(30)
    await world.revoke_app()
    await app.settle(hold, 20)
    again = await Spender.make(world)
    assert await used(again) == 80
    assert (await again.hold(0, 1000)).amount == 20
    (grant,) = (await store.grants.list(world.session)).grants
    assert (grant.spend_limit, grant.spent) == (100, 80)


@within_a_minute
async def test_a_consent_can_set_remove_or_keep_the_limit(store: Store) -> None:
    world = await a_world(store)

    async def consent(scopes: tuple[str, ...], **limit: object) -> int | None:
        request_id = await world.pending(scopes)
        await store.authorizations.decide(
            world.session,
            world.app,
            request_id,
            allow=True,
            scopes=None,
            visitor=VISITOR,
            **limit,  # type: ignore[arg-type]  # a dict of settings
        )
        (grant,) = (await store.grants.list(world.session)).grants
        await world.fresh_window()
        return grant.spend_limit

    assert await consent(SPENDING) is None
    assert await consent(SPENDING, spend_limit=70) == 70
    assert await consent(SPENDING) == 70
    assert await consent(("profile",), spend_limit=5) == 70, "without credits:spend there is no limit to set"
    assert await consent(SPENDING, spend_limit=0) == 0
    assert await consent(SPENDING, spend_limit="none") is None
    assert await consent(("profile",), spend_limit=5) is None


def at_month(clock: FakeClock, year: int, month: int, *, less_ms: int = 0) -> None:
    """Sets the clock to the beginning of a month, or to this long before."""
    wanted = datetime(year, month, 1, tzinfo=UTC).timestamp() - less_ms / 1000
    clock.stop()
    clock.advance(wanted - clock.time())


@within_a_minute
async def test_spending_starts_at_zero_each_month(memory_store: Store, clock: FakeClock) -> None:
    at_month(clock, 2032, 2, less_ms=86_400_000)
    world, app = await limited(memory_store, 100)
    await app.spend(100)
    assert await refusal_of(app.ask(0, 1)) == "app_spend_limit"
    limit = (await app.balance()).app_limit
    assert limit == AppLimit(100, 100, datetime(2032, 2, 1, tzinfo=UTC))
    at_month(clock, 2032, 2, less_ms=10)
    app = await Spender.make(world)
    assert await refusal_of(app.ask(0, 1)) == "app_spend_limit"
    at_month(clock, 2032, 2)
    assert (await app.balance()).app_limit == AppLimit(100, 0, datetime(2032, 3, 1, tzinfo=UTC))
    (grant,) = (await memory_store.grants.list(await world.sign_in())).grants
    assert (grant.spend_limit, grant.spent) == (100, 0)
    await app.spend(70)
    at_month(clock, 2032, 3)
    app = await Spender.make(world)
    assert await used(app) == 0


@within_a_minute
async def test_a_call_counts_for_the_month_of_its_settlement(memory_store: Store, clock: FakeClock) -> None:
    at_month(clock, 2030, 1, less_ms=60_000)
    world, app = await limited(memory_store, 100)
    await app.spend(50)
    hold = await app.hold(40)
    assert await used(app) == 90
    at_month(clock, 2030, 1)
    assert await used(app) == 40, "what is held counts in either month"
    assert (await app.hold(0, 1000)).amount == 60
    await app.settle(hold, 30)
    assert await used(app) == 90
    assert (await recount(memory_store, world.user)).amounts == (DOLLAR, -50, -30)


@within_a_minute
async def test_stepping_the_clock_back_over_month_end_starts_no_new_month(
    memory_store: Store, clock: FakeClock
) -> None:
    at_month(clock, 2030, 5)
    _, app = await limited(memory_store, 100)
    await app.spend(60)
    clock.back(3)
    assert await used(app) == 60
    await app.spend(30)
    clock.advance(3)
    assert await used(app) == 90
    assert await refusal_of(app.ask(0, 20, least_output=11)) == "app_spend_limit"


@within_a_minute
async def test_a_limit_expires_with_the_grant(memory_store: Store, clock: FakeClock) -> None:
    world, app = await limited(memory_store, 100)
    hold = await app.hold(10, lasts=GRACE + 60_000)
    await world.revoke_app()
    clock.advance(GRACE / 1000 + 1)
    assert (await app.settle(hold, 10)).charged == 10
    assert not await memory_store.client.exists(keys.grant(world.user, world.app.client_id))
    assert (await (await Spender.make(world)).balance()).app_limit is None


MONTHS = """--- Tells the month of each time, for tests.
--- KEYS[1] nothing
--- ARGV[1] times (json): epoch ms
--- @reply ok rows
--- @include "spending"

local rows = {}
for _, time in ipairs(times) do
  local month, ends = month_of(time)
  rows[#rows + 1] = int(month) .. ' ' .. int(ends)
end
return {'ok', rows}
"""


@pytest.fixture
def months(store: Store, tmp_path: Path) -> Scripts:
    """Runs the calendar of `lua/include/spending.lua` on each engine in turn."""
    shutil.copytree(LUA / "include", tmp_path / "include")
    (tmp_path / "months.lua").write_text(MONTHS)
    return Scripts(store.client, load_scripts(tmp_path))


async def months_of(months: Scripts, times: list[int]) -> list[tuple[int, int]]:
    """The number of the month and its end, in epoch ms, for each time."""
    reply = await months.run("months", {"nothing": "{test}:nothing"}, times=json.dumps(times))
    return [(int(number), int(ends)) for number, ends in (row.split() for row in reply.rows("rows"))]


def begins(year: int, month: int) -> int:
    """The epoch ms at which a month begins."""
    return int((datetime(year, month, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


@within_a_minute
async def test_months_match_the_calendar_from_1970_to_2400(months: Scripts) -> None:
    starts = [begins(year, month) for year in range(1970, 2401) for month in range(1, 13)]
    for first in range(0, len(starts) - 1, 600):
        some = list(pairwise(starts[first : first + 601]))
        times = [time for start, end in some for time in (start, start + 1, (start + end) // 2, end - 1)]
        found = await months_of(months, times)
        numbers = []
        for place, (_, end) in enumerate(some):
            rows = set(found[4 * place : 4 * place + 4])
            assert {ends for _, ends in rows} == {end}
            (number,) = {number for number, _ in rows}
            numbers.append(number)
        assert numbers == list(range(numbers[0], numbers[0] + len(some))), "each month has a number, one after another"


def test_every_moment_is_within_its_month(io_loop: IOLoop, months: Scripts) -> None:
    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.datetimes(datetime(1970, 1, 1), datetime(2400, 11, 30)), min_size=1, max_size=40))
    def check(moments: list[datetime]) -> None:
        times = [(moment - datetime(1970, 1, 1)) // timedelta(milliseconds=1) for moment in moments]
        found = io_loop.run_sync(lambda: months_of(months, times))
        for moment, (number, ends) in zip(moments, found, strict=True):
            following = (moment.year * 12 + moment.month) // 12, moment.month % 12 + 1
            assert ends == begins(*following)
            assert (number + 2) // 12 == moment.year, "years that begin in March"
            assert (number + 2) % 12 + 1 == moment.month

    check()
