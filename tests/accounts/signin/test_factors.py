"""Authenticator apps, recovery codes and the list of sessions, on every engine."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from handlers.account.connected_apps import EVENTS
from store import keys
from store.accounts.signin.passkeys import decode
from store.accounts.signin.second_step import Half
from store.accounts.signin.sessions import SecondStepNeeded
from store.accounts.signin.totp import STEP, TotpSecrets, code_at, key_uri, read_typed, step_of
from store.crypto.cipher import OVERHEAD_BYTES
from store.errors import StoreError
from store.lifetimes import FACTOR
from store.wiring import Store
from tests.support.browser.pages import ROOT
from tests.support.processes.engines import FakeClock
from tests.support.store.many_documents import rotated
from tests.support.store.second_factors import App, half_of, is_live, outcome, reauth
from tests.support.store.world import PASSWORD, VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)

RFC_SECRET = b"12345678901234567890"


# Authenticator apps


@pytest.mark.parametrize(
    ("at", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (20000000000, "353130")],
)
async def test_codes_are_those_of_the_rfc(at: int, code: str) -> None:
    """RFC 6238, appendix B, its last six digits."""
    assert code_at(RFC_SECRET, at * 1000 // STEP) == code
    assert step_of(RFC_SECRET, code, at * 1000) == at * 1000 // STEP


async def test_a_code_is_valid_in_its_step_and_the_adjacent_ones() -> None:
    now = 1_000 * STEP
    found = [step_of(RFC_SECRET, code_at(RFC_SECRET, 1_000 + beside), now) for beside in (-2, -1, 0, 1, 2)]
    assert found == [None, 999, 1_000, 1_001, None]


async def test_spaces_in_a_typed_code_are_ignored() -> None:
    assert read_typed(" 287 082 ", RFC_SECRET, 59_000).step == "1"
    assert read_typed("ABCD-efgh ijkl mnop", RFC_SECRET, 59_000).digest
    for text in ("", "28708", "2870821", "\N{FULLWIDTH DIGIT TWO}" * 6, "abcd", "0" * 5_000, "\0"):
        assert read_typed(text, RFC_SECRET, 59_000) == ("", "")
    assert read_typed("287082", None, 59_000) == ("", "")


async def test_the_address_for_apps_names_server_and_person() -> None:
    assert key_uri(b"12345678901234567890", "Latchkey", "a&b@example.com") == (
        "otpauth://totp/Latchkey:a%26b%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
        "&issuer=Latchkey&algorithm=SHA1&digits=6&period=30"
    )


async def test_with_an_authenticator_app_the_password_is_not_enough(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    assert len(set(app.codes)) == 10
    half = await half_of(world)
    assert await outcome(store.second_step.with_code(half, "000000", VISITOR)) == "access_denied"
    cookie = (await store.second_step.with_code(half, await app.code(), VISITOR)).cookie
    session = store.sessions.open(cookie)
    assert session is not None
    assert await is_live(world, session)
    assert await world.events() == ["signed_up", "signed_in", "totp_enabled", "signed_in"]


async def test_the_secret_is_encrypted_and_opens_only_for_its_person(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    sealed = await store.client.hget(keys.person(world.user)["factors"], "secret")
    assert isinstance(sealed, bytes)
    assert app.secret not in sealed
    assert len(sealed) == OVERHEAD_BYTES + 20
    secrets = TotpSecrets(store.keys)
    assert secrets.open(world.user, sealed) == app.secret
    for user, text in (("0" * 32, sealed), (world.user, sealed[:-1]), (world.user, b""), (world.user, b"\xff" * 49)):
        with pytest.raises(StoreError):
            secrets.open(user, text)


async def test_a_code_works_once_and_invalidates_earlier_ones(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    half, code = await half_of(world), await app.code()
    assert await outcome(store.second_step.with_code(half, code, VISITOR)) == "in"
    assert await outcome(store.second_step.with_code(half, code, VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_code(half, await app.code(-1), VISITOR)) == "access_denied"


async def test_the_next_code_works(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    app = await App.add(world)
    half = await half_of(world)
    for _ in range(3):
        assert await outcome(memory_store.second_step.with_code(half, await app.code(), VISITOR)) == "in"
        clock.advance(30)


@pytest.mark.parametrize("kind", ["app", "recovery"])
async def test_a_code_presented_concurrently_works_once(store: Store, kind: str) -> None:
    world = await World.make(store)
    app = await App.add(world)
    half = await half_of(world)
    code = await app.code() if kind == "app" else app.codes[3]
    tries = [outcome(store.second_step.with_code(half, code, VISITOR)) for _ in range(FACTOR.limit)]
    assert sorted(await asyncio.gather(*tries)) == ["access_denied"] * (FACTOR.limit - 1) + ["in"]


async def test_a_recovery_code_works_once_and_is_stored_as_its_digest(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    half = await half_of(world)
    codes: Any = await store.client.smembers(keys.person(world.user)["recovery"])
    stored = b" ".join(codes)
    assert all(code.replace("-", "").encode() not in stored for code in app.codes)
    assert await outcome(store.second_step.with_code(half, app.codes[0].upper(), VISITOR)) == "in"
    assert await outcome(store.second_step.with_code(half, app.codes[0], VISITOR)) == "access_denied"
    assert (await store.factors.of(world.session)).codes == 9
    assert (await world.events())[-1] == "signed_in_by_recovery"


async def test_new_recovery_codes_replace_the_old_ones(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    await reauth(world)
    fresh = await store.factors.renew_recovery(world.session, VISITOR)
    half = await half_of(world)
    assert await outcome(store.second_step.with_code(half, app.codes[0], VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_code(half, fresh[0], VISITOR)) == "in"
    assert (await world.events())[-2:] == ["recovery_renewed", "signed_in_by_recovery"]


async def test_recovery_codes_need_a_second_factor(store: Store) -> None:
    world = await World.make(store)
    await reauth(world)
    assert await outcome(store.factors.renew_recovery(world.session, VISITOR)) == "invalid_request"


async def test_wrong_codes_are_limited_per_person_and_logged(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    half = await half_of(world)
    for _ in range(FACTOR.limit):
        assert await outcome(store.second_step.with_code(half, "000000", VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_code(half, await app.code(), VISITOR)) == "rate_limited"
    assert await outcome(store.second_step.with_code(await half_of(world), app.codes[0], VISITOR)) == "rate_limited"
    assert (await world.events()).count("codes_guessed") == 2
    other = await World.make(store)
    assert await outcome(store.second_step.with_code(await after_app(other), "000000", VISITOR)) == "access_denied"


async def after_app(world: World) -> Half:
    await App.add(world)
    return await half_of(world)


async def test_a_correct_code_resets_the_count_of_wrong_ones(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    half = await half_of(world)
    for code in app.codes[:3]:
        for _ in range(FACTOR.limit - 1):
            await outcome(store.second_step.with_code(half, "000000", VISITOR))
        assert await outcome(store.second_step.with_code(half, code, VISITOR)) == "in"


async def test_the_second_step_ends_by_time_password_status_and_epoch(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    app = await App.add(world)
    step = memory_store.second_step
    half = await half_of(world)
    clock.advance(299)
    assert await outcome(step.options(half)) == "in"
    clock.advance(2)
    assert await outcome(step.options(half)) == "over"
    assert await outcome(step.with_code(half, app.codes[0], VISITOR)) == "over"
    half = await half_of(world)
    await memory_store.sessions.end_others(world.session, VISITOR)
    assert await outcome(step.with_code(half, app.codes[0], VISITOR)) == "over"
    half = await half_of(world)
    await memory_store.operator.set_status(world.user, "disabled")
    assert await outcome(step.with_code(half, app.codes[0], VISITOR)) == "over"


@pytest.mark.trap(5)
async def test_an_unfinished_sign_in_and_a_session_are_not_interchangeable(store: Store) -> None:
    world = await World.make(store)
    cookie = store.sessions.seal(world.session)
    assert store.second_step.open(cookie) is None
    challenge = await store.second_step.challenge(None)
    assert store.sessions.open(challenge) is None
    assert store.second_step.open(challenge) is None
    assert store.second_step.open("lk_hs_" + challenge[6:]) is None


async def test_removing_the_app_takes_a_code_and_ends_the_recovery_codes(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    await reauth(world, await app.code())
    await store.factors.disable_totp(world.session, VISITOR)
    assert await world.sign_in()
    factors = await store.factors.of(world.session)
    assert (factors.secret, factors.codes, factors.passkeys) == (None, 0, ())
    assert (await world.events())[-2:] == ["totp_disabled", "signed_in"]


async def test_a_second_app_is_refused_until_the_first_is_removed(store: Store) -> None:
    world = await World.make(store)
    await App.add(world)
    assert await outcome(App.add(world)) == "invalid_request"


async def test_codes_of_a_removed_app_do_not_work_for_the_next(store: Store) -> None:
    world = await World.make(store)
    first = await App.add(world)
    half = await half_of(world)
    await reauth(world, first.codes[0])
    await store.factors.disable_totp(world.session, VISITOR)
    second = await App.add(world)
    assert second.secret != first.secret
    assert await outcome(store.second_step.with_code(half, await first.code(), VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_code(half, first.codes[1], VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_code(half, await second.code(), VISITOR)) == "in"


async def test_a_sign_in_in_progress_needs_a_factor_added_meanwhile(store: Store) -> None:
    world = await World.make(store)
    credentials = await store.people.verify(world.email, PASSWORD)
    assert credentials is not None
    await App.add(world)
    with pytest.raises(SecondStepNeeded):
        await store.sessions.start(credentials, VISITOR)


async def test_every_event_has_a_text() -> None:
    recorded = set()
    for path in (ROOT / "lua").glob("**/*.lua"):
        for arguments in re.findall(r"record\(\w+, ([^\n]*?), '', ", path.read_text()):
            recorded |= set(re.findall(r"'(\w+)'", arguments))
    assert {"totp_enabled", "signed_in_by_recovery", "codes_guessed"} <= recorded
    assert recorded - {"active"} <= set(EVENTS)  # a status that one of them is compared with


async def test_a_secret_made_for_another_person_is_refused(store: Store) -> None:
    world, other = await World.make(store), await World.make(store)
    sealed = store.factors.new_secret(other.user)
    for text in (sealed, "", "not base64!", "A" * 66):
        call = store.factors.enable_totp(world.session, text, "123456", VISITOR)
        assert await outcome(call) == "invalid_request"


async def test_the_secrets_of_apps_follow_the_front_key(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    newer = rotated(store, 2)
    async for _ in newer.reencryption.run(0):
        pass
    sealed = await store.client.hget(keys.person(world.user)["factors"], "secret")
    assert sealed is not None
    assert sealed[0] == 2
    world.store = newer
    assert await outcome(newer.second_step.with_code(await half_of(world), await app.code(), VISITOR)) == "in"


# Sessions


async def test_sessions_are_listed_newest_first_with_their_origin(store: Store) -> None:
    world = await World.make(store)
    second = await world.sign_in()
    listed = await store.sessions.live(world.session)
    assert {one.session_id for one in listed} == {world.session.session_id, second.session_id}
    assert [one.created_at for one in listed] == sorted((one.created_at for one in listed), reverse=True)
    assert {(one.address, one.agent) for one in listed} == {(VISITOR.address, VISITOR.agent)}
    await store.sessions.end(second, VISITOR)
    assert [one.session_id for one in await store.sessions.live(world.session)] == [world.session.session_id]


async def test_one_other_session_is_ended(store: Store) -> None:
    world, stranger = await World.make(store), await World.make(store)
    second, third = await world.sign_in(), await world.sign_in()
    await store.sessions.end_other(world.session, second.session_id, VISITOR)
    await store.sessions.end_other(world.session, stranger.session.session_id, VISITOR)
    assert not await is_live(world, second)
    assert await is_live(world, third)
    assert await is_live(stranger, stranger.session)
    assert (await world.events()).count("session_ended") == 1


async def test_all_other_sessions_are_ended_at_once(store: Store) -> None:
    world = await World.make(store)
    others = [await world.sign_in() for _ in range(3)]
    await store.sessions.end_others(world.session, VISITOR)
    assert [await is_live(world, other) for other in others] == [False] * 3
    assert await is_live(world, world.session)
    assert [one.session_id for one in await store.sessions.live(world.session)] == [world.session.session_id]
    assert await is_live(world, await world.sign_in())
    for call in (store.sessions.live(others[0]), store.sessions.end_others(others[0], VISITOR)):
        assert await outcome(call) == "over"


async def test_sessions_that_idled_out_leave_the_list(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    await world.sign_in()
    for _ in range(15):
        clock.advance(86_400)
        await memory_store.sessions.profile(world.session)
    assert len(await memory_store.sessions.live(world.session)) == 1
    assert await memory_store.client.zcard(keys.person(world.user)["sessions"]) == 1


async def test_a_forms_secret_must_be_sealed(store: Store) -> None:
    world = await World.make(store)
    sealed = store.factors.new_secret(world.user)
    assert store.factors.open_secret(world.user, sealed) not in decode(sealed)
