"""Authenticator apps, recovery codes, passkeys and the list of sessions, on every engine."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import cbor2
import pytest

from handlers.account import EVENTS
from store import keys
from store.cipher import OVERHEAD_BYTES
from store.errors import StoreError
from store.lifetimes import FACTOR
from store.opened import Store
from store.passkeys import MOST, decode, encode, options_for_new, options_for_use, party_of, read_answer
from store.refused import Refused
from store.second_step import Half
from store.sessions import SecondStepNeeded, Session
from store.totp import STEP, TotpSecrets, code_at, key_uri, read_typed, step_of
from tests.authenticator import PRESENT, VERIFIED, Authenticator
from tests.engines import FakeClock
from tests.factoring import ORIGIN, PARTY, App, add_passkey, confirm, half_of, outcome, use_passkey
from tests.holding import rotated
from tests.pages import ROOT
from tests.world import PASSWORD, VISITOR, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

RFC_SECRET = b"12345678901234567890"


async def is_live(world: World, session: Session) -> bool:
    return await outcome(world.store.sessions.profile(session)) == "in"


# Authenticator apps


@pytest.mark.parametrize(
    ("at", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (20000000000, "353130")],
)
async def test_codes_are_those_of_the_rfc(at: int, code: str) -> None:
    """RFC 6238, appendix B, its last six digits."""
    assert code_at(RFC_SECRET, at * 1000 // STEP) == code
    assert step_of(RFC_SECRET, code, at * 1000) == at * 1000 // STEP


async def test_a_code_counts_in_its_step_and_in_those_beside_it() -> None:
    now = 1_000 * STEP
    found = [step_of(RFC_SECRET, code_at(RFC_SECRET, 1_000 + beside), now) for beside in (-2, -1, 0, 1, 2)]
    assert found == [None, 999, 1_000, 1_001, None]


async def test_what_is_typed_is_read_with_its_spaces() -> None:
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


async def test_with_an_app_a_password_is_not_enough(store: Store) -> None:
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


async def test_the_secret_is_stored_encrypted_and_opens_for_its_person_alone(store: Store) -> None:
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


async def test_a_code_works_once_and_none_before_it(store: Store) -> None:
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
async def test_a_code_that_is_presented_many_times_at_once_works_once(store: Store, kind: str) -> None:
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
    stored = b" ".join(await store.client.smembers(keys.person(world.user)["recovery"]))
    assert all(code.replace("-", "").encode() not in stored for code in app.codes)
    assert await outcome(store.second_step.with_code(half, app.codes[0].upper(), VISITOR)) == "in"
    assert await outcome(store.second_step.with_code(half, app.codes[0], VISITOR)) == "access_denied"
    assert (await store.factors.of(world.session)).codes == 9
    assert (await world.events())[-1] == "signed_in_by_recovery"


async def test_new_recovery_codes_end_those_of_before(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    await confirm(world)
    fresh = await store.factors.renew_recovery(world.session, VISITOR)
    half = await half_of(world)
    assert await outcome(store.second_step.with_code(half, app.codes[0], VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_code(half, fresh[0], VISITOR)) == "in"
    assert (await world.events())[-2:] == ["recovery_renewed", "signed_in_by_recovery"]


async def test_codes_are_for_those_who_have_something_to_recover_from(store: Store) -> None:
    world = await World.make(store)
    assert await outcome(store.factors.renew_recovery(world.session, VISITOR)) == "invalid_request"


async def test_wrong_codes_are_limited_for_the_person_and_noted(store: Store) -> None:
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


async def test_the_right_code_forgives_those_before_it(store: Store) -> None:
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
    assert await outcome(step.asked(half)) == "in"
    clock.advance(2)
    assert await outcome(step.asked(half)) == "over"
    assert await outcome(step.with_code(half, app.codes[0], VISITOR)) == "over"
    half = await half_of(world)
    await memory_store.sessions.end_others(world.session, VISITOR)
    assert await outcome(step.with_code(half, app.codes[0], VISITOR)) == "over"
    half = await half_of(world)
    await memory_store.operator.set_status(world.user, "disabled")
    assert await outcome(step.with_code(half, app.codes[0], VISITOR)) == "over"


@pytest.mark.trap(5)
async def test_half_a_sign_in_is_no_session_and_a_session_no_half(store: Store) -> None:
    world = await World.make(store)
    cookie = store.sessions.seal(world.session)
    assert store.second_step.open(cookie) is None
    challenge = await store.second_step.challenge(None)
    assert store.sessions.open(challenge) is None
    assert store.second_step.open(challenge) is None
    assert store.second_step.open("lk_hs_" + challenge[6:]) is None


async def test_an_app_is_removed_with_a_code_and_the_recovery_codes_go_with_it(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    await confirm(world, await app.code())
    await store.factors.disable_totp(world.session, VISITOR)
    assert await world.sign_in()
    factors = await store.factors.of(world.session)
    assert (factors.secret, factors.codes, factors.passkeys) == (None, 0, ())
    assert (await world.events())[-2:] == ["totp_disabled", "signed_in"]


async def test_a_second_app_takes_the_removal_of_the_first(store: Store) -> None:
    world = await World.make(store)
    await App.add(world)
    assert await outcome(App.add(world)) == "invalid_request"


async def test_a_code_of_a_removed_app_is_none_of_the_next_one(store: Store) -> None:
    world = await World.make(store)
    first = await App.add(world)
    half = await half_of(world)
    await confirm(world, first.codes[0])
    await store.factors.disable_totp(world.session, VISITOR)
    second = await App.add(world)
    assert second.secret != first.secret
    assert await outcome(store.second_step.with_code(half, await first.code(), VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_code(half, first.codes[1], VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_code(half, await second.code(), VISITOR)) == "in"


async def test_a_sign_in_that_is_under_way_when_the_first_factor_comes_needs_it(store: Store) -> None:
    world = await World.make(store)
    credentials = await store.people.verify(world.email, PASSWORD)
    assert credentials is not None
    await App.add(world)
    with pytest.raises(SecondStepNeeded):
        await store.sessions.start(credentials, VISITOR)


async def test_every_event_has_its_words() -> None:
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


# Passkeys


@pytest.mark.parametrize(
    ("base_url", "rp_id"),
    [
        ("https://id.example.org", "id.example.org"),
        ("https://id.example.org:8443", "id.example.org"),
        ("http://localhost:8080", "localhost"),
        ("http://id.example.org", None),
        ("https://192.0.2.1", None),
        ("http://127.0.0.1:8080", None),
        ("https://[::1]:8080", None),
    ],
)
async def test_passkeys_belong_to_a_name(base_url: str, rp_id: str | None) -> None:
    party = party_of(base_url)
    assert (party and party.rp_id) == rp_id


async def test_a_passkey_signs_in_without_name_and_password(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world)
    session = store.sessions.open(await use_passkey(world, device))
    assert session is not None
    assert session.user == world.user
    assert await is_live(world, session)
    (passkey,) = (await store.factors.of(world.session)).passkeys
    assert (passkey.name, passkey.transports) == ("My phone", ("internal",))
    assert passkey.used_at is not None
    assert passkey.used_at >= passkey.created_at
    assert (await world.events())[-2:] == ["passkey_added", "signed_in_by_passkey"]


async def test_a_passkey_is_a_second_step(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world)
    half = await half_of(world)
    asked = await store.second_step.asked(half)
    assert (asked.secret, asked.credentials) == (None, [device.credential])
    assert store.sessions.open(await use_passkey(world, device, half))
    assert await outcome(use_passkey(world, device, half, user=None)) == "in"


async def test_a_passkey_that_counts_not_works_again_and_again(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world, Authenticator(ORIGIN, count=None))
    assert [await outcome(use_passkey(world, device)) for _ in range(2)] == ["in", "in"]


async def test_a_counter_that_does_not_rise_is_refused_and_noted(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world)
    assert await outcome(use_passkey(world, device, count=7)) == "in"
    assert [await outcome(use_passkey(world, device, count=at)) for at in (7, 6, 0)] == ["access_denied"] * 3
    assert (await world.events())[-3:] == ["passkey_copied"] * 3
    assert await outcome(use_passkey(world, device, count=8)) == "in"


LIES: dict[str, dict[str, Any]] = {
    "another origin": {"origin": "https://evil.example"},
    "another port": {"origin": "http://localhost:8081"},
    "another domain": {"rp_id": "evil.example"},
    "a page in a frame": {"cross": True},
    "not verified": {"flags": PRESENT},
    "not present": {"flags": VERIFIED},
    "another challenge": {"challenge": "AAAA"},
    "an answer to another question": {"kind": "webauthn.create"},
    "a bad signature": {"signature": b"\x30\x00"},
    "no signature": {"signature": b""},
    "nobody's": {"user": "A" * 22},
    "no user id": {"user": "AAAA"},
    "an unknown credential": {"credential": "AAAA"},
    "no base64": {"credential": "!!!"},
    "a long credential": {"credential": "A" * 2_000},
}


@pytest.mark.parametrize("lie", LIES)
async def test_an_answer_that_does_not_hold_is_refused(memory_store: Store, lie: str) -> None:
    world = await World.make(memory_store)
    device = await add_passkey(world)
    half = await half_of(world)
    for before in (None, half):
        assert await outcome(use_passkey(world, device, before, **LIES[lie])) == "access_denied"
    assert await outcome(use_passkey(world, device)) == "in"


@pytest.mark.parametrize("lie", ["another origin", "another domain", "not verified", "another challenge"])
async def test_a_new_passkey_that_does_not_hold_is_refused(memory_store: Store, lie: str) -> None:
    world = await World.make(memory_store)
    challenge = await memory_store.factors.challenge(world.session)
    options = options_for_new(PARTY, "Latchkey", world.user, world.email, "Ada", challenge, [])
    answer = read_answer(Authenticator(ORIGIN).create(options, **LIES[lie]))
    call = memory_store.factors.add_passkey(world.session, PARTY, challenge, answer, "x", VISITOR)
    assert await outcome(call) == "access_denied"
    assert (await memory_store.factors.of(world.session)).passkeys == ()


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "{", '{"id": 1}', '{"id": "AAAA", "response": []}', '{"id": "AAAA", "response": {}}'),
        *("[" * 9999, '{"id": "AAAA", "response": {"clientDataJSON": "W10"}}', '{"id": "\\ud800", "response": {}}'),
    ],
)
async def test_what_no_browser_sends_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        read_answer(text)


BROKEN_OBJECTS = {
    "no CBOR": b"\xff",
    "nothing": b"",
    "deep arrays": b"\x81" * 40_000 + b"\x00",
    "deep tags": b"\xd8\x1c" * 20_000,
    "an endless array": b"\x9b" + b"\xff" * 8,
    "an endless string": b"\x5b\x00\x00\x00\x0f" + b"\xff" * 4,
    "a huge number": b"\xc2\x59\xa0\x00" + b"\xff" * 40_960,
    "no statement": cbor2.dumps({"fmt": "none", "authData": bytes(37)}),
    "no data": cbor2.dumps({"fmt": "none", "attStmt": {}}),
    "data of another type": cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": 5}),
    "an unknown format": cbor2.dumps({"fmt": ["x"], "attStmt": {}, "authData": bytes(37)}),
    "a statement nobody can read": cbor2.dumps({"fmt": "packed", "attStmt": {"x5c": [b"x"]}, "authData": bytes(37)}),
}


@pytest.mark.parametrize("broken", BROKEN_OBJECTS)
async def test_broken_attestations_are_refused(memory_store: Store, broken: str) -> None:
    world = await World.make(memory_store)
    challenge = await memory_store.factors.challenge(world.session)
    options = options_for_new(PARTY, "Latchkey", world.user, world.email, "Ada", challenge, [])
    text = json.loads(Authenticator(ORIGIN).create(options))
    text["response"]["attestationObject"] = encode(BROKEN_OBJECTS[broken])
    answer = read_answer(json.dumps(text))
    call = memory_store.factors.add_passkey(world.session, PARTY, challenge, answer, "x", VISITOR)
    assert await outcome(call) == "access_denied"


async def test_another_persons_passkey_is_nobodys_second_step(store: Store) -> None:
    world, other = await World.make(store), await World.make(store)
    mine, theirs = await add_passkey(world), await add_passkey(other)
    half = await half_of(world)
    assert await outcome(use_passkey(world, theirs, half)) == "access_denied"
    assert await outcome(use_passkey(world, theirs, half, user=None)) == "access_denied"
    assert await outcome(use_passkey(world, theirs, half, user=mine.user)) == "access_denied"
    assert await outcome(use_passkey(world, theirs, None, user=mine.user)) == "access_denied"


async def test_a_challenge_is_answered_once_and_soon(clock: FakeClock, memory_store: Store) -> None:
    store = memory_store
    world = await World.make(store)
    device = await add_passkey(world)
    challenge = await store.second_step.challenge(None)
    answer = read_answer(device.get(options_for_use(PARTY, challenge)))
    step = store.second_step
    tries = [outcome(step.with_passkey(None, PARTY, challenge, answer, VISITOR)) for _ in range(5)]
    assert sorted(await asyncio.gather(*tries)) == ["access_denied"] * 4 + ["in"]
    clock.advance(360)
    assert await outcome(step.with_passkey(None, PARTY, challenge, answer, VISITOR)) == "access_denied"
    late = await store.second_step.challenge(None)
    clock.advance(301)
    answer = read_answer(device.get(options_for_use(PARTY, late)))
    assert await outcome(step.with_passkey(None, PARTY, late, answer, VISITOR)) == "access_denied"


async def registering(world: World) -> str:
    await confirm(world)
    return await world.store.factors.challenge(world.session)


async def test_a_challenge_is_for_its_person_and_purpose(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world)
    half = await half_of(world)
    issued = {
        "of nobody": await store.second_step.challenge(None),
        "of the half": await store.second_step.challenge(half),
        "of registration": await registering(world),
    }
    for name, challenge in issued.items():
        for before, right in ((None, "of nobody"), (half, "of the half")):
            answer = read_answer(device.get(options_for_use(PARTY, challenge)))
            call = store.second_step.with_passkey(before, PARTY, challenge, answer, VISITOR)
            assert await outcome(call) == ("in" if name == right else "access_denied")
    answer = read_answer(device.get(options_for_use(PARTY, "made up")))
    assert await outcome(store.second_step.with_passkey(None, PARTY, None, answer, VISITOR)) == "access_denied"
    assert await outcome(store.second_step.with_passkey(None, PARTY, "made up", answer, VISITOR)) == "access_denied"


async def test_passkeys_are_several_and_each_goes_by_itself(store: Store) -> None:
    world = await World.make(store)
    first, second = await add_passkey(world), await add_passkey(world)
    await confirm(world)
    await store.factors.remove_passkey(world.session, first.credential, VISITOR)
    assert await outcome(use_passkey(world, first)) == "access_denied"
    assert await outcome(use_passkey(world, second)) == "in"
    await confirm(world)
    assert await outcome(store.factors.remove_passkey(world.session, first.credential, VISITOR)) == "not_found"
    await store.factors.remove_passkey(world.session, second.credential, VISITOR)
    assert (await store.factors.of(world.session)).codes == 0
    assert await world.sign_in()


async def test_a_person_has_so_many_passkeys_and_none_twice(memory_store: Store) -> None:
    world = await World.make(memory_store)
    device = await add_passkey(world)
    assert await outcome(add_passkey(world, device)) == "invalid_request"
    for _ in range(MOST - 1):
        await add_passkey(world)
    assert await outcome(add_passkey(world)) == "invalid_request"
    assert len((await memory_store.factors.of(world.session)).passkeys) == MOST


async def test_passkeys_of_the_disabled_and_the_deleted_open_nothing(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world)
    await store.operator.set_status(world.user, "disabled")
    assert await outcome(use_passkey(world, device)) == "access_denied"
    await store.operator.delete(world.user)
    assert await outcome(use_passkey(world, device)) == "access_denied"


async def test_deletion_leaves_nothing_of_them(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    device = await add_passkey(world)
    await use_passkey(world, device)
    await outcome(store.second_step.with_code(await half_of(world), app.codes[0], VISITOR))
    await store.operator.delete(world.user)
    left = [key.decode().rpartition(":")[0] for key in await every_key(store.client, f"*{world.user}*")]
    # What ends by itself within minutes: the marks of challenges, windows.
    assert set(left) <= {keys.used_challenge(world.user, "x")[:-2], keys.limit(world.user, "x")[:-2]}


async def test_the_operator_takes_them_away(store: Store) -> None:
    world = await World.make(store)
    await App.add(world)
    device = await add_passkey(world)
    await store.operator.reset_factors(world.email)
    assert await world.sign_in()
    assert await outcome(use_passkey(world, device)) == "access_denied"
    assert (await world.events())[-2:] == ["factors_reset_by_operator", "signed_in"]
    assert await refusal_of(store.operator.reset_factors("nobody@example.com")) == "not_found"


# Sessions


async def test_sessions_are_listed_newest_first_with_where_they_come_from(store: Store) -> None:
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


async def test_a_secret_in_a_form_is_one_that_was_sealed(store: Store) -> None:
    world = await World.make(store)
    sealed = store.factors.new_secret(world.user)
    assert store.factors.open_secret(world.user, sealed) not in decode(sealed)
