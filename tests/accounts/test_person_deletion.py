"""Deletion of a person by the store, interrupted or not, on every engine."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys
from store.refused import SignedOut
from store.wiring import Store
from tests.accounts.test_people import is_live
from tests.support.store.world import PASSWORD, VISITOR, World, every_key, refusal_of, to_change

pytestmark = pytest.mark.gen_test(timeout=60)


async def everything(store: Store) -> set[str]:
    return {key.decode() for key in await every_key(store.client)}


# Keys that expire and give nobody anything: codes, requests, families, access tokens and windows.
PASSING = ("code:", "request:", "family:", "access:", "limit:")


async def unwanted(client: str, event: str) -> bool:
    """No app has a webhook URL."""
    return False


async def test_deletion_leaves_no_permanent_keys_of_a_person(store: Store) -> None:
    other = await World.make(store)
    await other.tokens()
    untouched = await everything(store)
    world = await World.make(store)
    app, _ = await world.register("a-second-app")
    tokens = [await world.tokens(), await world.tokens(app=app)]
    await world.code()
    await world.pending()
    await world.sign_in()
    await store.profiles.save_picture(world.session, b"an image", VISITOR)
    for key in keys.hosted(world.user, world.app.client_id).values():
        await store.client.hset(key, "notes/n1", "kept")
    await store.tokens.revoke(None, tokens[1].refresh_token)
    await store.links.to_reset(world.user, world.email)
    await to_change(store, session := world.session, "another@example.com")
    await store.operator.delete(world.email)
    for each in tokens:
        assert not await world.lives(each.access_token)
    with pytest.raises(SignedOut):
        await store.sessions.profile(session)
    assert await store.people.verify(world.email, PASSWORD) is None
    await store.outbox.relay_shards({world.user[:3]}, unwanted)
    await store.directory_relay.relay([world.user[:3]])
    apps, noted = {keys.app(world.app.client_id), keys.app("a-second-app")}, {keys.recorded(world.user[:3])}
    left = await everything(store) - untouched - apps - noted
    assert all(key.startswith(keys.prefix(world.user)) for key in left)
    assert {key.removeprefix(keys.prefix(world.user)).partition(":")[0] + ":" for key in left} <= set(PASSING)
    assert all([await store.client.pttl(key) > 0 for key in left])
    assert await other.sign_in()
    assert await refusal_of(store.operator.delete(world.email)) == "not_found"
    assert await world.person(world.email) != world.user, "the address is free again"


async def test_an_interrupted_deletion_disables_at_once_and_continues(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()
    for number in range(250):
        await store.client.hset(keys.person(world.user)["user"], f"app:app-x{number}", "1")
    once = await store.scripts.run(
        "delete_user",
        keys.account_deletion(world.user),
        member=keys.member(world.user),
        prefix=keys.prefix(world.user),
        shard=keys.shard_prefix(world.user),
        steps=100,
    )
    assert once.word == "more"
    assert not await world.lives(tokens.access_token)
    left: list[Any] = await store.client.hkeys(keys.person(world.user)["leaving"])
    assert len(left) == 152, "a hundred of 251 apps are freed, and the address is still there"
    assert all(field.startswith(b"app:") or field == b"email" for field in left), "no more waits for the end"
    assert await store.client.sismember(keys.shard_users(world.user[:3]), keys.member(world.user))
    await store.operator.delete(world.email)
    assert await store.client.exists(*keys.person(world.user).values()) == 0
    assert await store.people.find(world.email) is None


async def test_a_deletion_interrupted_after_its_first_write_continues(store: Store) -> None:
    """In a slot that is moving to another node it may be."""
    world = await World.make(store)
    tokens = await world.tokens()
    await store.client.hdel(keys.person(world.user)["user"], "status")
    assert not await world.lives(tokens.access_token)
    await store.operator.delete(world.email)
    assert await store.client.exists(*keys.person(world.user).values()) == 0
    assert not await store.client.exists(keys.grant(world.user, world.app.client_id))
    assert await store.people.find(world.email) is None


@pytest.mark.parametrize("by", ["address", "user id"])
async def test_the_operator_can_finish_an_interrupted_deletion(store: Store, by: str) -> None:
    world = await World.make(store)
    await cut_short(world)
    assert await refusal_of(store.operator.find(world.user)) == "not_found"
    assert await store.operator.delete(world.email if by == "address" else world.user) == world.user
    assert await store.people.find(world.email) is None
    assert await store.client.exists(*keys.person(world.user).values()) == 0
    assert await refusal_of(store.operator.delete(world.user)) == "not_found"


async def cut_short(world: World) -> None:
    """Only the first step of a deletion."""
    await world.store.client.zadd(keys.DELETIONS, {world.user: 1})
    for number in range(101):
        await world.store.client.hset(keys.person(world.user)["user"], f"app:app-x{number}", "1")
    args: dict[str, Any] = {"prefix": keys.prefix(world.user), "shard": keys.shard_prefix(world.user), "steps": 100}
    assert (
        await world.store.scripts.run(
            "delete_user",
            keys.account_deletion(world.user),
            member=keys.member(world.user),
            **args,
        )
    ).word == "more"


async def test_the_next_start_finishes_only_interrupted_deletions(store: Store) -> None:
    world, other = await World.make(store), await World.make(store)
    await cut_short(world)
    await store.client.zadd(keys.DELETIONS, {other.user: 1})
    await store.people.finish_deletions()
    assert await store.people.find(world.email) is None
    assert await store.client.exists(*keys.person(world.user).values(), keys.DELETIONS) == 0
    assert await is_live(other)
    assert await store.people.find(other.email) == other.user


async def test_a_deletion_about_to_begin_stays_on_the_list(store: Store) -> None:
    world = await World.make(store)
    seconds, _ = await store.client.time()
    await store.client.zadd(keys.DELETIONS, {world.user: seconds - 60})
    await store.people.finish_deletions()
    assert await store.client.zscore(keys.DELETIONS, world.user) is not None


async def test_deletion_keeps_another_persons_address(store: Store) -> None:
    world = await World.make(store)
    await store.client.set(keys.email(world.email), "f" * 32)
    await store.people.delete(world.user)
    assert await store.people.find(world.email) == "f" * 32
