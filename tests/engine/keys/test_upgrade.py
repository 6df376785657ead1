"""What the release before layout 2 has written: this one brings it over at its start, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from store import keys as spell
from store import parsed_keys
from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import TokenKind
from store.engine.connect import connect, unix_url
from store.engine.embedded import EmbeddedStore
from store.errors import StartupError, StoreUnavailable
from store.keystate import LAYOUT
from store.refused import Refused
from store.upgrade import token_of_layout_1
from store.wiring import Store
from tests.conftest import ENGINES, emptied
from tests.support.http.driver import send
from tests.support.processes.engines import Engine, FakeClock
from tests.support.processes.operator_commands import everything
from tests.support.processes.processes import QUICK, Server, opened
from tests.support.store.layout_one import ADA, BOB, CAROL, DATA, DORA, EVE, FRANK, OLD, fill, world_of
from tests.support.store.lost_answers import SCRIPTS, losing, store_on
from tests.support.store.second_factors import half_of
from tests.support.store.world import CALLBACK, PASSWORD, VERIFIER, VISITOR, World, every_key, refusal_of


@pytest.fixture
def keys() -> Keys:
    """The keys that the old release sealed with."""
    return Keys(KeyRing.parse(OLD["keys"]))


@pytest.fixture
def old_store(memory_store: Store, clock: FakeClock) -> Store:
    """The old release's store at the moment it was left, before anything was brought over."""
    clock.advance(OLD["moment"] / 1000 - time.time())
    return memory_store


async def brought_over(store: Store) -> Store:
    await fill(store.client)
    layout = await store.key_state.check(store.keys.ring)
    assert layout == 1
    await store.upgrade.run(layout)
    assert await store.key_state.check(store.keys.ring) == LAYOUT
    return store


@pytest.mark.gen_test
async def test_a_damaged_row_loses_only_its_damaged_part(old_store: Store) -> None:
    await fill(old_store.client)
    row = spell.person(ADA["user"])["user"]
    await old_store.client.hdel(row, "name")
    before = await old_store.client.hgetall(row)
    await old_store.upgrade.run(1)
    after = await old_store.client.hgetall(row)
    for name in (b"email", b"password", b"status", b"created_at"):
        assert after[name] == before[name]
    assert after[b"epoch"] == before[b"session_epoch"]
    assert b"name" not in after


async def shape(client: Any) -> dict[str, bytes]:
    """Every key with its type, but for the list of deletions, which has times in it."""
    return {key.decode(): await client.type(key) for key in await every_key(client) if key.decode() != spell.DELETIONS}


@pytest.mark.gen_test
async def test_the_upgrade_converts_everything(old_store: Store) -> None:
    store = await brought_over(old_store)
    found = await shape(store.client)
    assert [key for key in found if token_of_layout_1(key) or key.endswith(":grants")] == []
    assert {kind for key, kind in found.items() if key.endswith((":users", ":audit"))} == {b"set", b"string"}
    for key in found:
        if (parsed := parsed_keys.read(key)) and parsed.kind == "user":
            fields = await store.client.hkeys(key)
            assert fields[:2] == [b"status", b"epoch"]
            assert not {b"session_epoch", b"email_verified"} & set(fields)
        if key.endswith(":users"):
            # Redis-py types both clients at once.
            assert {len(one) for one in await store.client.smembers(key)} == {29}


@pytest.mark.gen_test
async def test_old_tokens_codes_and_sessions_keep_working(old_store: Store) -> None:
    world = await world_of(await brought_over(old_store), ADA, ADA["cookie"])
    store = world.store
    profile, _, _ = await store.identity.read(world.caller(ADA["access"]), "profile")
    assert (profile.user, profile.email, profile.name) == (ADA["user"], ADA["email"], "Ada Lovelace")
    assert profile.email_verified
    # A token that was narrower than its family still is.
    assert await refusal_of(store.identity.read(world.caller(ADA["narrow"]), "profile")) is None
    assert await refusal_of(store.identity.read(world.caller(ADA["narrow"]), "data:read")) == "insufficient_scope"
    assert await world.events() == ADA["events"]
    assert await world.lives((await world.exchange(ADA["code"])).access_token)
    rotated = await world.refresh(ADA["refresh"])
    assert await world.lives(rotated.access_token)
    # The same person, app and family as before: what was used long ago is still known for a replay.
    assert await refusal_of(world.refresh(ADA["replayed"])) == "invalid_grant"
    assert not await world.lives(rotated.access_token)


