"""Self-registered apps: the owner's list and the registrations stay consistent through failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from store import keys as spell
from store.apps.apps import Apps
from store.apps.client_secrets import secret_mark
from store.apps.owners.owned import Registered
from store.apps.tombstones import LASTS
from store.crypto.keyring import Keys
from store.errors import StoreUnavailable
from store.lifetimes import APP_BEGUN, REGISTER_APP
from store.refused import SignedOut
from store.wiring import Store
from tests.accounts.test_person_deletion import everything
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.checked_store import broken, checked
from tests.support.store.lost_answers import losing
from tests.support.store.second_factors import reauth
from tests.support.store.world import CALLBACK, VISITOR, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

FIELDS: dict[str, Any] = {"name": "My App", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}


async def register(world: World, nonce: str = "a nonce", most: int = 20, **fields: Any) -> Registered:
    """An app of the world's person."""
    return await world.store.owned.register(world.session, nonce, VISITOR, most=most, **{**FIELDS, **fields})


async def listed(world: World) -> list[str]:
    """The ids of the person's apps; those with an unfinished deletion come last."""
    owned = await world.store.owned.list(world.session)
    return [*(app.client_id for app in owned.apps), *owned.deleting]


async def test_registering_makes_the_owner_and_shows_the_secret_once(store: Store) -> None:
    world = await World.make(store)
    made = await register(world)
    assert made.secret is not None
    assert made.registration.owner == world.user
    assert made.registration.secret_matches(made.secret)
    again = await register(world, name="Sent again")
    assert again == Registered(made.registration, None, again=True)
    assert await listed(world) == [made.registration.client_id]
    assert await store.apps.find(made.registration.client_id) == made.registration
    assert (await world.events()).count("app_registered") == 1


async def test_a_form_sent_twice_concurrently_registers_one_app(store: Store) -> None:
    world = await World.make(store)
    made = await asyncio.gather(*(register(world) for _ in range(5)))
    assert len({one.registration for one in made}) == 1
    assert len([one for one in made if one.secret]) == 1
    assert len(await listed(world)) == 1


async def test_two_people_who_send_the_same_form_get_two_apps(store: Store) -> None:
    world, other = await World.make(store), await World.make(store)
    assert (await register(world)).registration.client_id != (await register(other)).registration.client_id


async def test_other_peoples_apps_are_invisible(store: Store) -> None:
    world, other = await World.make(store), await World.make(store)
    client = (await register(world)).registration.client_id
    mark = secret_mark((await register(world)).registration.secrets[0])
    for owned in (client, world.app.client_id, "an-unknown-one"):
        calls = [
            store.owned.find(other.session, owned),
            store.owned.update(other.session, owned, "app_changed", VISITOR, name="Taken"),
            store.owned.rotate(other.session, owned, VISITOR),
            store.owned.drop_secret(other.session, owned, mark, VISITOR),
            store.owned.delete(other.session, owned, VISITOR),
        ]
        assert [await refusal_of(call) for call in calls] == ["not_found"] * 5
    assert await listed(other) == []
    assert await other.events() == ["signed_up", "signed_in"]
    assert (await store.owned.find(world.session, client))[1].name == "My App"


async def test_managing_apps_needs_a_session(store: Store) -> None:
    world = await World.make(store)
    client = (await register(world)).registration.client_id
    await store.sessions.end(world.session, VISITOR)
    for call in (
        store.owned.list(world.session),
        store.owned.find(world.session, client),
        register(world, "another"),
        store.owned.update(world.session, client, "app_changed", VISITOR, name="X"),
        store.owned.rotate(world.session, client, VISITOR),
        store.owned.delete(world.session, client, VISITOR),
    ):
        with pytest.raises(SignedOut):
            await call
    assert (await store.apps.fresh(client))[0] is not None


async def test_the_app_limit_holds_under_concurrency(store: Store) -> None:
    world = await World.make(store)
    await reauth(world)
    made = await asyncio.gather(*(refusal_of(register(world, f"nonce {n}", most=3)) for n in range(8)))
    assert (made.count(None), made.count("access_denied")) == (3, 5)
    assert len(await listed(world)) == 3
    await store.owned.delete(world.session, (await listed(world))[0], VISITOR)
    await store.apps.finish_deletion((await listed(world))[-1])
    assert await refusal_of(register(world, "one more", most=3)) is None


async def test_alternating_registration_and_deletion_is_limited(memory_store: Store) -> None:
    world = await World.make(memory_store)
    for number in range(REGISTER_APP.limit):
        await register(world, f"nonce {number}", most=100)
    assert await refusal_of(register(world, "one more", most=100)) == "rate_limited"


