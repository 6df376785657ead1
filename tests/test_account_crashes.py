"""An account is made in three steps: after a crash at any of them one account works, or the address is free again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from store import keys as spell
from store.errors import StoreUnavailable
from store.keyring import Keys
from store.opened import Store
from tests.engines import Engine
from tests.losing import Armed, losing
from tests.world import PASSWORD, World, refusal_of

Crash = Callable[[World, Armed], Awaitable[None]]


async def _after_reserving(world: World, armed: Armed) -> None:
    armed.lose_request = True
    armed.arm("create_user")


async def _after_writing(world: World, armed: Armed) -> None:
    armed.arm("create_user")


async def _before_confirming(world: World, armed: Armed) -> None:
    armed.lose_request = True
    armed.arm("confirm_email", 2)


async def _after_confirming(world: World, armed: Armed) -> None:
    armed.arm("confirm_email", 2)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize(
    ("crash", "confirmed"),
    [
        pytest.param(_after_reserving, False, id="after the address was reserved"),
        pytest.param(_after_writing, False, id="after the row was written"),
        pytest.param(_before_confirming, False, id="before the address was confirmed"),
        pytest.param(_after_confirming, True, id="after the address was confirmed"),
    ],
)
async def test_a_sign_up_that_broke_off_leaves_one_account_that_works_or_a_free_address(
    valkey_engine: Engine, keys: Keys, crash: Crash, confirmed: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        people, email = world.store.people, "new@example.com"
        await crash(world, armed)
        with pytest.raises(StoreUnavailable):
            await world.person(email)
        armed.times = 0
        entry = spell.email(email)
        assert await refusal_of(world.person(email)) == "invalid_request", "reserved for a minute"
        if confirmed:
            assert await world.store.client.pttl(entry) == -1
        else:
            assert 55_000 < await world.store.client.pttl(entry) <= 60_000
            await world.store.client.pexpire(entry, 1)
            await asyncio.sleep(0.01)
            await world.person(email)
        found = await people.verify(email, PASSWORD)
        assert found is not None
        assert found.user == await people.find(email)
        assert (await world.store.operator.find(email)).user == found.user


@pytest.mark.gen_test
async def test_an_address_that_was_taken_meanwhile_is_the_other_persons(memory_store: Store) -> None:
    """The reservation ran out while the row was being written."""
    winner = await World.make(memory_store)
    reply = await memory_store.scripts.run("confirm_email", {"email": spell.email(winner.email)}, user_id="e" * 32)
    assert reply.word == "lost"
    await memory_store.people.delete("e" * 32, winner.email)
    assert await memory_store.people.find(winner.email) == winner.user
