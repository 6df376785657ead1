"""App registrations: what may register, the cache and its invalidation, secrets, deletion."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from store import keys as spell
from store.apps import registration
from store.apps.client_ids import new_client_id
from store.apps.client_secrets import new_secret
from store.apps.redirect_uris import InvalidRedirectURI
from store.apps.registration import Registration
from store.names import check_client_id
from store.wiring import Store
from tests.support.lists.offenders import each
from tests.support.store.world import CALLBACK, World, refusal_of

ANY = Registration("an-app", "An App", (CALLBACK,), ("profile",))


@pytest.mark.spec("2.1")
@each(
    "fields",
    [
        pytest.param({"client_id": ""}, id="no client id"),
        pytest.param({"client_id": "with space"}, id="a client id with a space"),
        pytest.param({"client_id": "{tag}"}, id="a client id that would move the hash tag"),
        pytest.param({"client_id": "a:b"}, id="a client id with a colon"),
        pytest.param({"client_id": "x" * 65}, id="an endless client id"),
        pytest.param({"name": ""}, id="no name"),
        pytest.param({"redirect_uris": ()}, id="no redirect URI"),
        pytest.param({"redirect_uris": (CALLBACK,) * 21}, id="too many redirect URIs"),
        pytest.param({"redirect_uris": ("http://app.example/cb",)}, id="http beyond loopback"),
        pytest.param({"redirect_uris": ("JavaScript:alert(1)",)}, id="a script for a redirect URI"),
        pytest.param({"redirect_uris": ("com.example.app:/cb",)}, id="a custom scheme of a confidential app"),
        pytest.param({"scopes": ()}, id="no scope"),
        pytest.param({"scopes": ("profile", "everything")}, id="an unknown scope"),
        pytest.param({"scopes": ("profile", "profile")}, id="one scope twice"),
        pytest.param({"hosted_storage": True}, id="hosted storage without a data scope"),
        pytest.param({"public": True, "secrets": (b"x",)}, id="a public app with a secret"),
        pytest.param({"status": "odd"}, id="an unknown status"),
        pytest.param({"homepage": "javascript:alert(1)"}, id="a script for a homepage"),
        pytest.param({"refresh_retry_seconds": 61}, id="an endless retry window"),
    ],
)
def test_an_invalid_registration_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        replace(ANY, **fields).check_redirect_uris()


@pytest.mark.gen_test
async def test_redirect_uris_are_checked_on_write_and_not_on_read(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check of 20 long ones takes milliseconds, and pages read hundreds of apps."""
    checked: list[str] = []
    monkeypatch.setattr(registration, "check_redirect_uri", lambda uri, public: checked.append(uri))
    await memory_store.apps.create(ANY)
    assert checked == [CALLBACK]
    await memory_store.apps.list()
    await memory_store.apps.update("an-app", name="Another Name")
    await memory_store.apps.rotate_secret("an-app")
    assert checked == [CALLBACK]
    await memory_store.apps.update("an-app", redirect_uris=("https://two.example/cb",))
    assert checked == [CALLBACK, "https://two.example/cb"]


@pytest.mark.gen_test
@pytest.mark.parametrize("changes", [{"redirect_uris": ("http://app.example/cb",)}, {"public": False}])
async def test_a_forbidden_redirect_uri_is_not_written(memory_store: Store, changes: dict[str, Any]) -> None:
    kept = replace(ANY, redirect_uris=("com.example.app:/cb",), public=True)
    with pytest.raises(InvalidRedirectURI):
        await memory_store.apps.create(replace(kept, public=False))
    await memory_store.apps.create(kept)
    with pytest.raises(InvalidRedirectURI):
        await memory_store.apps.update("an-app", **changes)
    assert (await memory_store.apps.list())[0].redirect_uris == kept.redirect_uris


@pytest.mark.spec("2.4.rule")
@pytest.mark.parametrize("scope", ["data:read", "data:write"])
def test_an_app_with_hosted_storage_must_register_a_data_scope(scope: str) -> None:
    assert replace(ANY, scopes=("profile", scope), hosted_storage=True).hosted_storage


@pytest.mark.spec("2.1")
@pytest.mark.gen_test
async def test_a_registration_is_read_back_unchanged(store: Store) -> None:
    wanted = replace(
        ANY,
        pkce_required=True,
        hosted_storage=True,
        scopes=("data:read", "data:write"),
        refresh_retry_seconds=5,
        iss_in_response=False,
        homepage="https://app.example/",
        owner="0" * 32,
        redirect_uris=(CALLBACK, "http://127.0.0.1/cb"),
    )
    made, secret = await store.apps.create(wanted)
    assert secret is not None
    assert made.created_at > 0
    assert replace(made, secrets=(), secret_notes=(), created_at=0) == wanted
    store.apps.forget()
    assert await store.apps.find("an-app") == made
    assert await store.apps.list() == [made]
    assert secret not in str(made.record())
    packed: Any = await store.client.get(spell.app("an-app"))
    assert secret.encode() not in packed


@pytest.mark.spec("2.1")
@pytest.mark.gen_test
async def test_a_public_app_has_no_secret(store: Store) -> None:
    made, secret = await store.apps.create(replace(ANY, public=True))
    assert secret is None
    assert made.secrets == ()
    assert await refusal_of(store.apps.rotate_secret("an-app")) == "invalid_request"


@pytest.mark.gen_test
async def test_a_client_id_registers_once(store: Store) -> None:
    first, _ = await store.apps.create(ANY)
    assert await refusal_of(store.apps.create(replace(ANY, name="A Thief"))) == "invalid_request"
    store.apps.forget()
    assert await store.apps.find("an-app") == first


