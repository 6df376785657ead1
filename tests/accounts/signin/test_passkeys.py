"""Passkeys on every engine: sign-in, second step, refusals, and removal."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import cbor2
import pytest

from store import keys
from store.accounts.signin.passkeys import MOST, encode, options_for_new, options_for_use, read_answer, relying_party_of
from store.parts.people import PASSKEYS_EACH
from store.refused import Refused
from store.wiring import Store
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock
from tests.support.store.authenticator import PRESENT, VERIFIED, Authenticator
from tests.support.store.second_factors import (
    ORIGIN,
    RELYING_PARTY,
    App,
    add_passkey,
    half_of,
    is_live,
    outcome,
    reauth,
    use_passkey,
)
from tests.support.store.world import VISITOR, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


@each(
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
async def test_the_relying_party_is_the_base_urls_host_name(base_url: str, rp_id: str | None) -> None:
    relying_party = relying_party_of(base_url)
    assert (relying_party and relying_party.rp_id) == rp_id


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
    options = await store.second_step.options(half)
    assert (options.secret, options.credentials) == (None, [device.credential])
    assert store.sessions.open(await use_passkey(world, device, half))
    assert await outcome(use_passkey(world, device, half, user=None)) == "in"


async def test_a_passkey_without_a_counter_keeps_working(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world, Authenticator(ORIGIN, count=None))
    assert [await outcome(use_passkey(world, device)) for _ in range(2)] == ["in", "in"]


async def test_a_counter_that_does_not_rise_is_refused_and_logged(store: Store) -> None:
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
async def test_an_invalid_assertion_is_refused(memory_store: Store, lie: str) -> None:
    world = await World.make(memory_store)
    device = await add_passkey(world)
    half = await half_of(world)
    for before in (None, half):
        assert await outcome(use_passkey(world, device, before, **LIES[lie])) == "access_denied"
    assert await outcome(use_passkey(world, device)) == "in"


@pytest.mark.parametrize("lie", ["another origin", "another domain", "not verified", "another challenge"])
async def test_an_invalid_registration_is_refused(memory_store: Store, lie: str) -> None:
    world = await World.make(memory_store)
    await reauth(world)
    challenge = await memory_store.factors.challenge(world.session)
    options = options_for_new(RELYING_PARTY, "Latchkey", world.user, world.email, "Ada", challenge, [])
    answer = read_answer(Authenticator(ORIGIN).create(options, **LIES[lie]))
    call = memory_store.factors.add_passkey(world.session, RELYING_PARTY, challenge, answer, "x", VISITOR)
    assert await outcome(call) == "access_denied"
    assert (await memory_store.factors.of(world.session)).passkeys == ()


@each(
    "text",
    [
        *("", "null", "[]", "{", '{"id": 1}', '{"id": "AAAA", "response": []}', '{"id": "AAAA", "response": {}}'),
        *("[" * 9999, '{"id": "AAAA", "response": {"clientDataJSON": "W10"}}', '{"id": "\\ud800", "response": {}}'),
    ],
)
async def test_malformed_responses_are_refused(text: str) -> None:
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
    await reauth(world)
    challenge = await memory_store.factors.challenge(world.session)
    options = options_for_new(RELYING_PARTY, "Latchkey", world.user, world.email, "Ada", challenge, [])
    text = json.loads(Authenticator(ORIGIN).create(options))
    text["response"]["attestationObject"] = encode(BROKEN_OBJECTS[broken])

    async def add() -> None:
        answer = read_answer(json.dumps(text))
        await memory_store.factors.add_passkey(world.session, RELYING_PARTY, challenge, answer, "x", VISITOR)

    assert await outcome(add()) == "access_denied"


async def test_another_persons_passkey_is_no_second_step(store: Store) -> None:
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
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge)))
    step = store.second_step
    tries = [outcome(step.with_passkey(None, RELYING_PARTY, challenge, answer, VISITOR)) for _ in range(PASSKEYS_EACH)]
    assert sorted(await asyncio.gather(*tries)) == ["access_denied"] * (PASSKEYS_EACH - 1) + ["in"]
    clock.advance(360)
    assert await outcome(step.with_passkey(None, RELYING_PARTY, challenge, answer, VISITOR)) == "access_denied"
    late = await store.second_step.challenge(None)
    clock.advance(301)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, late)))
    assert await outcome(step.with_passkey(None, RELYING_PARTY, late, answer, VISITOR)) == "access_denied"


async def test_an_answered_challenge_stays_used_when_the_clock_steps_back(
    clock: FakeClock, memory_store: Store
) -> None:
    world, step = await World.make(memory_store), memory_store.second_step
    device = await add_passkey(world, Authenticator(ORIGIN, count=None))
    challenge = await step.challenge(None)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge)))
    clock.advance(290)
    assert await outcome(step.with_passkey(None, RELYING_PARTY, challenge, answer, VISITOR)) == "in"
    clock.advance(50)  # the challenge has ended 40 s ago
    marks = await every_key(memory_store.client, keys.used_challenge(world.user, "*"))
    assert [await memory_store.client.exists(mark) for mark in marks] == [1, 1]  # that of the registration, too
    clock.back(50)
    assert await outcome(step.with_passkey(None, RELYING_PARTY, challenge, answer, VISITOR)) == "access_denied"


async def registering(world: World) -> str:
    await reauth(world)
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
            answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge)))
            call = store.second_step.with_passkey(before, RELYING_PARTY, challenge, answer, VISITOR)
            assert await outcome(call) == ("in" if name == right else "access_denied")
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, "made up")))
    assert await outcome(store.second_step.with_passkey(None, RELYING_PARTY, None, answer, VISITOR)) == "access_denied"
    assert (
        await outcome(store.second_step.with_passkey(None, RELYING_PARTY, "made up", answer, VISITOR))
        == "access_denied"
    )


async def test_several_passkeys_can_be_removed_one_by_one(store: Store) -> None:
    world = await World.make(store)
    first, second = await add_passkey(world), await add_passkey(world)
    await reauth(world)
    await store.factors.remove_passkey(world.session, first.credential, VISITOR)
    assert await outcome(use_passkey(world, first)) == "access_denied"
    assert await outcome(use_passkey(world, second)) == "in"
    await reauth(world)
    assert await outcome(store.factors.remove_passkey(world.session, first.credential, VISITOR)) == "not_found"
    await store.factors.remove_passkey(world.session, second.credential, VISITOR)
    assert (await store.factors.of(world.session)).codes == 0
    assert await world.sign_in()


async def test_passkeys_are_limited_and_unique_per_person(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    device = await add_passkey(world)
    assert await outcome(add_passkey(world, device)) == "invalid_request"
    clock.advance(901)  # password attempts are limited per 15 minutes
    for _ in range(MOST - 1):
        await add_passkey(world)
    assert await outcome(add_passkey(world)) == "invalid_request"
    assert len((await memory_store.factors.of(world.session)).passkeys) == MOST


async def test_passkeys_of_disabled_or_deleted_people_do_not_work(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world)
    await store.operator.set_status(world.user, "disabled")
    assert await outcome(use_passkey(world, device)) == "access_denied"
    await store.operator.delete(world.user)
    assert await outcome(use_passkey(world, device)) == "access_denied"


async def test_deletion_removes_all_passkeys(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    device = await add_passkey(world)
    await use_passkey(world, device)
    await outcome(store.second_step.with_code(await half_of(world), app.codes[0], VISITOR))
    await store.operator.delete(world.user)
    # Keys that expire within minutes: the marks of challenges, windows.
    short = (keys.used_challenge(world.user, ""), keys.limit(world.user, ""))
    left = [key.decode() for key in await every_key(store.client, f"*{world.user}*")]
    assert [key for key in left if not key.startswith(short)] == []


async def test_the_operator_can_remove_passkeys(store: Store) -> None:
    world = await World.make(store)
    await App.add(world)
    device = await add_passkey(world)
    await store.operator.reset_factors(world.email)
    assert await world.sign_in()
    assert await outcome(use_passkey(world, device)) == "access_denied"
    assert (await world.events())[-2:] == ["factors_reset_by_operator", "signed_in"]
    assert await refusal_of(store.operator.reset_factors("nobody@example.com")) == "not_found"