@pytest.mark.gen_test
async def test_tokens_keep_their_times(old_store: Store) -> None:
    store = await brought_over(old_store)
    token = store.sealer.open(TokenKind.REFRESH, ADA["refresh"])
    assert token is not None
    rows = spell.token(token.user, token.client, token.id, token.generation)
    before = {name: lives for name, _, _, lives in OLD["rows"]}
    for noun, of_layout_1 in (("family", f"{token.client}:{token.id}"), ("access", f"{token.client}:{token.id}:2")):
        old = f"{spell.prefix(token.user)}{noun}:{of_layout_1}"
        assert before[old] - 60_000 < await store.client.pttl(rows[noun]) <= before[old]


@pytest.mark.gen_test
async def test_documents_credits_apps_and_pictures_survive(old_store: Store) -> None:
    world = await world_of(await brought_over(old_store), ADA, ADA["cookie"])
    store, caller = world.store, world.caller(ADA["access"])
    _, content, _ = await store.documents.read(caller, "data:read", "notes", "n1")
    assert content == b'{"text": "kept"}'
    assert await refusal_of(store.documents.read(caller, "data:read", "drafts", "d1")) == "not_found"
    account = await store.credits.show(world.user)
    assert account.paid == ADA["paid"] == account.opening + sum(entry.amount for entry in account.entries)
    assert [hold.amount for hold in account.holds] == [200]
    listed = await store.grants.list(world.session)
    assert {grant.client for grant in listed.grants} == {world.app.client_id, "spender"}
    assert [app.client_id for app in (await store.owned.list(world.session)).apps] == [ADA["own"]]
    profile = await store.sessions.profile(world.session)
    assert await store.profiles.image(world.user, profile.picture) == b"an image"


@pytest.mark.gen_test
async def test_people_can_still_sign_in(old_store: Store) -> None:
    store = await brought_over(old_store)
    assert {person.email async for person in store.operator.people()} == {
        one["email"] for one in (ADA, BOB, CAROL, DORA, FRANK)
    }
    await world_of(store, ADA)
    bob = World()
    bob.store, bob.user, bob.email = store, BOB["user"], BOB["email"]
    half = await half_of(bob)
    assert (await store.second_step.with_code(half, BOB["codes"][0], VISITOR)).cookie
    with pytest.raises(Refused, match="access_denied"):
        await store.second_step.with_code(await half_of(bob), BOB["codes"][0], VISITOR)
    assert (await store.operator.security(bob.user)).passkeys
    frank = await store.operator.set_status(FRANK["email"], "active")
    assert frank.status == "active"
    access = (await world_of(store, FRANK)).caller(FRANK["access"])
    assert await refusal_of(store.identity.read(access, "profile")) is None


@pytest.mark.gen_test
async def test_old_confirmation_links_and_invitations_still_work(old_store: Store) -> None:
    store = await brought_over(old_store)
    credentials = await store.people.verify(DORA["email"], PASSWORD)
    assert credentials is not None
    session = store.sessions.open((await store.sessions.start(credentials, VISITOR)).cookie)
    assert session is not None
    assert not (await store.sessions.profile(session)).email_verified
    await store.links.confirm(session, DORA["link"], VISITOR)
    assert (await store.sessions.profile(session)).email_verified
    invited = await store.people.invited(DORA["invite"])
    assert invited is not None
    assert (invited.email, invited.target) == ("new@example.com", "")


@pytest.mark.gen_test
async def test_reconnecting_in_the_grace_window_finds_everything(old_store: Store, clock: FakeClock) -> None:
    world = await world_of(await brought_over(old_store), CAROL)
    assert not await world.lives(CAROL["dead"])
    (grant,) = (await world.store.grants.list(world.session)).grants
    assert grant.data_until is not None
    clock.advance(29 * 86400)
    world.session = await world.sign_in()
    tokens = await world.tokens()
    _, content, _ = await world.store.documents.read(world.caller(tokens.access_token), "data:read", "notes", "n1")
    assert content == b'"in the grace window"'


