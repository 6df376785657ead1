"""The keys that sign: made on need, published before use, rotated with overlap, revoked, opened by every process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from store import keys
from store.crypto.jose import jws
from store.crypto.jose.private import OURS, PrivateKey
from store.crypto.jose.refusal import JoseError
from store.crypto.signing_rows import Phase
from store.errors import StoreError
from store.reencryption import Progress
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.many_documents import rotated
from tests.support.store.signing import DAY, HOUR, TYPES, forget, later, phases, published, signed

OVER = HOUR + 601
"""Seconds after which the last token of a replaced key is over, with the margin."""


@pytest.mark.gen_test
async def test_nothing_is_made_before_it_is_needed(memory_store: Store) -> None:
    assert await memory_store.signing_store.listed() == []
    _, kid = await signed(memory_store, "ES256")
    assert await phases(memory_store, "ES256") == {kid: Phase.SIGNING}
    assert await phases(memory_store, "RS256") == {}


@pytest.mark.gen_test
@pytest.mark.openid("discovery 3 jwks_uri")
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
async def test_the_set_verifies_what_is_signed(memory_store: Store) -> None:
    found: Any = await memory_store.signing_keys.published()
    assert {key["alg"] for key in found["keys"]} == set(OURS)
    assert not {"d", "p", "q", "k"} & {name for key in found["keys"] for name in key}
    theirs = KeySet.import_key_set(found)
    for algorithm in OURS:
        text, kid = await signed(memory_store, algorithm)
        assert jwt.decode(text, theirs, algorithms=[algorithm]).header["kid"] == kid
        own = await memory_store.signing_keys.verify(text, types=TYPES)
        assert own.claims == {"sub": "ada"}
        assert (await memory_store.signing_keys.verifier(kid)) == own.key
        assert own.key.algorithms == (algorithm,)


@pytest.mark.gen_test
async def test_an_algorithm_that_is_not_ours_is_a_mistake(memory_store: Store) -> None:
    for algorithm in ("PS256", "HS256", "none"):
        with pytest.raises(ValueError, match="nothing is signed"):
            await memory_store.signing_keys.for_signing(algorithm)


@pytest.mark.gen_test
async def test_the_store_never_has_a_private_key_in_clear(memory_store: Store) -> None:
    signer = await memory_store.signing_keys.for_signing("ES256")
    fields: Any = await memory_store.client.hgetall(keys.SIGNING)
    stored = b"".join([name + value for name, value in fields.items()])
    secret = signer.key.to_bytes()
    assert secret not in stored
    assert secret[36:68] not in stored  # the number itself


@pytest.mark.gen_test
@pytest.mark.trap(47)
async def test_a_successor_is_published_a_day_before_it_signs(clock: FakeClock, memory_store: Store) -> None:
    store = memory_store
    _, old = await signed(store, "ES256")
    successor, changed = await store.signing_store.rotate("ES256")
    assert changed
    new = successor.row.kid
    assert await published(store, "ES256") == [old, new]
    later(clock, DAY - 60, store)
    last, kid = await signed(store, "ES256")
    assert kid == old
    later(clock, 61, store)
    assert (await signed(store, "ES256"))[1] == new
    # The old key is there until its last token is over.
    later(clock, HOUR, store)
    assert await published(store, "ES256") == [new, old]
    later(clock, OVER - HOUR, store)
    assert await published(store, "ES256") == [new]
    # The public half still verifies hints; the private half is gone.
    assert (await store.signing_keys.verify(last, types=TYPES)).claims == {"sub": "ada"}
    assert await store.client.hget(keys.SIGNING, f"{old}:private") is None
    later(clock, 30 * DAY + 1, store)
    assert await store.signing_keys.verifier(old) is None
    with pytest.raises(JoseError, match="unknown_key"):
        await store.signing_keys.verify(last, types=TYPES)
    assert set(await phases(store, "ES256")) == {new}


@pytest.mark.gen_test
@pytest.mark.trap(47)
async def test_a_key_that_grows_old_gets_a_successor(clock: FakeClock, memory_store: Store) -> None:
    store = memory_store
    store.signing_keys.days = 7
    _, old = await signed(store, "EdDSA")
    later(clock, 7 * DAY - 5, store)
    assert await published(store, "EdDSA") == [old]
    later(clock, 10, store)
    assert (await signed(store, "EdDSA"))[1] == old
    first, new = await published(store, "EdDSA")
    assert first == old
    later(clock, DAY + 1, store)
    assert (await signed(store, "EdDSA"))[1] == new
    store.signing_keys.days = 0
    later(clock, 400 * DAY, store)
    assert await published(store, "EdDSA") == [new]


@pytest.mark.gen_test
async def test_a_key_signs_at_once_if_told(clock: FakeClock, memory_store: Store) -> None:
    store = memory_store
    _, old = await signed(store, "ES256")
    waits, _ = await store.signing_store.rotate("ES256")
    again, changed = await store.signing_store.rotate("ES256")
    assert (again.row.kid, changed) == (waits.row.kid, False)
    later(clock, 60, store)
    made, changed = await store.signing_store.rotate("ES256", at_once=True)
    assert (made.row.kid, made.phase, changed) == (waits.row.kid, Phase.SIGNING, True)
    assert (await signed(store, "ES256"))[1] == waits.row.kid
    later(clock, 60, store)
    third, _ = await store.signing_store.rotate("ES256", at_once=True)
    assert (await signed(store, "ES256"))[1] == third.row.kid
    assert await published(store, "ES256") == [third.row.kid, old, waits.row.kid]


@pytest.mark.gen_test
async def test_a_revoked_key_verifies_nothing_and_is_replaced(clock: FakeClock, memory_store: Store) -> None:
    store = memory_store
    text, kid = await signed(store, "ES256")
    assert await store.signing_store.revoke(kid)
    assert not await store.signing_store.revoke("A" * 43)
    with pytest.raises(JoseError, match="unknown_key"):
        await store.signing_keys.verify(text, types=TYPES)
    assert await store.signing_keys.verifier(kid) is None
    _, new = await signed(store, "ES256")
    assert new != kid
    assert await published(store, "ES256") == [new]
    assert await phases(store, "ES256") == {kid: Phase.REVOKED, new: Phase.SIGNING}
    assert await store.client.hget(keys.SIGNING, f"{kid}:private") is None
    later(clock, 31 * DAY, store)
    await published(store, "ES256")
    assert set(await phases(store, "ES256")) == {new}


@pytest.mark.gen_test
async def test_after_the_only_key_was_revoked_its_successor_signs_at_once(memory_store: Store) -> None:
    _, kid = await signed(memory_store, "ES256")
    successor, _ = await memory_store.signing_store.rotate("ES256")
    await memory_store.signing_store.revoke(kid)
    assert (await signed(memory_store, "ES256"))[1] == successor.row.kid


@pytest.mark.gen_test
async def test_a_revoked_successor_leaves_the_old_key_signing(memory_store: Store) -> None:
    _, kid = await signed(memory_store, "ES256")
    successor, _ = await memory_store.signing_store.rotate("ES256", at_once=True)
    await memory_store.signing_store.revoke(successor.row.kid)
    assert (await signed(memory_store, "ES256"))[1] == kid


@pytest.mark.gen_test(timeout=60)
async def test_processes_that_race_agree_on_the_first_key(store: Store) -> None:
    stores = [rotated(store) for _ in range(4)]
    signers = await asyncio.gather(
        *(store.signing_keys.for_signing(algorithm) for store in stores * 3 for algorithm in OURS)
    )
    assert len({signer.kid for signer in signers}) == len(OURS)
    sets = [await store.signing_keys.published() for store in stores]
    assert all(one == sets[0] for one in sets)
    assert len(await stores[0].signing_store.listed()) == len(OURS)


@pytest.mark.gen_test
@pytest.mark.trap(47)
async def test_first_keys_of_another_process_are_published_although_the_cached_set_lacks_them(
    memory_store: Store,
) -> None:
    other = rotated(memory_store)
    assert await memory_store.signing_keys.verifier("x" * 43) is None  # caches the empty set
    found = await other.signing_keys.published()
    assert await memory_store.signing_keys.published() == found


@pytest.mark.gen_test
async def test_processes_that_race_make_one_successor(clock: FakeClock, memory_store: Store) -> None:
    await signed(memory_store, "ES256")
    other = rotated(memory_store)
    later(clock, 91 * DAY, memory_store)
    await asyncio.gather(*(store.signing_keys.for_signing("ES256") for store in (memory_store, other)))
    forget((memory_store, other))
    assert await published(memory_store, "ES256") == await published(other, "ES256")
    assert len(await phases(memory_store, "ES256")) == 2
    # Both have read the same keys before either adds one.
    found = await memory_store.signing_store.read()
    assert await memory_store.signing_store.make("ES256", found, 0)
    assert await other.signing_store.make("ES256", found, 0) is None
    assert len(await phases(memory_store, "ES256")) == 3


@pytest.mark.gen_test
@pytest.mark.trap(47)
async def test_a_process_that_lacks_a_key_asks_for_it(memory_store: Store) -> None:
    await signed(memory_store, "ES256")
    other = rotated(memory_store)
    await signed(other, "ES256")  # has the set in its cache
    await memory_store.signing_store.rotate("ES256", at_once=True)
    text, kid = await signed(memory_store, "ES256")
    assert (await other.signing_keys.verify(text, types=TYPES)).claims == {"sub": "ada"}
    assert (await other.signing_keys.verifier(kid)) is not None


@pytest.mark.gen_test
async def test_invented_names_cost_one_read_a_second(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory_store
    await signed(store, "ES256")
    read, reads = store.signing_store.read, []

    async def counted() -> Any:
        reads.append(1)
        return await read()

    monkeypatch.setattr(store.signing_store, "read", counted)
    foreign = PrivateKey.generate("ES256")
    for number in range(50):
        assert await store.signing_keys.verifier(f"{number:043d}") is None
        with pytest.raises(JoseError, match="unknown_key"):
            await store.signing_keys.verify(jws_of(foreign), types=TYPES)
    assert len(reads) <= 3
    assert await store.signing_keys.verifier("../../etc/passwd") is None
    assert await store.signing_keys.verifier("A" * 10**6) is None


def jws_of(key: PrivateKey) -> str:
    """A token of somebody else's key."""
    return jws.sign({"sub": "ada"}, key, "JWT")


