"""Passkey answers made to cost the server time, or to misuse its libraries."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import cbor2
import msgpack
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from store import keys
from store.accounts.signin.passkeys import MOST_ANSWER, decode, encode, options_for_new, read_answer
from store.parts.people import PASSKEYS_EACH, PASSKEYS_WAITING
from store.refused import Refused
from store.wiring import Store
from tests.support.store.authenticator import Authenticator
from tests.support.store.second_factors import ORIGIN, RELYING_PARTY, add_passkey, half_of, outcome, reauth, use_passkey
from tests.support.store.world import VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)

PATTERN = cbor2.CBORTag(35, "[a-z]")
SHIFTED = b"\xa1\x61x\x58\x05\xa1\x61y\xd8\x23"  # a length in a longer form than needed, and a tag in the bytes


async def create(world: World, device: Authenticator, **lies: Any) -> str:
    """Adds a passkey whose device lies; the outcome."""
    await reauth(world)
    challenge = await world.store.factors.challenge(world.session)
    options = options_for_new(RELYING_PARTY, "Latchkey", world.user, world.email, "Ada", challenge, [])
    answer = read_answer(device.create(options, **lies))
    return await outcome(world.store.factors.add_passkey(world.session, RELYING_PARTY, challenge, answer, "x", VISITOR))


HOSTILE: dict[str, dict[str, Any]] = {
    "a tag beside the statement": {"attestation": {"x": PATTERN}},
    "a tag in the statement": {"attestation": {"attStmt": {"x": PATTERN}}},
    "a tag in the key": {"cose": {1: 2, 3: -7, -1: 1, -2: bytes(32), -3: bytes(32), "x": PATTERN}},
    "a tag in the extensions": {"extensions": cbor2.dumps({"x": PATTERN})},
    "a tag behind a shifted end": {"extensions": SHIFTED},
    "a key that is a number": {"cose": 4},
    "bytes behind the extensions": {"extensions": b"\xa0\x00"},
    "many values": {"attestation": {"x": list(range(1000))}},
}


@pytest.mark.trap(39)
@pytest.mark.trap(40)
@pytest.mark.parametrize("lie", HOSTILE)
async def test_a_new_passkey_with_hostile_cbor_is_refused(memory_store: Store, lie: str) -> None:
    world = await World.make(memory_store)
    assert await create(world, Authenticator(ORIGIN), **HOSTILE[lie]) == "access_denied"
    assert (await memory_store.factors.of(world.session)).passkeys == ()


@pytest.mark.trap(39)
@pytest.mark.trap(40)
@pytest.mark.parametrize("extensions", [cbor2.dumps({"x": PATTERN}), SHIFTED, cbor2.dumps(PATTERN), b"\xa0\x00"])
async def test_a_sign_in_with_hostile_cbor_is_refused(memory_store: Store, extensions: bytes) -> None:
    world = await World.make(memory_store)
    device = await add_passkey(world)
    for half in (None, await half_of(world)):
        assert await outcome(use_passkey(world, device, half, extensions=extensions)) == "access_denied"
    assert await outcome(use_passkey(world, device)) == "in"


@pytest.mark.trap(40)
async def test_a_stored_key_with_a_tag_is_refused(memory_store: Store) -> None:
    world = await World.make(memory_store)
    device = await add_passkey(world)
    row = keys.person(world.user)["passkeys"]
    public_key, *rest = msgpack.unpackb(await memory_store.client.hget(row, f"k:{device.credential}"))
    tagged = cbor2.dumps({**cbor2.loads(public_key), "x": PATTERN})
    await memory_store.client.hset(row, f"k:{device.credential}", msgpack.packb([tagged, *rest]))
    assert await outcome(use_passkey(world, device)) == "access_denied"


def rsa_cose(modulus: int, exponent: int) -> dict[int, Any]:
    """An RS256 key as an authenticator sends it."""
    n, e = (one.to_bytes((one.bit_length() + 7) // 8) for one in (modulus, exponent))
    return {1: 3, 3: -257, -1: n, -2: e}


class RsaKey:
    """A private key that replaces the device's own."""

    def __init__(self, bits: int, exponent: int) -> None:
        self.key = rsa.generate_private_key(exponent, bits)

    def sign(self, data: bytes, _: object) -> bytes:
        return self.key.sign(data, PKCS1v15(), SHA256())

    @property
    def cose(self) -> dict[int, Any]:
        numbers = self.key.public_key().public_numbers()
        return rsa_cose(numbers.n, numbers.e)