@pytest.mark.gen_test
async def test_a_deletion_interrupted_in_the_old_release_is_finished(old_store: Store) -> None:
    store = await brought_over(old_store)
    assert await store.people.half_deleted(EVE["user"])
    await store.people.finish_deletions()
    assert not await store.people.half_deleted(EVE["user"])
    left = await every_key(store.client, spell.prefix(EVE["user"]) + "*")
    assert [key for key in left if await store.client.pttl(key) == -1] == []
    for client in EVE["clients"]:
        # Redis-py types both clients at once.
        listed = await store.client.smembers(spell.shard_app_users(EVE["user"][:3], client))
        assert listed == set()
    assert await store.people.create(
        EVE["email"], "Eve", PASSWORD, verified=True, event="signed_up", visitor=VISITOR
    ), "whoever wants the address has it"


@pytest.fixture(params=[name for name in ENGINES if name != "memory"])
def real_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, on each real engine in turn."""
    return emptied(request, request.param)


@pytest.mark.gen_test
async def test_the_start_upgrades_a_store_on_every_engine(real_url: str, keys: Keys) -> None:
    client = await connect(real_url)
    await fill(client)
    async with opened(real_url, keys) as store:
        world = await world_of(store, ADA)
        assert await world.lives(ADA["access"])
        assert await world.lives((await world.refresh(ADA["refresh"])).access_token)
        # Redis-py types both clients at once.
        assert await client.hget(spell.KEYRING, "layout") == str(LAYOUT).encode()
        found = await shape(client)
        assert [key for key in found if token_of_layout_1(key)] == []
    async with opened(real_url, keys) as store:
        assert await (await world_of(store, ADA)).lives(ADA["access"])
    await client.aclose()


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("lose_request", [False, True], ids=["its answer was lost", "it never arrived"])
@pytest.mark.parametrize("script", [*(name for name in SCRIPTS if name.startswith("upgrade_")), "note_layout"])
async def test_an_interrupted_upgrade_starts_again(
    valkey_engine: Engine, keys: Keys, script: str, lose_request: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        expected = await upgraded(valkey_engine, world.store)
        await refill(valkey_engine, world.store)
        armed.lose_request = lose_request
        armed.arm(script, 2)
        with pytest.raises(StoreUnavailable):
            await world.store.upgrade.run(1)
        assert await world.store.key_state.check(world.store.keys.ring) in (
            {1, LAYOUT} if script == "note_layout" else {1}
        )
        armed.times = 0
        await world.store.upgrade.run(1)
        with valkey_engine.client() as client:
            assert content(client) == expected


async def refill(engine: Engine, store: Store) -> None:
    with engine.client() as client:
        client.flushdb()
    await fill(store.client)


async def upgraded(engine: Engine, store: Store) -> bytes:
    """What the store holds after an upgrade that nothing disturbs."""
    await refill(engine, store)
    await store.upgrade.run(1)
    with engine.client() as client:
        return content(client)


def content(client: redis.Redis) -> bytes:
    """Everything in a store, in an order, but for what has the time of the upgrade in it."""
    client.delete(spell.DELETIONS, spell.DIRECTORY_REBUILD)
    client.hdel(spell.KEYRING, "sealed_at:1", "known_at:1")
    for due in client.scan_iter("{???}:due"):
        members: list[Any] = client.zrange(due, 0, -1)
        client.zadd(due, dict.fromkeys(members, 0))
    return b"\n".join(sorted(everything(client).split(b"\n")))


@pytest.mark.gen_test
async def test_several_processes_may_upgrade_concurrently(valkey_engine: Engine, keys: Keys) -> None:
    first, second = [store_on(await connect(valkey_engine.url), keys) for _ in range(2)]
    expected = await upgraded(valkey_engine, first)
    await refill(valkey_engine, first)
    await asyncio.gather(first.upgrade.run(1), second.upgrade.run(1))
    with valkey_engine.client() as client:
        assert content(client) == expected
    await first.close()
    await second.close()


@pytest.mark.gen_test
async def test_already_converted_data_is_left_alone(valkey_engine: Engine, keys: Keys) -> None:
    """A store that this layout was written to before there were numbers is taken for one of layout 1."""
    async with losing(valkey_engine, keys) as (world, _):
        tokens = await world.tokens()
        assert await world.store.key_state.check(keys.ring) == LAYOUT
        with valkey_engine.client() as client:
            client.hset(spell.KEYRING, "layout", "1")
            before = content(client)
            await world.store.upgrade.run(1)
            assert client.hget(spell.KEYRING, "layout") == str(LAYOUT).encode()
            client.hset(spell.KEYRING, "layout", "1")
            assert content(client) == before
        assert await world.lives(tokens.access_token)


@pytest.mark.gen_test
async def test_an_empty_store_has_the_current_layout(valkey_engine: Engine, keys: Keys) -> None:
    valkey_engine.empty()
    async with opened(valkey_engine.url, keys):
        with valkey_engine.client() as client:
            assert client.hget(spell.KEYRING, "layout") == str(LAYOUT).encode()


@pytest.mark.gen_test
async def test_a_store_of_a_later_release_is_refused_and_left_alone(valkey_engine: Engine, keys: Keys) -> None:
    valkey_engine.empty()
    with valkey_engine.client() as client:
        client.hset(spell.KEYRING, "layout", LAYOUT + 1)
        with pytest.raises(StartupError, match=f"its layout is {LAYOUT + 1}"):
            async with opened(valkey_engine.url, keys):
                pass
        assert client.hgetall(spell.KEYRING) == {b"layout": str(LAYOUT + 1).encode()}


@pytest.mark.gen_test(timeout=60)
async def test_the_server_upgrades_the_previous_releases_data_directory(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    embedded = EmbeddedStore.start(data_dir, "server")
    client = await connect(unix_url(embedded.socket_path))
    await fill(client)
    await client.aclose()
    embedded.stop()
    (data_dir / "keys").touch(mode=0o600)
    (data_dir / "keys").write_text(OLD["keys"])
    with Server(*QUICK, data_dir=data_dir) as server:
        address = f"{server.ready().here}/api/oauth/userinfo"
        found = await send(address, headers={"Authorization": f"Bearer {ADA['access']}"})
        assert (found.code, json.loads(found.body)["sub"]) == (200, ADA["user"])
        form = {"grant_type": "refresh_token", "refresh_token": ADA["refresh"], "client_id": ADA["client"]}
        form["client_secret"] = ADA["client_secret"]
        rotated = await send(f"{server.here}/api/oauth/token", "POST", form=form)
        assert rotated.code == 200, rotated.body
        assert f"bringing the store from layout 1 to layout {LAYOUT}" in server.log
        assert server.stop() == 0


def test_shared_constants_are_unchanged_since_the_old_release() -> None:
    """The tests above exchange codes and sign in with these."""
    assert (OLD["password"], OLD["callback"], OLD["verifier"]) == (PASSWORD, CALLBACK, VERIFIER)
    assert OLD["commit"] in (DATA / "write_layout1.py").read_text()


def test_keys_of_layout_1_are_recognised() -> None:
    user, client, one_id = "0a1" + "b" * 29, "an-app_1", "i" * 22
    prefix = spell.prefix(user)
    assert token_of_layout_1(f"{prefix}code:{client}:{one_id}") == (spell.code(user, one_id), "code")
    rows = spell.token(user, client, one_id, 12)
    assert token_of_layout_1(f"{prefix}family:{client}:{one_id}") == (rows["family"], "family")
    assert token_of_layout_1(f"{prefix}access:{client}:{one_id}:12") == (rows["access"], "access")
    of_layout_2 = [spell.code(user, one_id), *rows.values(), *spell.person(user).values(), spell.shard_users("0a1")]
    assert [key for key in of_layout_2 if token_of_layout_1(key)] == []
    assert parsed_keys.read(rows["user"]) == parsed_keys.ParsedKey("user", user=user, shard="0a1")
    assert parsed_keys.read(spell.shard_users("0a1")) == parsed_keys.ParsedKey("users", shard="0a1")
    assert parsed_keys.read(spell.shard_app_users("0a1", client)) == parsed_keys.ParsedKey(
        "app-users", shard="0a1", client=client
    )
