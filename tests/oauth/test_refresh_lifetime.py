"""The longest life of a sign-in: refresh tokens end however often they rotate. SPEC 3.1, 8.3."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys
from store.apps.registration import InvalidRegistration, Registration
from store.crypto.seal import TokenKind
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.world import CALLBACK, World, refusal_of

WEEK = 7 * 86_400


@pytest.mark.parametrize(
    ("own", "server", "days"),
    [
        pytest.param(0, 0, 0, id="neither has an end"),
        pytest.param(7, 0, 7, id="the app alone"),
        pytest.param(0, 30, 30, id="the server alone"),
        pytest.param(7, 30, 7, id="the app has fewer"),
        pytest.param(90, 30, 30, id="the server has fewer"),
    ],
)
def test_the_shorter_lifetime_applies_and_zero_means_none(own: int, server: int, days: int) -> None:
    app = Registration("an-app", "An App", (CALLBACK,), ("profile",), refresh_lifetime_days=own)
    assert app.refresh_days(server) == days
    assert Registration.unpack(app.pack()) == app


@pytest.mark.parametrize("days", [-1, 3651])
def test_a_lifetime_beyond_ten_years_does_not_register(days: int) -> None:
    with pytest.raises(InvalidRegistration, match="refreshLifetimeDays"):
        Registration("an-app", "An App", (CALLBACK,), ("profile",), refresh_lifetime_days=days)


@pytest.mark.gen_test
@pytest.mark.spec("8.3")
@pytest.mark.parametrize("first", ["exchange", "mint"])
async def test_rotation_ends_with_the_lifetime_but_the_last_access_token_lives_its_hour(
    clock: FakeClock, memory_store: Store, first: str
) -> None:
    world = await World.make(memory_store, refresh_lifetime_days=45)
    tokens = await world.tokens()
    if first == "mint":
        tokens = await memory_store.tokens.mint(world.user, world.app, ("profile",))
    for _ in range(2):
        clock.advance(22 * 86_400)
        tokens = await world.refresh(tokens.refresh_token)
    clock.advance(86_400 - 10)
    last = await world.refresh(tokens.refresh_token)
    assert last.expires_in == 3600
    clock.advance(20)
    assert await refusal_of(world.refresh(last.refresh_token)) == "invalid_grant"
    assert await world.lives(last.access_token), "the refusal ends nothing else"
    clock.advance(3500)
    assert await world.lives(last.access_token)
    clock.advance(200)
    assert not await world.lives(last.access_token)
    world.session = await world.sign_in()
    assert await world.lives((await world.tokens()).access_token), "the person signs in again"


@pytest.mark.gen_test
async def test_an_older_familys_lifetime_starts_at_its_next_rotation(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    tokens = await world.tokens()
    world.app = await memory_store.apps.update(world.app.client_id, refresh_lifetime_days=7)
    clock.advance(3 * WEEK)
    tokens = await world.refresh(tokens.refresh_token)
    clock.advance(WEEK - 60)
    tokens = await world.refresh(tokens.refresh_token)
    clock.advance(120)
    assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"
    # Where the lifetime is lifted while the row is there, the sign-in goes on.
    world.app = await memory_store.apps.update(world.app.client_id, refresh_lifetime_days=0)
    assert await world.lives((await world.refresh(tokens.refresh_token)).access_token)


@pytest.mark.gen_test
@pytest.mark.spec("3.1")
async def test_without_a_lifetime_families_do_not_end_and_rows_have_no_end(
    clock: FakeClock, memory_store: Store
) -> None:
    world = await World.make(memory_store)
    tokens = await world.tokens()
    for _ in range(60):
        clock.advance(29 * 86_400)
        tokens = await world.refresh(tokens.refresh_token)
    found = memory_store.sealer.open(TokenKind.REFRESH, tokens.refresh_token)
    assert found is not None
    row: Any = await memory_store.client.hgetall(keys.token(found.user, found.client, found.id, 0)["family"])
    assert set(row) == {b"generation", b"scope", b"epoch"}
