"""Budgets of a grant on every engine: what they refuse, what counts, and how a new decision replaces them. RFC 9396."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from store import keys
from store.credits.prices import TokenCounts
from store.oauth.budgets import Budget
from store.refused import Refused
from store.wiring import Store
from tests.credits.test_credits_limits import at_month
from tests.support.processes.engines import FakeClock
from tests.support.store.budgeted import INFERENCE, MONTHLY, TOTAL, budgeted, decided, tokens_of, used
from tests.support.store.checked_store import broken, checked
from tests.support.store.credit_spender import DOLLAR, FREE, Spender, recount
from tests.support.store.second_factors import shown
from tests.support.store.world import CALLBACK, VERIFIER, VISITOR, refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)


async def refused(app: Spender, *tokens: int) -> Refused:
    """The refusal of a call."""
    with pytest.raises(Refused) as refusal:
        await app.ask(*tokens)
    return refusal.value


@within_a_minute
@pytest.mark.parametrize("budget", [TOTAL, MONTHLY, INFERENCE], ids=["total", "month", "inference"])
async def test_an_app_spends_no_more_than_its_budget(store: Store, budget: Budget) -> None:
    world, app = await budgeted(store, budget)
    hold = await app.hold(0, 1000)
    assert (hold.output_tokens, hold.amount) == (100, 100), "cut to the budget"
    assert await used(world) == {budget.type: 0}, "what is held is not used yet"
    refusal = await refused(app, 0, 1)
    assert (refusal.code, refusal.retry_after) == ("budget_exhausted", 2), "the call in progress may give back"
    await app.settle(hold, 0, 60)
    assert await used(world) == {budget.type: 60}
    assert (await app.spend(40)).charged == 40
    assert await refusal_of(app.ask(0, 1)) == "budget_exhausted"
    assert (await app.hold(5, 5, price=FREE)).amount == 0, "free calls go on"
    assert (await recount(store, world.user)).amounts == (DOLLAR, -60, -40)


@within_a_minute
async def test_the_tightest_of_all_limits_binds(store: Store) -> None:
    world, app = await budgeted(store, TOTAL, INFERENCE._replace(limit=40), paid=1000)
    assert (await app.hold(0, 1000)).amount == 40
    await app.limit(world, 65)
    assert await refusal_of(app.ask(0, 1)) == "budget_exhausted"
    await decided(world, INFERENCE)
    assert (await app.hold(0, 1000)).amount == 25
    assert await refusal_of(app.ask(0, 1)) == "app_spend_limit"
    await app.limit(world, None)
    assert (await app.hold(0, 1000)).amount == 35, "the first budget is still there"
    assert await refusal_of(app.ask(0, 1)) == "budget_exhausted"


@within_a_minute
async def test_a_budget_for_some_models_refuses_all_others(store: Store) -> None:
    _, app = await budgeted(store, TOTAL._replace(models=("echo", "other")))
    await app.spend(1)
    for model in ("ech", "echo other", "*", "cho", "ECHO"):
        assert await refusal_of(app.ask(1, model=model)) == "model_not_allowed", model
    await app.spend(1, model="other")


@within_a_minute
async def test_the_sign_ins_of_an_app_share_its_budget_and_refreshes_keep_it(store: Store) -> None:
    world, app = await budgeted(store, TOTAL)
    await app.spend(50)
    tokens = await world.exchange(await world.code(("credits:spend",)))
    (known,) = tokens.budgets
    assert known == TOTAL._replace(used=50)
    second = Spender(store, world.caller(tokens.access_token))
    await second.spend(30)
    refreshed = await world.refresh(tokens.refresh_token)
    assert refreshed.budgets == (TOTAL._replace(used=80),)
    assert (await Spender(store, world.caller(refreshed.access_token)).hold(0, 1000)).amount == 20
    assert await refusal_of(app.ask(0, 1)) == "budget_exhausted"


@within_a_minute
async def test_a_new_decision_starts_a_total_and_not_a_month_again(store: Store) -> None:
    for budget, left in ((TOTAL, 100), (MONTHLY, 40)):
        world, app = await budgeted(store, budget)
        await app.spend(60)
        await decided(world, budget)
        assert (await app.hold(0, 1000)).amount == left
        assert await used(world) == {"credits": 100 - left}


@within_a_minute
async def test_a_month_that_begins_with_a_decision_counts_what_was_charged_before_it(store: Store) -> None:
    world, app = await budgeted(store, TOTAL)
    await app.spend(60)
    await decided(world, MONTHLY)
    assert await used(world) == {"credits": 60}
    assert (await app.hold(0, 1000)).amount == 40


@within_a_minute
async def test_a_call_counts_for_the_budget_that_held_it(store: Store) -> None:
    world, app = await budgeted(store, TOTAL)
    before = await app.hold(70)
    await decided(world, TOTAL)
    assert (await app.hold(0, 1000)).amount == 100, "the earlier hold is none of the new budget's"
    await app.settle(before, 70)
    assert await used(world) == {"credits": 0}


@within_a_minute
async def test_a_call_over_the_end_of_a_month_counts_in_the_month_of_its_hold(
    memory_store: Store, clock: FakeClock
) -> None:
    at_month(clock, 2030, 1, less_ms=60_000)
    world, app = await budgeted(memory_store, MONTHLY)
    await app.spend(50)
    first, second = await app.hold(20), await app.hold(20)
    refusal = await refused(app, 50)
    assert refusal.retry_after == 2
    at_month(clock, 2030, 1)
    await app.settle(first, 20)
    world.session = await world.sign_in()
    assert await used(world) == {"credits": 0}
    assert (await app.spend(100)).charged == 100, "the new month is whole"
    await app.settle(second, 20)
    assert await used(world) == {"credits": 100}
    last = await refused(app, 1)
    assert last.retry_after == 31 * 86400, "until February"


@within_a_minute
async def test_stepping_the_clock_back_over_the_end_of_a_month_gives_no_new_budget(
    memory_store: Store, clock: FakeClock
) -> None:
    at_month(clock, 2030, 5)
    world, app = await budgeted(memory_store, MONTHLY)
    await app.spend(60)
    clock.back(3)
    await app.spend(30)
    assert await used(world) == {"credits": 90}
    assert (await app.hold(0, 1000)).amount == 10


@within_a_minute
async def test_a_budget_ends_when_the_person_said(memory_store: Store, clock: FakeClock) -> None:
    world, app = await budgeted(memory_store, TOTAL, lasts=60_000)
    (budget,) = (await memory_store.grants.list(world.session)).grants[0].budgets
    assert budget.ends_at is not None
    assert 59 < (budget.ends_at - datetime.fromtimestamp(clock.time(), UTC)).total_seconds() <= 61
    await app.spend(10)
    clock.advance(62)
    refusal = await refused(app, 1)
    assert (refusal.code, refusal.retry_after) == ("budget_exhausted", None)


@within_a_minute
async def test_the_person_lowers_a_budget_and_never_raises_it_by_the_decision(store: Store) -> None:
    world, app = await budgeted(store, TOTAL, INFERENCE, amounts={"credits": 60, "llm-inference": 400})
    (grant,) = (await store.grants.list(world.session)).grants
    assert [budget.limit for budget in grant.budgets] == [60, 100]
    assert (await app.hold(0, 1000)).amount == 60
    assert "budget_granted" in await world.events()


@within_a_minute
async def test_the_person_changes_a_budget_later_and_its_use_stays(store: Store) -> None:
    world, app = await budgeted(store, TOTAL)
    await app.spend(60)
    await shown(store, world.session)
    client = app.caller.client
    await store.credits.set_spend_limit(world.session, client, "", VISITOR, {"credits": 50, "llm-inference": 9})
    assert await refusal_of(app.ask(0, 1)) == "budget_exhausted"
    told = await store.credits.set_spend_limit(world.session, client, "", VISITOR, {"credits": 80})
    assert told is not None
    assert (told.growth, told.limit) == ("raised", 80)
    assert (await app.hold(0, 1000)).amount == 20
    (grant,) = (await store.grants.list(world.session)).grants
    assert (grant.budgets, grant.spend_limit) == ((TOTAL._replace(limit=80, used=60),), None)
    assert (await world.events())[-2:] == ["budget_changed", "budget_changed"]


@within_a_minute
async def test_budgets_end_with_the_scope_and_with_the_connection(store: Store) -> None:
    world, app = await budgeted(store, TOTAL)
    await decided(world, TOTAL, scopes=("profile",))
    assert await used(world) == {}
    assert await refusal_of(app.ask(1)) == "insufficient_scope"
    await tokens_of(world, TOTAL)
    await world.revoke_app()
    tokens = await world.exchange(await world.code(("credits:spend",)))
    assert tokens.budgets == ()


@within_a_minute
async def test_a_token_request_names_the_granted_budget_or_is_refused_and_uses_nothing_up(store: Store) -> None:
    world, _ = await budgeted(store, TOTAL)
    code = await world.code(("credits:spend",))
    for details in (
        "credits 99 total 0 *",
        "credits 100 month 0 *",
        "credits 100 total 0 echo",
        "llm-inference 100 total 0 *",
    ):
        call = store.tokens.exchange(world.app, code, CALLBACK, VERIFIER, details=details)
        assert await refusal_of(call) == "invalid_authorization_details"
    tokens = await store.tokens.exchange(world.app, code, CALLBACK, VERIFIER, details="credits 100 total 0 *")
    refused = store.tokens.refresh(world.app, tokens.refresh_token, (), details="credits 99 total 0 *")
    assert await refusal_of(refused) == "invalid_authorization_details"
    again = await store.tokens.refresh(world.app, tokens.refresh_token, (), details="credits 100 total 0 *")
    assert again.budgets == (TOTAL,)


@within_a_minute
async def test_a_hold_that_nobody_settles_gives_its_part_back(memory_store: Store, clock: FakeClock) -> None:
    world, app = await budgeted(memory_store, TOTAL)
    hold = await app.hold(100)
    assert await refusal_of(app.ask(1)) == "budget_exhausted"
    clock.advance(601)
    assert await used(world) == {"credits": 0}
    assert (await app.hold(0, 1000)).amount == 100
    assert await memory_store.calls.settle(hold, TokenCounts(100, 0)) is None
    assert await used(world) == {"credits": 0}


@within_a_minute
async def test_a_released_hold_gives_its_part_back(store: Store) -> None:
    world, app = await budgeted(store, TOTAL)
    hold = await app.hold(100)
    await store.calls.release(hold)
    assert (await app.spend(100)).charged == 100
    assert await used(world) == {"credits": 100}


@within_a_minute
async def test_a_repair_gives_nothing_of_a_month_back(store: Store) -> None:
    world, app = await budgeted(store, TOTAL)
    await app.spend(60)
    await decided(world, MONTHLY)
    await app.spend(10)
    await recount(store, world.user)
    await store.client.hset(keys.grant(world.user, world.app.client_id), "used:credits", "damaged")
    assert "budgets" in broken(await checked(store, repair=True))
    assert await used(world) == {"credits": 70}
