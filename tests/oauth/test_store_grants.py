"""Consent, disconnection and the grace window, on every engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store import keys
from store.lifetimes import DAY, GRACE
from store.oauth.authorizations import Pending, Remembered
from store.refused import SignedOut, Suspended
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.world import CALLBACK, VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_a_decision_answers_a_request_once(store: Store) -> None:
    world = await World.make(store)
    request_id = await world.pending()
    decide = store.authorizations.decide
    first = await decide(world.session, world.app, request_id, allow=False, scopes=None, visitor=VISITOR)
    assert (first.code, first.redirect_uri, first.state) == (None, CALLBACK, "a-state")
    again = decide(world.session, world.app, request_id, allow=True, scopes=None, visitor=VISITOR)
    assert await refusal_of(again) == "invalid_request"
    request_id = await world.pending()
    assert (
        await decide(world.session, world.app, request_id, allow=True, scopes=None, visitor=VISITOR)
    ).code is not None
    for allow in (True, False):
        again = decide(world.session, world.app, request_id, allow=allow, scopes=None, visitor=VISITOR)
        assert await refusal_of(again) == "invalid_request"


async def test_a_person_may_grant_fewer_scopes_but_not_others_or_none(store: Store) -> None:
    world = await World.make(store)
    request_id = await world.pending()
    for ticked in (["profile", "credits:read"], []):
        refused = store.authorizations.decide(
            world.session, world.app, request_id, allow=True, scopes=ticked, visitor=VISITOR
        )
        assert await refusal_of(refused) == "invalid_scope"
    decided = await store.authorizations.decide(
        world.session, world.app, request_id, allow=True, scopes=["data:read"], visitor=VISITOR
    )
    assert decided.code is not None
    assert (await world.exchange(decided.code)).scope == "data:read"


async def test_only_its_person_can_decide_a_request(store: Store) -> None:
    world, stranger = await World.make(store), await World.make(store)
    request_id = await world.pending()
    taken = store.authorizations.decide(
        stranger.session, world.app, request_id, allow=True, scopes=None, visitor=VISITOR
    )
    assert await refusal_of(taken) == "invalid_request"


async def test_remembered_consent_needs_no_page_if_it_covers_the_scopes(store: Store) -> None:
    world = await World.make(store)
    await world.tokens(("profile",))
    begin = store.authorizations.begin
    remembered = await begin(world.session, world.request(("profile",)), always_ask=False)
    assert isinstance(remembered, Remembered)
    assert (await world.exchange(remembered.code)).scope == "profile"
    wider = await begin(world.session, world.request(), always_ask=False)
    assert isinstance(wider, Pending)
    assert wider.granted == {"profile"}
    assert isinstance(await begin(world.session, world.request(("profile",)), always_ask=True), Pending)
    await world.revoke_app()
    after = await begin(world.session, world.request(("profile",)), always_ask=False)
    assert isinstance(after, Pending)
    assert after.granted == frozenset()


@pytest.mark.trap(10)
async def test_a_disabled_persons_tokens_codes_and_sessions_are_dead_at_once(store: Store) -> None:
    world = await World.make(store)
    code, tokens = await world.code(), await world.tokens()
    await store.operator.set_status(world.email, "disabled")
    assert not await world.lives(tokens.access_token)
    assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"
    assert await refusal_of(world.exchange(code)) == "invalid_grant"
    with pytest.raises(SignedOut):
        await store.sessions.profile(world.session)
    with pytest.raises(Suspended):
        await world.sign_in()
    assert await refusal_of(store.tokens.mint(world.user, world.app, ("profile",))) == "not_found"
    await store.operator.set_status(world.email, "active")
    with pytest.raises(SignedOut):
        await store.sessions.profile(world.session)
    assert await world.lives((await world.refresh(tokens.refresh_token)).access_token)


async def test_a_minted_token_equals_one_from_consent_and_exchange(store: Store) -> None:
    world = await World.make(store)
    minted = await store.tokens.mint(world.user, world.app, ("profile",))
    assert (minted.scope, minted.expires_in, minted.window) == ("profile", 3600, None)
    assert await world.lives((await world.refresh(minted.refresh_token)).access_token)
    grants = (await store.grants.list(world.session)).grants
    assert [(grant.client, grant.scopes) for grant in grants] == [(world.app.client_id, ("profile",))]
    assert datetime.now(UTC) - grants[0].connected_at < timedelta(minutes=1)


async def keep_documents(world: World) -> dict[str, str]:
    """Writes data into the four keys of hosted data, as a document would; returns them with the grant's key."""
    kept = keys.hosted(world.user, world.app.client_id)
    for noun in ("docs", "meta", "usage"):
        await world.store.client.hset(kept[noun], "notes/n1", noun)
    await world.store.client.zadd(kept["index"], {"notes/n1": 0})
    return {**kept, "grant": keys.grant(world.user, world.app.client_id)}