async def test_concurrent_rotations_make_one_secret(store: Store) -> None:
    world = await World.make(store)
    await reauth(world)
    made = await register(world)
    client = made.registration.client_id
    results = await asyncio.gather(
        *(store.owned.rotate(world.session, client, VISITOR) for _ in range(4)), return_exceptions=True
    )
    (won,) = [result for result in results if not isinstance(result, BaseException)]
    assert {getattr(result, "code", None) for result in results if result is not won} == {"invalid_request"}
    app, _ = await store.apps.fresh(client)
    assert app is not None
    assert made.secret is not None
    assert [app.secret_matches(secret) for secret in (made.secret, won[1])] == [True, True]


async def test_either_secret_can_be_ended_but_not_the_last(store: Store) -> None:
    world = await World.make(store)
    await reauth(world)
    made = await register(world)
    client = made.registration.client_id
    app, second = await store.owned.rotate(world.session, client, VISITOR)
    newer, older = (secret_mark(digest) for digest in app.secrets)
    outcomes = await asyncio.gather(
        *(refusal_of(store.owned.drop_secret(world.session, client, mark, VISITOR)) for mark in (newer, older))
    )
    assert set(outcomes) == {None, "invalid_request"}
    left, _ = await store.apps.fresh(client)
    assert left is not None
    assert len(left.secrets) == 1
    assert await refusal_of(store.owned.drop_secret(world.session, client, "00000000", VISITOR)) == "not_found"
    assert left.secret_matches(second) == (newer == secret_mark(left.secrets[0]))


async def test_a_refused_change_is_not_logged(store: Store) -> None:
    world = await World.make(store)
    await reauth(world)
    client = (await register(world)).registration.client_id
    before = await world.events()
    with pytest.raises(ValueError, match="scope"):
        await store.owned.update(world.session, client, "app_changed", VISITOR, scopes=())
    await store.apps.update(client, public=True, secrets=())
    assert await refusal_of(store.owned.rotate(world.session, client, VISITOR)) == "invalid_request"
    assert await world.events() == before


@pytest.mark.trap(35)
async def test_the_owners_changes_take_effect_at_once(store: Store) -> None:
    world = await World.make(store)
    await reauth(world)
    client = (await register(world)).registration.client_id
    assert await store.apps.active(client)
    await store.owned.update(world.session, client, "app_disabled", VISITOR, status="off")
    assert await store.apps.active(client) is None
    await store.owned.update(world.session, client, "app_enabled", VISITOR, status="active")
    assert await store.apps.active(client)
    await store.owned.delete(world.session, client, VISITOR)
    assert await store.apps.find(client) is None
    assert await store.owned.list(world.session)
    assert await listed(world) == [client]
    await store.apps.finish_deletion(client)
    assert await listed(world) == []
    assert [key for key in await every_key(store.client) if client.encode() in key] == []
    assert await store.client.zscore(spell.APPS, client) is None, "nobody had connected it"


