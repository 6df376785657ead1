"""APIs of people: what an owner may do, what others see, and the list of apps that use an API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgpack
import pytest

from store import keys
from store.accounts.signin.reauth import ReauthFailed
from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.client_secrets import secret_mark
from store.apps.owners.owned_apis import MOST_APPS
from store.apps.owners.owner_deletion import OwnerDeletionForm
from store.lifetimes import APP_BEGUN
from store.refused import SignedOut, Unproved
from store.wiring import Store
from tests.support.http.api_shop import ORDERS, READ, at
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import reauth
from tests.support.store.world import PASSWORD, VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

READS, WRITES = at(ORDERS, "read", "write")


async def owner(store: Store, *, confirmed: bool = True) -> tuple[World, ApiRegistration, str]:
    """A person, the API that is theirs, and its secret."""
    world = await World.make(store)
    api, secret = await store.apis.create(replace(ORDERS, owner=world.user))
    if confirmed:
        await reauth(world)
    return world, api, secret


async def fresh(store: Store) -> ApiRegistration:
    api = await store.apis.fresh(ORDERS.client_id)
    assert api is not None
    return api


async def test_an_owner_finds_and_changes_the_api(store: Store) -> None:
    world, api, _ = await owner(store)
    assert (await store.owned_apis.list(world.session))[1] == (api,)
    before = await store.owned_apis.update(world.session, api.client_id, "api_changed", VISITOR, token_lifetime=60)
    assert before == api
    changed = await fresh(store)
    assert changed.token_lifetime == 60
    assert changed.changed_at > 0
    assert (await store.owned_apis.list(world.session))[1] == (changed,)
    await store.owned_apis.update(world.session, api.client_id, "api_changed", VISITOR, token_lifetime=60)
    assert (await world.events()).count("api_changed") == 1, "a change without effect is not noted"


async def test_other_peoples_apis_and_operators_ones_are_invisible(store: Store) -> None:
    world, api, _ = await owner(store)
    other = await World.make(store)
    await reauth(other)
    bills, _ = await store.apis.create(ApiRegistration("https://bills.example", "Bills", (READ,)))
    mark = secret_mark(api.secrets[0])
    for client_id, session in ((api.client_id, other.session), (bills.client_id, world.session), ("x", world.session)):
        owned = store.owned_apis
        calls: list[Any] = [
            owned.find(session, client_id),
            owned.update(session, client_id, "api_changed", VISITOR, name="Taken"),
            owned.rotate(session, client_id, VISITOR),
            owned.drop_secret(session, client_id, mark, VISITOR),
            owned.delete(session, client_id, VISITOR),
            store.api_ending.challenge(session, client_id),
            store.api_ending.with_password(session, client_id, OwnerDeletionForm("Orders", PASSWORD, ""), VISITOR),
        ]
        assert [await refusal_of(call) for call in calls] == ["not_found"] * len(calls)
    assert (await store.owned_apis.list(other.session))[1] == ()
    assert await fresh(store) == api


async def test_changes_need_a_session_and_a_recent_reauthentication(store: Store) -> None:
    world, api, _ = await owner(store, confirmed=False)
    owned = store.owned_apis
    for call in (
        owned.update(world.session, api.client_id, "api_changed", VISITOR, name="Other"),
        owned.update(world.session, api.client_id, "api_enabled", VISITOR, name="Other", status="off"),
        owned.rotate(world.session, api.client_id, VISITOR),
        owned.delete(world.session, api.client_id, VISITOR),
    ):
        with pytest.raises(Unproved):
            await call
    assert await fresh(store) == api
    await owned.update(world.session, api.client_id, "api_disabled", VISITOR, status="off")
    assert not (await fresh(store)).active, "switching off takes no confirmation"
    with pytest.raises(Unproved):
        await owned.update(world.session, api.client_id, "api_enabled", VISITOR, status="active")
    await store.sessions.end(world.session, VISITOR)
    with pytest.raises(SignedOut):
        await owned.find(world.session, api.client_id)
    with pytest.raises(SignedOut):
        await owned.list(world.session)


async def test_the_operator_s_disabling_is_the_operator_s_to_end(store: Store) -> None:
    world, api, _ = await owner(store)
    await store.apis.update(api.client_id, status="disabled")
    for status in ("active", "off"):
        call = store.owned_apis.update(world.session, api.client_id, "api_enabled", VISITOR, status=status)
        assert await refusal_of(call) == "access_denied"
    await store.owned_apis.update(world.session, api.client_id, "api_changed", VISITOR, name="Renamed")
    assert (await fresh(store)).status == "disabled"


async def test_an_api_that_was_given_away_meanwhile_is_not_changed(memory_store: Store) -> None:
    world, api, _ = await owner(memory_store)
    apis, owned = memory_store.apis, memory_store.owned_apis
    found = owned.find

    async def given_away(session: Any, client_id: str) -> Any:
        seen = await found(session, client_id)
        await apis.update(client_id, owner="0" * 32)
        return seen

    mark = secret_mark(api.secrets[0])
    one, two = api.secrets, (*api.secrets, b"another digest")
    for secrets, call in (
        (one, lambda: owned.update(world.session, api.client_id, "api_changed", VISITOR, name="Taken")),
        (one, lambda: owned.rotate(world.session, api.client_id, VISITOR)),
        (two, lambda: owned.drop_secret(world.session, api.client_id, mark, VISITOR)),
        (one, lambda: owned.delete(world.session, api.client_id, VISITOR)),
    ):
        await apis.update(api.client_id, owner=world.user, secrets=secrets)
        owned.find = given_away  # type: ignore[method-assign]  # gives it away, and passes on
        assert await refusal_of(call()) == "not_found"
        owned.find = found  # type: ignore[method-assign]  # its own again
    assert (await fresh(memory_store)).name == "Orders"


async def test_a_second_secret_and_the_end_of_one(store: Store) -> None:
    world, api, first = await owner(store)
    owned = store.owned_apis
    changed, second = await owned.rotate(world.session, api.client_id, VISITOR)
    assert changed.secret_matches(first)
    assert changed.secret_matches(second)
    assert await refusal_of(owned.rotate(world.session, api.client_id, VISITOR)) == "invalid_request"
    old = secret_mark(api.secrets[0])
    await owned.drop_secret(world.session, api.client_id, old, VISITOR)
    left = await fresh(store)
    assert (left.secret_matches(first), left.secret_matches(second)) == (False, True)
    for mark, code in ((old, "not_found"), (secret_mark(left.secrets[0]), "invalid_request")):
        assert await refusal_of(owned.drop_secret(world.session, api.client_id, mark, VISITOR)) == code


@pytest.mark.parametrize(
    ("name", "password", "part"),
    [("Orders", "wrong", "password"), ("Order", PASSWORD, "confirm"), ("", PASSWORD, "confirm")],
)
async def test_deletion_needs_name_and_password(store: Store, name: str, password: str, part: str) -> None:
    world, api, _ = await owner(store)
    with pytest.raises(ReauthFailed) as failed:
        await store.api_ending.with_password(
            world.session, api.client_id, OwnerDeletionForm(name, password, ""), VISITOR
        )
    assert failed.value.part == part
    ended = await store.api_ending.with_password(
        world.session, api.client_id, OwnerDeletionForm(" orders ", PASSWORD, ""), VISITOR
    )
    assert ended.registration == api
    assert await store.apis.fresh(api.client_id) is None
    session = store.sessions.open(ended.cookie)
    assert session is not None
    world.session = session
    assert (await world.events()).count("api_deleted") == 1


@pytest.mark.parametrize(
    ("act", "secrets", "status"),
    [
        pytest.param("rotate", 1, "active", id="a second secret"),
        pytest.param("replace", 0, "off", id="another secret in place of the one"),
        pytest.param("change", 1, "off", id="scopes"),
        pytest.param("off", 1, "off", id="switched off"),
        pytest.param("nothing", 1, "active", id="nothing"),
    ],
)
async def test_taking_an_account_back_ends_what_a_thief_did(
    clock: FakeClock, memory_store: Store, act: str, secrets: int, status: str
) -> None:
    store = memory_store
    world, api, first = await owner(store)
    clock.advance(60)
    since = await store.apps.now()
    await reauth(world)
    owned = store.owned_apis
    if act in ("rotate", "replace"):
        await owned.rotate(world.session, api.client_id, VISITOR)
    if act == "replace":
        await owned.drop_secret(world.session, api.client_id, secret_mark(api.secrets[0]), VISITOR)
    if act == "change":
        scopes = (ApiScope("read", "Nothing special"),)
        await owned.update(world.session, api.client_id, "api_changed", VISITOR, scopes=scopes)
    if act == "off":
        await owned.update(world.session, api.client_id, "api_disabled", VISITOR, status="off")
    done = await owned.take_back(world.user, since)
    left = await fresh(store)
    assert (len(left.secrets), left.status) == (secrets, status)
    assert left.secret_matches(first) == (act != "replace")
    assert (api.client_id in done) == (act in ("rotate", "replace", "change"))
    assert await owned.take_back(world.user, since) == {}


async def test_the_apps_of_an_api_follow_their_registrations(store: Store) -> None:
    world, api, _ = await owner(store)
    name = keys.api_apps(api.client_id)

    async def using() -> dict[str, tuple[str, ...]]:
        return {app.client_id: app.scopes for app in (await store.owned_apis.apps_at(api)).apps}

    assert await using() == {}
    await world.register("shop", api_scopes=(READS, WRITES))
    assert await using() == {"shop": ("read", "write")}
    await store.apps.update("shop", api_scopes=(WRITES,))
    assert await using() == {"shop": ("write",)}
    await store.apps.update("shop", api_scopes=())
    assert await store.client.zcard(name) == 0
    await store.apps.update("shop", api_scopes=(READS,))
    await store.apps.begin_deletion("shop")
    assert await store.client.zcard(name) == 0


async def test_entries_without_scopes_are_dropped_once_no_registration_can_follow(memory_store: Store) -> None:
    _, api, _ = await owner(memory_store)
    name, now = keys.api_apps(api.client_id), (await memory_store.client.time())[0]
    await memory_store.client.zadd(name, {"young": now, "old": now - APP_BEGUN // 1000 - 1})
    assert (await memory_store.owned_apis.apps_at(api)).apps == ()
    assert await memory_store.client.zrange(name, 0, -1) == [b"young"]


async def test_a_page_names_a_bounded_number_of_apps(memory_store: Store) -> None:
    world, api, _ = await owner(memory_store)
    now = (await memory_store.client.time())[0]
    await memory_store.client.zadd(keys.api_apps(api.client_id), {f"app-{n}": now for n in range(MOST_APPS + 20)})
    await world.register("shop", api_scopes=(READS,))
    assert (await memory_store.owned_apis.apps_at(api)).more == 21


async def test_an_api_of_an_earlier_release_has_no_owner(memory_store: Store) -> None:
    row = msgpack.unpackb(ORDERS.pack())
    del row["owner"]
    assert ApiRegistration.unpack(msgpack.packb(row)) == ORDERS
    given = replace(ORDERS.with_secret("a secret", 5, by_owner=True), owner="0" * 32, changed_at=7)
    assert ApiRegistration.unpack(given.pack()) == given