async def ends(store: Store, kept: dict[str, str]) -> set[int]:
    """The absolute expiries of the keys, -1 for none."""
    return {int(await store.client.pexpiretime(key)) for key in kept.values()}


@pytest.mark.spec("3.1.app-revoked")
@pytest.mark.spec("3.1.grace-begins")
@pytest.mark.spec("8.3")
async def test_disconnecting_ends_every_token_and_keeps_data_for_30_days(store: Store) -> None:
    world = await World.make(store)
    tokens, code = [await world.tokens() for _ in range(3)], await world.code()
    kept = await keep_documents(world)
    assert await ends(store, kept) == {-1}
    until = await store.grants.revoke(world.session, world.app.client_id, VISITOR)
    assert await ends(store, kept) == {round(until.timestamp() * 1000)}
    assert abs(until - datetime.now(UTC) - timedelta(milliseconds=GRACE)) < timedelta(minutes=1)
    for each in tokens:
        assert not await world.lives(each.access_token)
        assert await refusal_of(world.refresh(each.refresh_token)) == "invalid_grant"
    assert await refusal_of(world.exchange(code)) == "invalid_grant"
    assert await refusal_of(store.grants.revoke(world.session, world.app.client_id, VISITOR)) == "not_found"
    assert await ends(store, kept) == {round(until.timestamp() * 1000)}, "a second time moves nothing"
    (grant,) = (await store.grants.list(world.session)).grants
    assert grant.revoked_at is not None
    assert grant.data_until is not None
    assert abs(grant.data_until - until) < timedelta(seconds=5)


async def by_consent(world: World) -> None:
    await world.code(("profile",))


async def by_mint(world: World) -> None:
    await world.store.tokens.mint(world.user, world.app, ("profile",))


@pytest.mark.spec("3.1.grace-kept")
@pytest.mark.parametrize("reconnect", [by_consent, by_mint])
async def test_reconnecting_with_any_scopes_keeps_the_data(
    store: Store, reconnect: Callable[[World], Awaitable[None]]
) -> None:
    world = await World.make(store)
    old = await world.tokens()
    kept = await keep_documents(world)
    before = {noun: await store.client.dump(key) for noun, key in kept.items() if noun != "grant"}
    await world.revoke_app()
    await reconnect(world)
    assert await ends(store, kept) == {-1}
    assert {noun: await store.client.dump(key) for noun, key in kept.items() if noun != "grant"} == before
    assert not await world.lives(old.access_token), "what was revoked stays dead"
    (grant,) = (await store.grants.list(world.session)).grants
    assert (grant.scopes, grant.revoked_at, grant.data_until) == (("profile",), None, None)