async def test_a_deleted_app_counts_until_its_documents_are_gone(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await World.make(memory_store)
    monkeypatch.setattr(spell, "SHARDS", (world.user[:3],))
    own = (await register(world, most=1)).registration
    await world.tokens(("profile",), own)
    await reauth(world)
    await memory_store.owned.delete(world.session, own.client_id, VISITOR)
    await memory_store.apps.finish_deletion(own.client_id)
    assert await refusal_of(register(world, "one more", most=1)) == "access_denied"
    (deleted,) = (await memory_store.owned.list(world.session)).deleted
    assert (deleted.client_id, deleted.name) == (own.client_id, "My App")
    assert deleted.until.timestamp() * 1000 == await memory_store.client.pexpiretime(spell.app(own.client_id))
    assert broken(await checked(memory_store)) == set()
    clock.advance(LASTS / 1000 + 1)
    world.session = await world.sign_in()
    made = await register(world, "one more", most=1)
    assert await listed(world) == [made.registration.client_id]


async def test_deleting_the_owner_keeps_only_the_apps(store: Store) -> None:
    untouched = await everything(store)
    world = await World.make(store)
    client = (await register(world)).registration.client_id
    await store.operator.delete(world.email)
    left, _ = await store.apps.fresh(client)
    assert left is not None
    assert not await store.client.exists(spell.person(world.user)["apps"])
    passing = {key for key in await everything(store) - untouched if await store.client.pttl(key) > 0}
    assert await everything(store) - untouched - passing == {
        spell.APPS,
        spell.app(client),
        spell.app(world.app.client_id),
        # Notes that the index of people and the security log take up.
        spell.directory_relay(world.user[:3])["changed"],
        spell.recorded(world.user[:3]),
    }
    await store.apps.delete(client)
    assert await store.apps.fresh(client) == (None, None)


@pytest.mark.parametrize(
    ("script", "lose_request"),
    [
        pytest.param("claim_app", True, id="before it is in the owner's list"),
        pytest.param("claim_app", False, id="behind the owner's list"),
        pytest.param("save_app", True, id="before the registration"),
        pytest.param("save_app", False, id="behind the registration"),
    ],
)
async def test_the_next_attempt_completes_an_interrupted_registration(
    valkey_engine: Engine, keys: Keys, script: str, lose_request: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        armed.lose_request = lose_request
        armed.arm(script)
        with pytest.raises(StoreUnavailable):
            await register(world)
        made = await register(world)
        assert await listed(world) == [made.registration.client_id]
        # If only the answer was lost, the app is registered, but nobody has seen its secret.
        assert made.again == (script == "save_app" and not lose_request)
        await world.store.apps.delete(made.registration.client_id)
        assert await listed(world) == []


async def test_a_stale_name_leaves_the_list_of_apps(memory_store: Store, clock: FakeClock) -> None:
    world = await World.make(memory_store)
    name = spell.person(world.user)["apps"]
    seconds, _ = await memory_store.client.time()
    await memory_store.client.zadd(name, {"begun": seconds * 1000})
    await memory_store.client.zadd(name, {world.app.client_id: seconds * 1000})  # of nobody's own
    assert await listed(world) == []
    assert await memory_store.client.zcard(name) == 2
    clock.advance(APP_BEGUN / 1000 + 1)
    assert await listed(world) == []
    assert await memory_store.client.zcard(name) == 0


async def retired(apps: Apps, client: str) -> None:
    await apps.begin_deletion(client)
    await apps.finish_deletion(client)


@pytest.mark.parametrize(
    ("script", "lose_request"),
    [
        pytest.param("save_app", False, id="behind the tombstone"),
        pytest.param("retire_app", False, id="while grants end"),
        pytest.param("bury_app", True, id="before the tombstone has its end"),
        pytest.param("bury_app", False, id="behind that"),
    ],
)
async def test_an_interrupted_deletion_stays_visible_to_the_owner_and_continues(
    valkey_engine: Engine, keys: Keys, script: str, lose_request: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        own = (await register(world)).registration
        apps, client = world.store.apps, own.client_id
        await world.tokens(("profile",), own)  # else it left nothing to clear
        armed.lose_request = lose_request
        armed.arm(script, times=4)
        with pytest.raises(StoreUnavailable):
            await retired(apps, client)
        armed.times = 0
        assert await apps.find(client) is None
        gone = script == "bury_app" and not lose_request
        assert await listed(world) == ([] if gone else [client])
        if not gone:
            assert await refusal_of(register(world)) == "invalid_request", "what it left is not for the next one"
            await world.store.owned.delete(world.session, client, VISITOR)
            await apps.finish_deletion(client)
        assert await listed(world) == []
        assert await refusal_of(apps.delete(client)) in (None, "not_found")


async def test_the_operator_can_delete_an_unlisted_app(store: Store) -> None:
    world = await World.make(store)
    client = (await register(world)).registration.client_id
    await store.client.zrem(spell.APPS, client)
    await store.client.delete(spell.person(world.user)["apps"])
    await store.apps.delete(client)
    assert await store.apps.fresh(client) == (None, None)
    assert await refusal_of(store.apps.delete(client)) == "not_found"


async def test_an_interrupted_registration_does_not_block_the_name(store: Store) -> None:
    """It once did: a name in the list without a registration was taken for an unfinished deletion."""
    world = await World.make(store)
    await store.client.zadd(spell.APPS, {"a-name": 1})
    made, _ = await world.register("a-name")
    assert made in await store.apps.list()


async def test_the_operator_can_transfer_an_app(store: Store) -> None:
    world, other = await World.make(store), await World.make(store)
    client = world.app.client_id
    for owner, former in ((world, other), (other, world)):
        await store.owned.give(owner.user, client)
        assert client not in await listed(owner), "as long as the registration does not name them"
        await store.apps.update(client, owner=owner.user)
        assert (await listed(owner), await listed(former)) == ([client], [])
        assert await refusal_of(store.owned.find(former.session, client)) == "not_found"
    assert await refusal_of(store.owned.give("0" * 32, client)) == "not_found"
    assert (await world.events())[-1] == "app_given_by_operator"


async def test_the_owner_cannot_enable_an_app_that_the_operator_disabled(store: Store) -> None:
    world = await World.make(store)
    await reauth(world)
    client = (await register(world)).registration.client_id
    await store.apps.update(client, status="disabled")
    for status in ("active", "off"):
        call = store.owned.update(world.session, client, "app_enabled", VISITOR, status=status)
        assert await refusal_of(call) == "access_denied"
    await store.owned.update(world.session, client, "app_changed", VISITOR, name="Renamed")
    assert await store.apps.active(client) is None
    # Nor when the operator is a moment faster.
    assert await refusal_of(store.apps.update(client, world.user, status="active")) == "access_denied"
    assert (await world.events()).count("app_enabled") == 0
