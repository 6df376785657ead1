"""An app that spends within budgets, directly on a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from store.lifetimes import AI, OAUTH, Group
from store.oauth.authorizations import Decision, Pending
from store.oauth.budgets import Budget, written
from store.oauth.tokens import TokenResponse
from store.wiring import Store
from tests.conftest import OpenStore, emptied
from tests.support.processes.two_servers import STORES
from tests.support.store.credit_spender import DOLLAR, SPENDING, Spender, a_world
from tests.support.store.world import CALLBACK, VERIFIER, VISITOR, World

TOTAL = Budget("credits", 100)
MONTHLY = Budget("credits", 100, "month")
INFERENCE = Budget("llm-inference", 100)


@pytest.fixture(params=STORES)
def stores(request: pytest.FixtureRequest, open_store: OpenStore) -> list[Store]:
    """Four stores on one empty engine, each with its own connections, with windows so wide that only money decides. The
    engine is one Valkey, and then a cluster."""
    url = emptied(request, request.param)
    made = [open_store(url) for _ in range(4)]
    for store in made:
        store.rates.ai, store.rates.oauth = Group(AI.name, 1_000_000), Group(OAUTH.name, 1_000_000)
    return made


async def decided(
    world: World, *budgets: Budget, amounts: Mapping[str, int] | None = None, lasts: int = 0, **fields: Any
) -> Decision:
    """The person allows a request for these budgets; `fields` are other arguments of the decision."""
    request = world.request(SPENDING)._replace(details=written(budgets))
    begun = await world.store.authorizations.begin(world.session, request, always_ask=True)
    assert isinstance(begun, Pending)
    assert begun.budgets == budgets
    chosen: dict[str, Any] = {"allow": True, "scopes": None, "visitor": VISITOR, **fields}
    chosen |= {"budgets": amounts, "budgets_last": lasts}
    return await world.store.authorizations.decide(world.session, world.app, begun.request_id, **chosen)


async def tokens_of(world: World, *budgets: Budget, **fields: Any) -> TokenResponse:
    """Tokens from a decision on these budgets."""
    decision = await decided(world, *budgets, **fields)
    assert decision.code is not None
    return await world.store.tokens.exchange(world.app, decision.code, CALLBACK, VERIFIER)


async def budgeted(store: Store, *budgets: Budget, paid: int = DOLLAR, **fields: Any) -> tuple[World, Spender]:
    """A person with this much, and an app with these budgets of it."""
    world = await a_world(store)
    await store.credits.grant(world.user, paid)
    tokens = await tokens_of(world, *budgets, **fields)
    return world, Spender(store, world.caller(tokens.access_token))


async def used(world: World) -> dict[str, int]:
    """What is used of the budgets of the person's only app, by type."""
    (grant,) = (await world.store.grants.list(world.session)).grants
    return {budget.type: budget.used for budget in grant.budgets}
