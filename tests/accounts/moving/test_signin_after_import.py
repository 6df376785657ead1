"""Sign-in of people who moved in: their old password works once more, and becomes one of ours."""

from __future__ import annotations

import time
from typing import Any

import bcrypt
import pytest

from store import keys
from store.accounts.signin import hash_prices
from store.accounts.signin.hash_prices import MOST_PRICES, HashPrices
from store.accounts.signin.totp import STEP, code_at
from store.clock import wall
from store.crypto.foreign.hashes import unpack
from store.wiring import Store
from tests.support.http.driver import Service
from tests.support.moving.movers import HASH, PASSWORD, bring, line, lines

ADA = "ada.moved@example.com"


async def _stored(store: Store, email: str) -> bytes:
    user = await store.people.find(email)
    assert user is not None
    found: Any = await store.client.hget(keys.person(user)["user"], "password")
    assert isinstance(found, bytes)
    return found


@pytest.mark.gen_test
async def test_first_sign_in_replaces_the_hash_and_later_ones_use_ours(service: Service) -> None:
    store = service.store
    await bring(store, [line(ADA, password_hash=HASH, email_verified=True)])
    assert (await service.browser().sign_in(ADA, PASSWORD + "!")).code == 400
    assert unpack(await _stored(store, ADA)) is not None, "a refused sign-in replaces nothing"
    assert (await service.browser().sign_in(ADA, PASSWORD)).code == 303
    ours = await _stored(store, ADA)
    assert unpack(ours) is None
    assert not store.hasher.needs_rehash(ours)
    assert (await service.browser().sign_in(ADA, PASSWORD)).code == 303
    assert await _stored(store, ADA) == ours


@pytest.mark.gen_test
async def test_the_authenticator_app_that_came_along_is_asked_for(service: Service) -> None:
    secret = "JBSWY3DPEHPK3PXP"
    await bring(service.store, [line(ADA, password_hash=HASH, totp_secret=secret)])
    browser = service.browser()
    answer = await browser.sign_in(ADA, PASSWORD)
    assert answer.headers["Location"].startswith("/signin/second")
    assert unpack(await _stored(service.store, ADA)) is None, "the password was right"
    page = await browser.get("/signin/second")
    code = code_at(b"Hello!\xde\xad\xbe\xef", int(wall.time() * 1000) // STEP)
    assert (await browser.submit(page, "/signin/second", code=code)).code == 303


@pytest.mark.gen_test
async def test_a_suspended_person_moves_in_suspended(service: Service) -> None:
    await bring(service.store, [line(ADA, password_hash=HASH, status="disabled")])
    answer = await service.browser().sign_in(ADA, PASSWORD)
    assert answer.code != 303
    assert unpack(await _stored(service.store, ADA)) is not None


def _likes(prices: HashPrices, count: int = 2000) -> list[str]:
    found = [prices.like(f"nobody{number}@example.com") for number in range(count)]
    return [one.price if one else "" for one in found]


@pytest.mark.gen_test
async def test_unknown_addresses_cost_what_imported_hashes_cost(memory_store: Store) -> None:
    store = memory_store
    await store.hash_prices.fresh()
    assert set(_likes(store.hash_prices)) == {""}
    dearer = bcrypt.hashpw(b"other", bcrypt.gensalt(5)).decode()
    await bring(store, [*lines(30, password_hash=HASH), *lines(10, 30, password_hash=dearer)])
    one, other = HashPrices(store.client), HashPrices(store.client)
    for prices in (one, other):
        await prices.fresh()
    found = _likes(one)
    assert found == _likes(other), "the same in every process"
    assert 0.45 < found.count("") / len(found) < 0.55
    assert 2.0 < found.count("bcrypt 4") / found.count("bcrypt 5") < 4.5
    # Without the salt, nobody can tell which unknown address costs what.
    await store.client.hset(keys.HASH_PRICES, "salt", "x" * 22)
    salted = HashPrices(store.client)
    await salted.fresh()
    assert _likes(salted) != found


@pytest.mark.gen_test
async def test_fewer_unknown_addresses_cost_more_as_hashes_are_replaced(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = memory_store
    await bring(store, lines(40, password_hash=HASH))
    await store.hash_prices.fresh()
    before = _likes(store.hash_prices)
    for number in range(30):
        assert await store.people.verify(f"mover{number}@example.com", PASSWORD)
    monkeypatch.setattr(hash_prices, "REFRESH", 0.0)
    await store.hash_prices.fresh()
    assert store.hash_prices._reading is not None
    await store.hash_prices._reading
    assert await store.client.hget(keys.HASH_PRICES, "bcrypt 4") == b"10"
    after = _likes(store.hash_prices)
    assert 0.2 < 1 - after.count("") / len(after) < 0.3
    # Each address changes once, as an account does.
    assert all(new in ("", old) for old, new in zip(before, after, strict=True)), (
        "addresses change once, as accounts do"
    )


@pytest.mark.gen_test
async def test_no_more_prices_are_kept_than_anybody_needs(memory_store: Store) -> None:
    await memory_store.hash_prices.add({f"pbkdf2-sha256 {number}": 1 for number in range(1, MOST_PRICES)})
    await memory_store.hash_prices.add({f"pbkdf2-sha256 {number}": 1 for number in range(1, 3 * MOST_PRICES)})
    assert await memory_store.client.hlen(keys.HASH_PRICES) < 4 * MOST_PRICES


@pytest.mark.gen_test(timeout=60)
async def test_a_refusal_takes_as_long_for_unknown_addresses(memory_store: Store) -> None:
    """A dear price makes the two kinds easy to tell apart without an exact clock."""
    store = memory_store
    dear = bcrypt.hashpw(b"other", bcrypt.gensalt(8)).decode()
    await bring(store, lines(5, password_hash=dear))
    await store.hash_prices.fresh()

    async def took(email: str) -> float:
        began = time.perf_counter()
        assert await store.people.verify(email, PASSWORD) is None
        return time.perf_counter() - began

    # The least of several: a busy machine only adds.
    known = min([await took("mover1@example.com") for _ in range(5)])
    strangers = [min([await took(f"n{number}@example.com") for _ in range(5)]) for number in range(10)]
    assert any(0.5 * known < one < 2 * known for one in strangers)
