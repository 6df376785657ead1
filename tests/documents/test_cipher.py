"""Encryption at rest: a document opens only at its own address with its own key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.crypto.cipher import OVERHEAD_BYTES, Cipher
from store.crypto.keyring import KeyFile, KeyRing, Keys
from store.errors import StoreError
from store.wiring import Store
from tests.support.store.document_app import Keeper
from tests.support.store.world import World, every_key, refusal_of

USER, CLIENT, NAME = "0" * 32, "app", "notes/n1"
FIRST, SECOND = (KeyRing.parse(KeyRing.generate(number)).front for number in (1, 2))


def cipher(*ring: object) -> Cipher:
    """A cipher with these keys, front first."""
    return Cipher(Keys(KeyRing(ring or (FIRST,))))  # type: ignore[arg-type]  # a key ring of these


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=1, max_size=300))
def test_opening_returns_the_sealed_bytes(document: bytes) -> None:
    sealed = cipher().seal(USER, CLIENT, NAME, document)
    assert cipher().open(USER, CLIENT, NAME, sealed) == document
    assert len(sealed) == len(document) + OVERHEAD_BYTES


def test_ciphertexts_reveal_nothing_and_never_repeat() -> None:
    document = b'{"diary":"a secret of forty bytes or more"}'
    sealed = {cipher().seal(USER, CLIENT, NAME, document) for _ in range(100)}
    assert len(sealed) == 100
    assert not any(document[at : at + 4] in each for each in sealed for at in range(0, len(document), 4))
    assert len({each[1:13] for each in sealed}) == 100, "no nonce comes twice"


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(("1" * 32, CLIENT, NAME), id="another person"),
        pytest.param((USER, "ape", NAME), id="another app"),
        pytest.param((USER, CLIENT, "notes/n2"), id="another document"),
        pytest.param((USER, CLIENT, "note/sn1"), id="another collection"),
        pytest.param((USER, CLIENT + ":notes", "n1"), id="the same letters cut elsewhere"),
    ],
)
def test_a_moved_ciphertext_cannot_be_opened(address: tuple[str, str, str]) -> None:
    sealed = cipher().seal(USER, CLIENT, NAME, b"1")
    with pytest.raises(StoreError, match="damaged or moved"):
        cipher().open(*address, sealed)


def test_a_changed_bit_anywhere_is_noticed() -> None:
    sealed = cipher().seal(USER, CLIENT, NAME, b'{"a":1}')
    for at in range(len(sealed)):
        changed = bytes([*sealed[:at], sealed[at] ^ 1, *sealed[at + 1 :]])
        with pytest.raises(StoreError):
            cipher().open(USER, CLIENT, NAME, changed)
    for length in range(len(sealed)):
        with pytest.raises(StoreError):
            cipher().open(USER, CLIENT, NAME, sealed[:length])


def test_a_rotated_ring_opens_what_the_old_key_sealed_and_seals_with_the_new() -> None:
    old = cipher(FIRST).seal(USER, CLIENT, NAME, b"1")
    rotated = cipher(SECOND, FIRST)
    assert rotated.open(USER, CLIENT, NAME, old) == b"1"
    new = rotated.seal(USER, CLIENT, NAME, b"1")
    assert (old[0], new[0]) == (FIRST.id, SECOND.id)
    assert cipher(SECOND).open(USER, CLIENT, NAME, new) == b"1"
    with pytest.raises(StoreError, match="not configured"):
        cipher(FIRST).open(USER, CLIENT, NAME, new)


def test_two_keys_with_one_id_do_not_open_each_others_documents() -> None:
    other = KeyRing.parse(KeyRing.generate(1)).front
    with pytest.raises(StoreError, match="damaged or moved"):
        cipher(other).open(USER, CLIENT, NAME, cipher(FIRST).seal(USER, CLIENT, NAME, b"1"))


def test_a_key_file_that_is_rotated_is_followed(tmp_path: object) -> None:
    file = KeyFile.open_or_create(f"{tmp_path}/keys")
    ring = Keys(file)
    keeping = Cipher(ring)
    sealed = keeping.seal(USER, CLIENT, NAME, b"1")
    file.write(KeyRing((SECOND, *file.ring.keys)))
    ring.reload()
    assert keeping.open(USER, CLIENT, NAME, sealed) == b"1"
    assert keeping.seal(USER, CLIENT, NAME, b"1")[0] == SECOND.id


@pytest.mark.gen_test(timeout=20)
async def test_the_store_contains_no_document_in_the_clear(store: Store) -> None:
    keeper = await Keeper.make(await World.make(store))
    secret = b'{"diary": "' + b"a secret that nobody else may read " * 20 + b'"}'
    await keeper.put("notes/n1", secret)
    client: Any = store.client
    sealed = await client.hget(keeper.keys()["docs"], "notes/n1")
    assert len(sealed) == len(secret) + OVERHEAD_BYTES
    for key in await every_key(client):
        dumped = await client.dump(key)
        assert b"diary" not in dumped
        assert b"nobody else" not in dumped


@pytest.mark.gen_test(timeout=20)
async def test_a_document_moved_in_the_store_is_never_handed_out(store: Store) -> None:
    world = await World.make(store)
    mine = await Keeper.make(world)
    other_app, _ = await world.register(f"{world.app.client_id}-other")
    theirs = await Keeper.make(world, other_app)
    await mine.put("notes/n1", b'"mine"')
    await mine.put("notes/n2", b'"also"')
    await theirs.put("notes/n1", b'"their"')
    sealed = await store.client.hget(mine.keys()["docs"], "notes/n1")
    for keeper, name in ((mine, "notes/n2"), (theirs, "notes/n1")):
        await store.client.hset(keeper.keys()["docs"], name, sealed)
        with pytest.raises(StoreError):
            await keeper.get(name)
        with pytest.raises(StoreError):
            await keeper.page("notes", content=True)
        assert await refusal_of(keeper.put(name, b"1")) is None, "a new write works"
    assert (await mine.get("notes/n1"))[1] == b'"mine"'
