"""With a second step, each change of it needs re-authentication: session and password alone are not enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from store import keys
from store.accounts.signin.passkeys import options_for_new, options_for_use, read_answer
from store.accounts.signin.sessions import Session
from store.accounts.signin.totp import read_typed
from store.lifetimes import FACTOR, OWN_PASSKEY
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.authenticator import Authenticator
from tests.support.store.second_factors import (
    ORIGIN,
    RELYING_PARTY,
    App,
    add_passkey,
    half_of,
    outcome,
    reauth,
    use_passkey,
)
from tests.support.store.world import PASSWORD, VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)


async def new_passkey(world: World) -> None:
    """Adds a factor as a thief would: the challenge is no obstacle."""
    challenge = await world.store.second_step._challenges.issue(world.user, "register")
    options = options_for_new(RELYING_PARTY, "Latchkey", world.user, world.email, "Ada", challenge, [])
    answer = read_answer(Authenticator(ORIGIN).create(options))
    await world.store.factors.add_passkey(world.session, RELYING_PARTY, challenge, answer, "theirs", VISITOR)


async def new_app(world: World) -> None:
    app = App(world, world.store.factors.new_secret(world.user))
    await world.store.factors.enable_totp(world.session, app.sealed, await app.code(-1), VISITOR)


CHANGES: dict[str, Callable[[World, str], Awaitable[object]]] = {
    "new recovery codes": lambda w, passkey: w.store.factors.renew_recovery(w.session, VISITOR),
    "removing the app": lambda w, passkey: w.store.factors.disable_totp(w.session, VISITOR),
    "removing a passkey": lambda w, passkey: w.store.factors.remove_passkey(w.session, passkey, VISITOR),
    "another passkey": lambda w, passkey: new_passkey(w),
    "another app": lambda w, passkey: new_app(w),
}
each_change = pytest.mark.parametrize("change", CHANGES)


async def guarded(store: Store, change: str) -> tuple[World, App | None, Authenticator]:
    """A person with everything that the change needs."""
    world = await World.make(store)
    app = None if change == "another app" else await App.add(world)
    device = await add_passkey(world)
    return world, app, device


async def as_it_is(world: World) -> list[object]:
    """The person's second step, as stored."""
    owned = keys.person(world.user)
    client = world.store.client
    return [
        await client.hgetall(owned["factors"]),
        await client.hgetall(owned["passkeys"]),
        await client.smembers(owned["recovery"]),
    ]


@each_change
async def test_a_session_and_a_password_alone_change_nothing(store: Store, change: str) -> None:
    world, _, device = await guarded(store, change)
    world.session = await second_session(world)  # just begun, with all that signing in takes
    before = await as_it_is(world)
    assert await outcome(CHANGES[change](world, device.credential)) == "unproved"
    assert await outcome(store.reauth.with_password(world.session, PASSWORD, "", VISITOR)) == "code"
    assert await outcome(CHANGES[change](world, device.credential)) == "unproved"
    assert await as_it_is(world) == before


async def second_session(world: World) -> Session:
    """Another session, begun with the password and a recovery code."""
    found = await world.store.second_step.with_code(await half_of(world), world.codes.pop(), VISITOR)
    session = world.store.sessions.open(found.cookie)
    assert session is not None
    return session


@each_change
async def test_a_proof_is_good_for_one_change(store: Store, change: str) -> None:
    world, _, device = await guarded(store, change)
    await reauth(world)
    assert await outcome(CHANGES[change](world, device.credential)) == "in"
    for other in CHANGES.values():
        assert await outcome(other(world, device.credential)) == "unproved"


async def test_concurrent_changes_cannot_share_a_proof(store: Store) -> None:
    world = await World.make(store)
    devices = [await add_passkey(world) for _ in range(4)]
    await reauth(world)
    changes: list[Awaitable[object]] = [
        *(store.factors.remove_passkey(world.session, one.credential, VISITOR) for one in devices),
        *(store.factors.renew_recovery(world.session, VISITOR) for _ in range(4)),
    ]
    found = await asyncio.gather(*(outcome(change) for change in changes))
    assert sorted(found) == ["in"] + ["unproved"] * 7


@each_change
async def test_a_proof_is_good_for_ten_minutes(clock: FakeClock, memory_store: Store, change: str) -> None:
    world, _, device = await guarded(memory_store, change)
    await reauth(world)
    clock.advance(601)
    assert await outcome(CHANGES[change](world, device.credential)) == "unproved"


