"""Trees of delegated tokens on every engine and under real concurrency: what any of them spends counts at each token
above it, and ending one ends all below. RFC 8693."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tornado.ioloop import IOLoop

from store import keys
from store.oauth.budgets import Budget, written
from store.oauth.exchange.token_exchange import DEEPEST, MOST_DELEGATED, WantedToken
from store.refused import Refused, UnknownUser
from store.wiring import Store
from tests.credits.test_credits_concurrency import outcomes, place
from tests.support.processes.processes import at_once
from tests.support.store import budgeted as budgets
from tests.support.store.budgeted import budgeted, tokens_of, used
from tests.support.store.checked_store import checked, findings
from tests.support.store.credit_spender import Spender
from tests.support.store.world import World, refusal_of

within_a_minute = pytest.mark.gen_test(timeout=60)
stores = budgets.stores


@dataclass
class Node:
    """A token of a tree, and what its calls were charged."""

    token: str
    above: Node | None = None
    limit: int = 0
    ended: bool = False
    charged: list[int] = field(default_factory=list)

    def chain(self) -> list[Node]:
        """It and all above it."""
        return [self, *(self.above.chain() if self.above else [])]


async def child_of(world: World, store: Store, parent: str, limit: int = 0, **wanted: Any) -> str:
    """A token that comes from another, with a part of this many micro-dollars; 0: no part of its own."""
    details = written([Budget("credits", limit)]) if limit else ""
    subject = await store.token_exchange.subject(world.app, parent, "")
    asked = WantedToken(details=details, **wanted)
    return (await store.token_exchange.exchange(world.app, subject, asked, None, "")).access_token


async def counted(world: World, token: str) -> int:
    """What the family of a delegated token was charged."""
    caller, client = world.caller(token), world.store.client
    row: Any = await client.hget(keys.token(*caller[:4])["family"], "used")
    return int(row or 0)


async def rooted(store: Store, limit: int = 10_000) -> tuple[World, Node]:
    """A person, and the token of an app with this budget."""
    world, _ = await budgeted(store, Budget("credits", limit))
    tokens = await tokens_of(world, Budget("credits", limit))
    return world, Node(tokens.access_token, limit=limit)


@within_a_minute
async def test_a_charge_counts_at_every_token_above(store: Store) -> None:
    world, root = await rooted(store, 100)
    chain = [root.token]
    for limit in (80, 60, 0):
        chain.append(await child_of(world, store, chain[-1], limit))
    await Spender(store, world.caller(chain[3])).spend(50)
    assert [await counted(world, token) for token in chain[1:]] == [50, 50, 50]
    assert await used(world) == {"credits": 50}
    told = [await store.introspection.by_app(world.app, token, "") for token in chain]
    assert [one and [(b.limit, b.used) for b in one.budgets] for one in told] == [
        [(100, 50)],
        [(80, 50)],
        [(60, 50)],
        [(60, 50)],
    ]
    assert await refusal_of(Spender(store, world.caller(chain[3])).ask(11)) == "budget_exhausted"
    assert findings(await checked(store, deep=True)) == []


@within_a_minute
async def test_a_grant_has_100_live_delegated_tokens(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.oauth.exchange.token_exchange.MOST_DELEGATED", 3)
    assert MOST_DELEGATED == 100
    world, root = await rooted(store)
    children = [await child_of(world, store, root.token) for _ in range(3)]
    assert await refusal_of(child_of(world, store, root.token)) == "invalid_request"
    await store.tokens.revoke(world.app, children[1])
    await child_of(world, store, root.token)
    assert await refusal_of(child_of(world, store, root.token)) == "invalid_request"
    # What came from an ended token is dead too, and takes no place.
    await store.tokens.revoke(world.app, children[2])
    below = await child_of(world, store, children[0])
    await store.tokens.revoke(world.app, children[0])
    assert not await world.store.introspection.by_app(world.app, below, "")
    for _ in range(2):
        await child_of(world, store, root.token)
    assert await refusal_of(child_of(world, store, root.token)) == "invalid_request"
    assert findings(await checked(store, deep=True)) == []


@within_a_minute
@pytest.mark.trap(62)
async def test_siblings_that_race_never_exceed_their_parent(stores: list[Store]) -> None:
    world, root = await rooted(stores[0])
    parent = await child_of(world, stores[0], root.token, 3 * 70 + 69)
    tokens = await at_once(child_of(world, stores[n % 4], parent, 3 * 70 + 69) for n in range(8))
    apps = [Spender(stores[n % 4], world.caller(token)) for n, token in enumerate(tokens)]
    answers = await at_once(place(apps[n % 8], 70) for n in range(100))
    assert outcomes(answers) == {"hold": 3, "budget_exhausted": 97}


@within_a_minute
@pytest.mark.trap(62)
async def test_no_exchange_outlives_the_end_of_its_parent(stores: list[Store]) -> None:
    for _ in range(5):
        world, root = await rooted(stores[0])
        parent = await child_of(world, stores[0], root.token)

        async def hand_on(n: int, world: World = world, parent: str = parent) -> str | None:
            try:
                return await child_of(world, stores[n % 4], parent)
            except UnknownUser:
                return None

        async def end(world: World = world, parent: str = parent) -> None:
            await stores[1].tokens.revoke(world.app, parent)

        found = await at_once([*(hand_on(n) for n in range(10)), end(), *(hand_on(n) for n in range(10))])
        for token in found:
            if isinstance(token, str):
                assert await refusal_of(Spender(stores[0], world.caller(token)).ask(1)) == "invalid_token"


async def a_history(world: World, store: Store, tree: list[Node], seed: int, steps: int) -> None:
    """One caller among many: exchanges, calls and revocations in any order."""
    order = random.Random(seed)
    for _ in range(steps):
        node, what = order.choice(tree), order.random()
        try:
            if what < 0.35:
                above = next((one.limit for one in node.chain() if one.limit), 0)
                limit = order.choice((0, order.randrange(1, above + 50)))
                token = await child_of(world, store, node.token, limit)
                assert limit <= above, "never wider"
                assert len(node.chain()) <= DEEPEST
                tree.append(Node(token, node, limit))
            elif what < 0.95:
                amount = order.randrange(0, 40)
                charge = await Spender(store, world.caller(node.token)).spend(amount)
                node.charged.append(charge.charged)
            elif node.above:
                await store.tokens.revoke(world.app, node.token)
                node.ended = True
        except (Refused, UnknownUser) as refused:
            known = refused.refusal if isinstance(refused, UnknownUser) else refused
            assert known.code in (
                "budget_exhausted",
                "invalid_token",
                "invalid_request",
                "invalid_authorization_details",
            )


async def check_tree(world: World, tree: list[Node], budget: int) -> None:
    """The sum of the charges of a tree is what every token above counts, and no more than it may spend."""
    sums = {id(node): 0 for node in tree}
    for node in tree:
        for one in node.chain():
            sums[id(one)] += sum(node.charged)
    for node in tree[1:]:
        assert await counted(world, node.token) == sums[id(node)]
        assert not node.limit or sums[id(node)] <= node.limit
    assert await used(world) == {"credits": sums[id(tree[0])]}
    assert sums[id(tree[0])] <= budget
    for node in tree:
        dead = any(one.ended for one in node.chain())
        found = await world.store.introspection.by_app(world.app, node.token, "")
        assert (found is None) == dead


@pytest.mark.slow
@pytest.mark.trap(62)
def test_any_history_of_a_tree_adds_up(io_loop: IOLoop, stores: list[Store]) -> None:
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32), st.integers(100, 1500))
    def histories(seed: int, budget: int) -> None:
        async def run() -> None:
            world, root = await rooted(stores[0], budget)
            tree = [root]
            await at_once(a_history(world, store, tree, seed + n, 40) for n, store in enumerate(stores))
            await check_tree(world, tree, budget)
            assert findings(await checked(stores[0], deep=True)) == []

        io_loop.run_sync(run, timeout=120)

    histories()


@within_a_minute
async def test_one_history_of_a_tree_adds_up(stores: list[Store]) -> None:
    world, root = await rooted(stores[0], 500)
    tree = [root]
    await at_once(a_history(world, store, tree, n, 30) for n, store in enumerate(stores))
    assert len(tree) > 8
    await check_tree(world, tree, 500)
    assert findings(await checked(stores[0], deep=True)) == []