@pytest.mark.spec("3.1.grace-over")
@pytest.mark.spec("8.3")
async def test_data_is_gone_30_days_after_disconnecting(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await world.tokens()
    kept = await keep_documents(world)
    await world.revoke_app()
    clock.advance(GRACE / 1000 - 60)
    assert await memory_store.client.exists(*kept.values()) == 5
    clock.advance(61)
    assert await memory_store.client.exists(*kept.values()) == 0
    world.session = await world.sign_in()
    grants = (await memory_store.grants.list(world.session)).grants
    assert grants == []
    listed = await memory_store.client.hexists(keys.person(world.user)["user"], f"app:{world.app.client_id}")
    assert not listed, "the list drops what has no row"
    of_app = keys.shard_app_users(world.user[:3], world.app.client_id)
    assert not await memory_store.client.sismember(of_app, keys.member(world.user))
    assert await world.lives((await world.tokens()).access_token)
    assert await ends(memory_store, {"grant": kept["grant"]}) == {-1}


async def test_a_replay_after_disconnecting_leaves_the_data_to_the_grace_window(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()
    kept = await keep_documents(world)
    await world.revoke_app()
    before = await ends(store, kept)
    assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"
    assert await ends(store, kept) == before


async def test_a_replay_deletes_no_data(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()
    kept = await keep_documents(world)
    await world.refresh(tokens.refresh_token)
    assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"
    assert await ends(store, kept) == {-1}
    assert await store.client.exists(*kept.values()) == 5


async def test_disconnecting_needs_a_live_session_of_that_person(store: Store) -> None:
    world, stranger = await World.make(store), await World.make(store)
    tokens = await world.tokens()
    assert await refusal_of(store.grants.revoke(stranger.session, world.app.client_id, VISITOR)) == "not_found"
    await store.sessions.end(world.session, VISITOR)
    with pytest.raises(SignedOut):
        await world.revoke_app()
    assert await world.lives(tokens.access_token)


async def test_the_list_shows_the_newest_app_first_with_its_last_use(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await world.code()
    clock.advance(120)
    other, _ = await world.register("another-app")
    tokens = await world.tokens(app=other)
    (first, second) = (await memory_store.grants.list(world.session)).grants
    assert (first.client, second.client) == ("another-app", world.app.client_id)
    assert second.last_used_at is None
    assert first.last_used_at is not None
    clock.advance(59)
    await world.lives(tokens.access_token)
    (unmoved, _) = (await memory_store.grants.list(world.session)).grants
    assert unmoved.last_used_at == first.last_used_at, "written at most once a minute"
    clock.advance(1)
    await world.lives(tokens.access_token)
    (moved, _) = (await memory_store.grants.list(world.session)).grants
    assert moved.last_used_at is not None
    assert moved.last_used_at - first.last_used_at >= timedelta(minutes=1)


@pytest.mark.spec("5.5")
@pytest.mark.spec("3.1.access-expired")
@pytest.mark.spec("8.3")
async def test_tokens_expire(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    first, code = await world.tokens(), await world.code()
    clock.advance(61)
    assert await refusal_of(world.exchange(code)) == "invalid_grant"
    clock.advance(3540)
    assert not await world.lives(first.access_token)
    clock.advance(30 * DAY / 1000 - 3700)
    second = await world.refresh(first.refresh_token)
    clock.advance(30 * DAY / 1000 - 10)
    third = await world.refresh(second.refresh_token)
    assert await world.lives(third.access_token), "30 days from the last rotation"
    clock.advance(30 * DAY / 1000 + 1)
    assert await refusal_of(world.refresh(third.refresh_token)) == "invalid_grant"
    assert await memory_store.client.exists(*world.rows(third.refresh_token).values()) == 2, "the user and the grant"


@pytest.mark.spec("4.1")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"redirect_uris": ("https://other.example/cb",)}, id="its redirect URI is withdrawn"),
        pytest.param({"scopes": ("profile",)}, id="a scope is withdrawn"),
        pytest.param({"pkce_required": True}, id="PKCE becomes mandatory"),
    ],
)
async def test_a_changed_registration_voids_pending_requests_and_codes(store: Store, change: dict[str, Any]) -> None:
    world = await World.make(store)
    code, request_id = await world.code(), await world.pending()
    before = await store.client.hget(keys.grant(world.user, world.app.client_id), "scope")
    world.app = await store.apps.update(world.app.client_id, **change)
    decide = store.authorizations.decide(world.session, world.app, request_id, allow=True, scopes=None, visitor=VISITOR)
    assert await refusal_of(decide) == "invalid_request"
    assert await refusal_of(world.exchange(code)) == "invalid_grant"
    assert await store.client.hget(keys.grant(world.user, world.app.client_id), "scope") == before


@pytest.mark.trap(36)
async def test_an_old_refresh_token_cannot_lock_a_person_out_for_ever(store: Store) -> None:
    world = await World.make(store)
    old = await world.tokens()
    await world.refresh(old.refresh_token)
    assert await refusal_of(world.refresh(old.refresh_token)) == "invalid_grant"
    fresh = await world.tokens()
    for _ in range(3):
        assert await refusal_of(world.refresh(old.refresh_token)) == "invalid_grant"
        assert await world.lives(fresh.access_token)


@pytest.mark.trap(10)
async def test_a_replay_while_the_person_is_disabled_still_ends_the_pair(store: Store) -> None:
    world = await World.make(store)
    used = await world.tokens()
    current = await world.refresh(used.refresh_token)
    await store.operator.set_status(world.email, "disabled")
    assert await refusal_of(world.refresh(used.refresh_token)) == "invalid_grant"
    await store.operator.set_status(world.email, "active")
    assert not await world.lives(current.access_token)


async def test_pending_requests_of_one_person_are_limited(store: Store) -> None:
    world = await World.make(store)
    for _ in range(60):
        await world.pending()
    assert await refusal_of(world.pending()) == "rate_limited"


@pytest.mark.trap(7)
async def test_revocation_limits_do_not_distinguish_foreign_from_invented_tokens(store: Store) -> None:
    world = await World.make(store)
    other, _ = await store.apps.create(replace(world.app, client_id="another", secrets=()))
    for presented in ((await world.tokens()).access_token, "lk_at_invented"):
        figures = [(await store.tokens.revoke(app, presented)).remaining for app in (other, None, other)]
        assert figures == [99, 98, 97]


async def test_a_session_of_a_deleted_person_leaves_nothing_behind(store: Store) -> None:
    world = await World.make(store)
    forgotten = await world.sign_in()
    await store.operator.set_password(world.email, b"x" * 56)
    await store.operator.delete(world.email)
    await store.sessions.end(forgotten, VISITOR)
    assert not await store.client.exists(keys.person(world.user)["audit"])