POINT = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
X, Y, OFF = POINT.x.to_bytes(32), POINT.y.to_bytes(32), (POINT.y ^ 1).to_bytes(32)
KEYS: dict[str, tuple[str, dict[int, Any]]] = {
    "RSA of 2048 bits": ("in", rsa_cose(2**2048 - 1, 65_537)),
    "RSA of 4096 bits": ("in", rsa_cose(2**4096 - 1, 65_537)),
    "RSA of 2047 bits": ("access_denied", rsa_cose(2**2047 - 1, 65_537)),
    "RSA of 4097 bits": ("access_denied", rsa_cose(2**4097 - 1, 65_537)),
    "RSA with a long exponent": ("access_denied", rsa_cose(2**3072 - 1, 2**3071 - 1)),
    "RSA with another short exponent": ("access_denied", rsa_cose(2**2048 - 1, 3)),
    "RSA whose modulus is no bytes": ("access_denied", {1: 3, 3: -257, -1: 5, -2: b"\1\0\1"}),
    "a point on P-256": ("in", {1: 2, 3: -7, -1: 1, -2: X, -3: Y}),
    "a point beside P-256": ("access_denied", {1: 2, 3: -7, -1: 1, -2: X, -3: OFF}),
    "a compressed point": ("access_denied", {1: 2, 3: -7, -1: 1, -2: X, -3: True}),
    "a point on another curve": ("access_denied", {1: 2, 3: -7, -1: 2, -2: X, -3: Y}),
    "a point as an RSA key": ("access_denied", {1: 2, 3: -257, -1: 1, -2: X, -3: Y}),
    "Ed25519 of 33 bytes": ("access_denied", {1: 1, 3: -8, -1: 6, -2: bytes(33)}),
}


@pytest.mark.trap(39)
@pytest.mark.parametrize("key", KEYS)
async def test_a_passkey_has_a_key_that_is_cheap_to_check(memory_store: Store, key: str) -> None:
    world = await World.make(memory_store)
    expected, cose = KEYS[key]
    assert await create(world, Authenticator(ORIGIN), cose=cose) == expected
    assert len((await memory_store.factors.of(world.session)).passkeys) == (expected == "in")


@pytest.mark.trap(39)
@pytest.mark.parametrize(
    ("bits", "exponent", "expected"),
    [(2048, 65_537, "in"), (2048, 3, "access_denied"), (1024, 65_537, "access_denied")],
)
async def test_a_stored_key_of_a_disallowed_kind_is_refused(
    memory_store: Store, bits: int, exponent: int, expected: str
) -> None:
    world = await World.make(memory_store)
    device = await add_passkey(world)
    key = RsaKey(bits, exponent)
    device.key = key  # type: ignore[assignment]  # of another kind, on purpose
    row, field = keys.person(world.user)["passkeys"], f"k:{device.credential}"
    _, *rest = msgpack.unpackb(await memory_store.client.hget(row, field))
    await memory_store.client.hset(row, field, msgpack.packb([cbor2.dumps(key.cose), *rest]))
    assert await outcome(use_passkey(world, device)) == expected


REAL: dict[str, dict[str, Any]] = {
    "a statement with certificates": {"attestation": {"fmt": "packed", "attStmt": {"alg": -7, "x5c": [b"x" * 900]}}},
    "a statement of an unknown format": {"attestation": {"fmt": "later", "attStmt": {"sig": b"x"}}},
    "extensions": {"extensions": cbor2.dumps({"credProtect": 2, "hmac-secret": True})},
    "an Ed25519 key": {"cose": {1: 1, 3: -8, -1: 6, -2: bytes(32)}},
    "an RSA key": {"cose": {1: 3, 3: -257, -1: b"\xff" * 256, -2: b"\1\0\1"}},
}