@pytest.mark.gen_test
async def test_an_announcement_reaches_the_others(memory_store: Store) -> None:
    other = rotated(memory_store)
    await signed(memory_store, "ES256")
    await signed(other, "ES256")
    async with other.announcements.following():
        await asyncio.sleep(0.05)
        await signed(other, "ES256")
        made, _ = await memory_store.signing_store.rotate("ES256", at_once=True)
        for _ in range(100):
            if (await signed(other, "ES256"))[1] == made.row.kid:
                return
            await asyncio.sleep(0.01)
    pytest.fail("the other process signs with the old key")


@pytest.mark.gen_test
async def test_reencryption_brings_signing_keys_under_the_front_key(memory_store: Store) -> None:
    text, kid = await signed(memory_store, "ES256")
    newer = rotated(memory_store, 2)
    assert (await signed(newer, "ES256"))[1] == kid
    assert (await walked(newer)).unreadable == 0
    sealed: Any = await memory_store.client.hget(keys.SIGNING, f"{kid}:private")
    assert sealed[0] == 2
    forget((newer,))
    assert (await newer.signing_keys.verify(text, types=TYPES)).claims == {"sub": "ada"}
    assert (await signed(newer, "ES256"))[1] == kid


@pytest.mark.gen_test
async def test_a_key_that_does_not_open_is_named_and_replaced(
    memory_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store = memory_store
    _, kid = await signed(store, "ES256")
    await store.client.hset(keys.SIGNING, f"{kid}:private", b"\x01" + bytes(80))
    fresh = rotated(store, 2)
    assert (await walked(fresh)).named == [f"{kid} (signing key)"]
    _, new = await signed(fresh, "ES256")
    assert new != kid
    assert "cannot be used" in caplog.text


@pytest.mark.gen_test
async def test_a_successor_that_cannot_be_made_stops_nobody(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = memory_store
    _, kid = await signed(store, "ES256")
    tried = []

    async def full(*_: object) -> None:
        tried.append(1)
        raise StoreError("no room")

    monkeypatch.setattr(store.signing_store, "make", full)
    for _ in range(3):
        later(clock, 91 * DAY, store)
        assert (await signed(store, "ES256"))[1] == kid
    assert len(tried) == 1, "it tries again after a minute"
    assert "could not be brought up to date" in caplog.text


async def walked(store: Store) -> Progress:
    """A re-encryption to its end."""
    return [progress async for progress in store.reencryption.run(0)][-1]


async def wrong(store: Store) -> list[str]:
    """What a check of the store says of the signing keys."""
    return [finding.what for finding in await store.fsck.check(keys.SIGNING)]


@pytest.mark.gen_test
async def test_a_check_of_the_store_finds_a_broken_key(memory_store: Store) -> None:
    store, client = memory_store, memory_store.client
    _, kid = await signed(store, "ES256")
    assert await wrong(store) == []
    other = PrivateKey.generate("ES256")
    sound: Any = await client.hgetall(keys.SIGNING)
    stolen = store.signing_store.secrets.seal(kid, other.to_bytes())
    for name, value, said in (
        ("private", stolen, "halves that do not belong together"),
        ("private", b"\x01" + bytes(80), "does not open"),
        ("private", b"\x09" + bytes(80), "does not open"),
        ("public", b"{}", "no public half"),
        ("public", b'{"kty":', "no public half"),
        ("state", b"ES256 1 2", "no sound state"),
        ("state", b"HS256 1 2 0", "no sound state"),
        ("more", b"", "wrong or missing"),
    ):
        await client.hset(keys.SIGNING, f"{kid}:{name}", value)
        assert any(said in one for one in await wrong(store)), (name, said, await wrong(store))
        await client.delete(keys.SIGNING)
        await client.hset(keys.SIGNING, mapping=sound)
    await store.signing_store.revoke(kid)
    assert await wrong(store) == []
