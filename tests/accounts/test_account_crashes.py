"""Crashes while an account is created or deleted leave one working account, or a free address."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from store import keys as spell
from store.crypto.keyring import Keys
from store.engine.connect import connect
from store.errors import StoreUnavailable
from store.refused import Refused
from tests.support.processes.engines import Engine
from tests.support.store.lost_answers import SCRIPTS, Armed, losing, store_on
from tests.support.store.world import PASSWORD, VISITOR, World, every_key, refusal_of

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
async def test_an_interrupted_sign_up_leaves_a_working_account_or_a_free_address(
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


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize(
    ("script", "lose_request", "begun"),
    [
        pytest.param("delete_user", True, False, id="before the row went"),
        pytest.param("delete_user", False, True, id="after the row went"),
        pytest.param("release_email", True, True, id="before the address was released"),
        pytest.param("release_email", False, True, id="after the address was released"),
    ],
)
async def test_an_interrupted_account_deletion_is_finished_at_the_next_start(
    valkey_engine: Engine, keys: Keys, script: str, lose_request: bool, begun: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        store = world.store
        await world.tokens()
        armed.lose_request = lose_request
        armed.arm(script, 2)
        with pytest.raises(StoreUnavailable):
            await store.people.delete(world.user)
        armed.times = 0
        assert (await people_with(world, world.email) == world.user) is not begun
        if begun:
            assert await world.person(world.email) != world.user, "whoever wants the address has it at once"
        await store.people.finish_deletions()
        left = await every_key(store.client, spell.prefix(world.user) + "*")
        lasting = [key for key in left if await store.client.pttl(key) == -1]
        assert (lasting == []) is begun
        owner = await people_with(world, world.email)
        assert owner is not None
        assert (owner == world.user) is not begun


async def people_with(world: World, email: str) -> str | None:
    """The person whom the address and the password sign in."""
    found = await world.store.people.verify(email, PASSWORD)
    return found.user if found else None


class Overtaken:
    """A client on which somebody else takes the address just before it is confirmed."""

    def __init__(self, client: Redis, address: str, winner: str) -> None:
        self._client = client
        self._entry = spell.email(address)
        self._winner = winner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def evalsha(self, sha: str, *words: Any) -> Any:
        if sha == SCRIPTS["confirm_email"].sha:
            await self._client.set(self._entry, self._winner)
        return await self._client.evalsha(sha, *words)


@pytest.mark.gen_test
async def test_losing_the_address_during_sign_up_leaves_no_account(valkey_engine: Engine, keys: Keys) -> None:
    """The reservation expired while the row was written."""
    direct = await connect(valkey_engine.url)
    await direct.flushall()
    winner = await World.make(store_on(direct, keys))
    overtaken: Any = Overtaken(direct, "new@example.com", winner.user)
    store = store_on(overtaken, keys)
    with pytest.raises(Refused, match="invalid_request"):
        await store.people.create(
            "new@example.com", "Late", PASSWORD, verified=False, event="signed_up", visitor=VISITOR
        )
    assert [person.user async for person in store.operator.people()] == [winner.user]
    assert await store.people.find("new@example.com") == winner.user
    await winner.store.close()
    await store.close()