async def test_a_passkey_alone_reauthenticates(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world)
    challenge, allowed = await store.reauth.challenge(world.session)
    assert allowed == [device.credential]
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge, allowed)))
    shown = [store.reauth.with_passkey(world.session, RELYING_PARTY, challenge, answer, VISITOR) for _ in range(5)]
    cookies = await asyncio.gather(*shown, return_exceptions=True)
    (cookie,) = [one for one in cookies if isinstance(one, str)]
    world.session = store.sessions.open(cookie) or world.session
    assert await outcome(store.factors.remove_passkey(world.session, device.credential, VISITOR)) == "in"


async def test_only_correct_passkey_answers_count_in_its_window(store: Store) -> None:
    """So without a passkey nobody can block its owner's re-authentication."""
    world = await World.make(store)
    device = await add_passkey(world)
    window = keys.limit(world.user, OWN_PASSKEY.name)
    for lies, taken in (({"signature": b"0" * 70}, 0), ({}, 1)):
        challenge, allowed = await store.reauth.challenge(world.session)
        answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge, allowed), **lies))
        await outcome(store.reauth.with_passkey(world.session, RELYING_PARTY, challenge, answer, VISITOR))
        assert await store.client.exists(window) == taken


async def test_a_passkey_answer_for_another_purpose_is_refused(store: Store) -> None:
    world, other = await World.make(store), await World.make(store)
    device, theirs = await add_passkey(world), await add_passkey(other)
    reauth = store.reauth
    for challenge in (
        await store.second_step.challenge(None),
        await store.second_step.challenge(await half_of(world)),
        (await store.account_deletion.challenge(world.session))[0],
        (await reauth.challenge(other.session))[0],
        None,
    ):
        answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge or "made up")))
        assert await outcome(reauth.with_passkey(world.session, RELYING_PARTY, challenge, answer, VISITOR)) == "passkey"
    challenge, _ = await reauth.challenge(world.session)
    answer = read_answer(theirs.get(options_for_use(RELYING_PARTY, challenge)))
    assert await outcome(reauth.with_passkey(world.session, RELYING_PARTY, challenge, answer, VISITOR)) == "passkey"


async def test_reauthentication_replaces_the_session_cookie(store: Store) -> None:
    world = await World.make(store)
    await App.add(world)
    before = world.session
    (listed,) = await store.sessions.live(before)
    await reauth(world)
    assert await outcome(store.sessions.profile(before)) == "over"
    (after,) = await store.sessions.live(world.session)
    assert (after.created_at, after.agent) == (listed.created_at, listed.agent)
    ttl = await store.client.pttl(keys.session(world.user, world.session.session_id))
    assert 13 * 86_400_000 < ttl <= 14 * 86_400_000
    await store.sessions.end(world.session, VISITOR)
    assert await outcome(store.sessions.profile(world.session)) == "over"


async def test_a_password_proof_from_before_the_second_step_is_not_enough(store: Store) -> None:
    world = await World.make(store)
    thief = await World.make(store)
    thief.user, thief.email, thief.session = world.user, world.email, await world.sign_in()
    await reauth(thief)
    device = await add_passkey(world)
    for change in ("new recovery codes", "removing a passkey", "another passkey", "another app"):
        assert await outcome(CHANGES[change](thief, device.credential)) == "unproved"


@pytest.mark.parametrize("first", [new_app, new_passkey])
async def test_without_a_second_step_a_retyped_password_is_enough_and_a_sign_in_is_not(
    clock: FakeClock, memory_store: Store, first: Callable[[World], Awaitable[None]]
) -> None:
    world = await World.make(memory_store)
    assert await outcome(first(world)) == "unproved"
    assert await outcome(reauth(world, "", "wrong horse battery")) == "password"
    assert await outcome(first(world)) == "unproved"
    await reauth(world)
    clock.advance(601)
    assert await outcome(first(world)) == "unproved"
    await reauth(world)
    assert await outcome(first(world)) == "in"