@pytest.mark.gen_test
async def test_unknown_apps_cannot_be_changed(store: Store) -> None:
    assert await refusal_of(store.apps.update("an-app", name="X")) == "not_found"
    assert await refusal_of(store.apps.rotate_secret("an-app")) == "not_found"
    assert await refusal_of(store.apps.delete("an-app")) == "not_found"
    assert await store.apps.find("no such {id}") is None
    assert await store.apps.active("an-app") is None


def test_ids_and_secrets_use_plain_characters_and_never_repeat() -> None:
    ids, secrets = {new_client_id() for _ in range(100)}, {new_secret() for _ in range(100)}
    assert len(ids) == len(secrets) == 100
    for made in ids:
        check_client_id(made)
    assert all(secret.replace("-", "a").replace("_", "a").isalnum() for secret in secrets)


@pytest.mark.trap(35)
@pytest.mark.gen_test
async def test_a_rotation_drops_the_older_of_two_secrets(store: Store) -> None:
    _, first = await store.apps.create(ANY)
    app, second = await store.apps.rotate_secret("an-app")
    assert first is not None
    assert [app.secret_matches(secret) for secret in (first, second, "", "lk_cs_x")] == [True, True, False, False]
    app, third = await store.apps.rotate_secret("an-app")
    assert [app.secret_matches(secret) for secret in (first, second, third)] == [False, True, True]
    app, fourth = await store.apps.rotate_secret("an-app", drop_old=True)
    assert [app.secret_matches(secret) for secret in (second, third, fourth)] == [False, False, True]
    assert await store.apps.find("an-app") == app, "at once on the process that did it"


@pytest.mark.gen_test
async def test_concurrent_changes_are_all_kept(store: Store) -> None:
    await store.apps.create(ANY)
    changes: list[dict[str, Any]] = [
        {"name": "New Name"},
        {"pkce_required": True},
        {"homepage": "https://a.example"},
        {"logo": "l" * 22},
    ]
    await asyncio.gather(*[store.apps.update("an-app", **change) for change in changes])
    made = await store.apps.find("an-app")
    assert made is not None
    assert (made.name, made.pkce_required, made.homepage) == ("New Name", True, "https://a.example")
    assert made.logo == "l" * 22


@pytest.mark.gen_test(timeout=60)
async def test_deletion_leaves_no_permanent_keys_of_an_app(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()
    for key in spell.hosted(world.user, world.app.client_id).values():
        await store.client.hset(key, "notes/n1", "kept")
    await store.apps.delete(world.app.client_id)
    assert await store.apps.active(world.app.client_id) is None
    assert not await world.lives(tokens.access_token)
    named = [key async for key in store.client.scan_iter(f"*{world.app.client_id}*")]
    assert all([await store.client.pttl(key) > 0 for key in named])
    assert await store.client.zcard(spell.APPS) == 0
    assert await store.client.hexists(spell.person(world.user)["user"], f"app:{world.app.client_id}") == 0


@pytest.mark.gen_test(timeout=60)
async def test_an_interrupted_app_deletion_continues(memory_store: Store) -> None:
    world = await World.make(memory_store)
    await world.tokens()
    await memory_store.client.delete(spell.app(world.app.client_id))  # as after the first write
    memory_store.apps.forget()
    await memory_store.apps.delete(world.app.client_id)
    assert not await memory_store.client.exists(spell.grant(world.user, world.app.client_id))
    assert await refusal_of(memory_store.apps.delete(world.app.client_id)) == "not_found"


@pytest.mark.gen_test(timeout=60)
async def test_a_deletion_clears_every_shard_and_skips_shards_without_the_app(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = [await World.make(memory_store) for _ in range(4)]
    for world in worlds:
        await world.tokens(app=worlds[0].app)
    cleared = []
    run = memory_store.apps._scripts.run

    async def noted(script: str, names: Any, **values: Any) -> Any:
        if script == "forget_app":
            cleared.append(names["app_users"])
        return await run(script, names, **values)

    monkeypatch.setattr(memory_store.apps._scripts, "run", noted)
    client = worlds[0].app.client_id
    await memory_store.apps.delete(client)
    assert set(cleared) == {spell.shard_app_users(world.user[:3], client) for world in worlds}
    for world in worlds:
        assert not await memory_store.client.exists(spell.grant(world.user, client))


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(35)
async def test_an_app_inherits_nothing_from_a_namesake(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()

    deletion = asyncio.ensure_future(store.apps.delete(world.app.client_id))
    store.apps.settle = 60  # cut short before the clearing
    while await store.apps.find(world.app.client_id):
        await asyncio.sleep(0)
    deletion.cancel()
    store.apps.settle = 0
    assert await refusal_of(store.apps.create(replace(world.app, secrets=()))) == "invalid_request"
    await store.apps.delete(world.app.client_id)
    await store.apps.create(replace(world.app, secrets=()))
    assert not await world.lives(tokens.access_token)


@pytest.mark.gen_test(timeout=60)
async def test_deletion_waits_for_stale_caches_before_clearing(store: Store) -> None:
    world = await World.make(store)
    store.apps.settle = 0.3
    deletion = asyncio.ensure_future(store.apps.delete(world.app.client_id))
    await asyncio.sleep(0.05)
    await world.tokens()  # as a process does whose copy of the registration is not dropped yet
    await deletion
    assert not await store.client.exists(spell.grant(world.user, world.app.client_id))