@pytest.mark.parametrize("kind", REAL)
async def test_responses_of_real_devices_are_accepted(memory_store: Store, kind: str) -> None:
    world = await World.make(memory_store)
    device = Authenticator(ORIGIN)
    assert await create(world, device, **REAL[kind]) == "in"
    if "cose" not in REAL[kind]:
        extensions = REAL[kind].get("extensions", b"")
        assert await outcome(use_passkey(world, device, extensions=extensions)) == "in"


async def test_a_non_minimal_envelope_is_accepted(memory_store: Store) -> None:
    world = await World.make(memory_store)
    await reauth(world)
    challenge = await memory_store.factors.challenge(world.session)
    options = options_for_new(RELYING_PARTY, "Latchkey", world.user, world.email, "Ada", challenge, [])
    sent = json.loads(Authenticator(ORIGIN).create(options))
    data = cbor2.loads(decode(sent["response"]["attestationObject"]))["authData"]
    longer = b"\xa3\x63fmt\x78\x04none\x67attStmt\xa0\x68authData\x5a" + len(data).to_bytes(4) + data
    sent["response"]["attestationObject"] = encode(longer)
    answer = read_answer(json.dumps(sent))
    call = memory_store.factors.add_passkey(world.session, RELYING_PARTY, challenge, answer, "x", VISITOR)
    assert await outcome(call) == "in"


@pytest.mark.trap(39)
async def test_an_answers_size_is_checked_before_parsing() -> None:
    whole = '{"id": "AAAA", "response": {"clientDataJSON": "e30"}}'
    assert read_answer(whole + " " * (MOST_ANSWER - len(whole))).credential == "AAAA"
    with pytest.raises(Refused):
        read_answer(whole + " " * (MOST_ANSWER + 1 - len(whole)))


async def test_answers_are_checked_in_a_bounded_thread_pool(memory_store: Store) -> None:
    world, other = await World.make(memory_store), await World.make(memory_store)
    device, theirs = await add_passkey(world), await add_passkey(other)
    let_go = threading.Event()
    held = [asyncio.ensure_future(memory_store.checks.run(let_go.wait, 30)) for _ in range(PASSKEYS_WAITING)]
    waits = asyncio.ensure_future(use_passkey(world, device))
    while not waits.done() and memory_store.checks.taken <= PASSKEYS_WAITING:
        await asyncio.sleep(0)
    assert await outcome(use_passkey(other, theirs)) == "temporarily_unavailable"
    assert not waits.done()
    let_go.set()
    assert memory_store.sessions.open(await waits)
    await asyncio.gather(*held)


async def test_one_person_has_one_answer_in_the_thread_and_few_waiting(memory_store: Store) -> None:
    eve, ada = await World.make(memory_store), await World.make(memory_store)
    theirs, hers = await add_passkey(eve), await add_passkey(ada)
    let_go = threading.Event()
    held = asyncio.ensure_future(memory_store.checks.run(let_go.wait, 30))
    flood = [asyncio.ensure_future(outcome(use_passkey(eve, theirs, signature=b"x"))) for _ in range(70)]
    while sum(one.done() for one in flood) < 70 - PASSKEYS_EACH:
        await asyncio.sleep(0)
    assert {one.result() for one in flood if one.done()} == {"rate_limited"}
    honest = asyncio.ensure_future(outcome(use_passkey(ada, hers)))
    while memory_store.checks.taken < 3:
        await asyncio.sleep(0)
    assert memory_store.checks.taken == 3, "the one that is held, one of Eve's and Ada's"
    let_go.set()
    assert await honest == "in"
    await held
    assert (await asyncio.gather(*flood)).count("access_denied") == PASSKEYS_EACH
    assert await outcome(use_passkey(eve, theirs)) == "in"