async def test_after_the_last_factor_is_removed_adding_one_needs_no_more(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await App.add(world)
    clock.advance(601)
    await reauth(world)
    await memory_store.factors.disable_totp(world.session, VISITOR)
    assert await outcome(new_app(world)) == "in"


async def test_code_guesses_are_limited_as_at_sign_in(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    tries = [outcome(reauth(world, "000000")) for _ in range(FACTOR.limit + 3)]
    assert sorted(await asyncio.gather(*tries)) == ["code"] * FACTOR.limit + ["rate_limited"] * 3
    assert await outcome(reauth(world, app.codes[0])) == "rate_limited"
    assert await outcome(store.second_step.with_code(await half_of(world), app.codes[0], VISITOR)) == "rate_limited"


async def test_a_code_reauthenticates_once(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    sessions = [world.session] + [await second_session(world) for _ in range(4)]
    for code in (await app.code(), world.codes[0]):
        reauth = store.reauth
        tries = [reauth.with_password(one, PASSWORD, code, VISITOR) for one in sessions]
        cookies = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(cookie, str) for cookie in cookies) == 1
        await store.client.delete(keys.person(world.user)["guesses"])
        sessions = [
            opened if isinstance(cookie, str) and (opened := store.sessions.open(cookie)) else session
            for session, cookie in zip(sessions, cookies, strict=True)
        ]


# A lost phone


@pytest.mark.parametrize("left", [10, 2, 1])
async def test_recovery_codes_reauthenticate_after_a_lost_phone(store: Store, left: int) -> None:
    world = await World.make(store)
    await App.add(world)
    lost = await add_passkey(world)
    world.codes = await renewed_with_code(world)
    await keep_codes(world, left)
    world.session = await second_session(world)
    changes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.factors.disable_totp(world.session, VISITOR),
        lambda: store.factors.remove_passkey(world.session, lost.credential, VISITOR),
    ]
    for change in changes:
        if not world.codes:
            world.codes = await renewed(world)
        await reauth(world)
        assert await outcome(change()) == "in"
    assert await outcome(use_passkey(world, lost)) == "access_denied"
    assert await world.sign_in()
    assert await outcome(new_app(world)) == "in"


async def renewed(world: World) -> list[str]:
    """New recovery codes, for the password alone."""
    await reauth(world, "")
    return await world.store.factors.renew_recovery(world.session, VISITOR)


async def renewed_with_code(world: World) -> list[str]:
    """Ten new recovery codes."""
    await reauth(world)
    return await world.store.factors.renew_recovery(world.session, VISITOR)


async def keep_codes(world: World, left: int) -> None:
    """Uses up all recovery codes but the last few."""
    for code in world.codes[left:]:
        await world.store.client.srem(keys.person(world.user)["recovery"], read_typed(code, None, 0).digest)
    del world.codes[left:]


async def test_a_last_recovery_code_sign_in_needs_only_the_password_for_ten_minutes(
    clock: FakeClock, memory_store: Store
) -> None:
    store = memory_store
    world = await World.make(store)
    await App.add(world)
    await keep_codes(world, 1)
    old = world.session
    world.session = await second_session(world)
    assert (await store.factors.of(world.session)).recovered
    assert await outcome(store.factors.disable_totp(world.session, VISITOR)) == "unproved"
    assert await outcome(store.reauth.with_password(old, PASSWORD, "", VISITOR)) == "code"
    assert await outcome(reauth(world, "", "wrong horse battery")) == "password"
    before = world.session
    await reauth(world, "")
    assert world.session == before, "an answer that is lost must not lose the session"
    clock.advance(601)
    assert await outcome(reauth(world, "")) == "code"
    assert await outcome(store.factors.disable_totp(world.session, VISITOR)) == "unproved"


async def test_a_password_change_keeps_that_allowance(store: Store) -> None:
    world = await World.make(store)
    await App.add(world)
    await keep_codes(world, 1)
    world.session = await second_session(world)
    await reauth(world, "")
    new = "another horse battery"
    credentials = await store.people.credentials(world.email)
    cookie = await store.sessions.change_password(world.session, PASSWORD, new, credentials, VISITOR)
    world.session = store.sessions.open(cookie) or world.session
    await reauth(world, "", new)
    assert await outcome(store.factors.disable_totp(world.session, VISITOR)) == "in"


async def test_while_recovery_codes_are_left_another_is_needed(store: Store) -> None:
    world = await World.make(store)
    await App.add(world)
    world.session = await second_session(world)
    assert await outcome(reauth(world, "")) == "code"
    assert await outcome(reauth(world)) == "in"
