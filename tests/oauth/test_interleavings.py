"""Whole scripts in every order, and a hundred concurrent calls: invariants for any order.

A script is atomic, so the orders of whole scripts are all the interleavings there are.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Iterable, Sequence
from itertools import permutations

import pytest

from store.crypto.keyring import Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.oauth.tokens import TokenResponse
from store.wiring import Store
from tests.support.processes.engines import valkey
from tests.support.store.world import World, refusal_of


class Story:
    """A pair with a rotated family F (R0 used, R1 current) and a code; it knows which of its tokens must be alive."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.families: dict[str, list[TokenResponse]] = {"F": [], "code": [], "new": []}
        self.alive: list[TokenResponse] = []
        self.accepted: list[str] = []
        self.replayed = self.stale = False  # of F: presented in vain before; born before the pair's present epoch

    async def begin(self) -> None:
        """Prepares the pair."""
        self.code = await self.world.code()
        self.first = await self.world.tokens()
        self.second = await self.world.refresh(self.first.refresh_token)
        self.families["F"] = [self.first, self.second]
        self.alive = [self.first, self.second]

    async def _present(self, family: str, what: str, call: Awaitable[TokenResponse]) -> bool:
        async def keep() -> None:
            tokens = await call
            self.families[family].append(tokens)
            self.alive.append(tokens)
            self.accepted.append(what)

        return await refusal_of(keep()) is None

    def _end(self, families: Iterable[str]) -> None:
        ended = [tokens for family in families for tokens in self.families[family]]
        self.alive = [tokens for tokens in self.alive if tokens not in ended]

    def _end_by_replay(self) -> None:
        """A replay ends the pair; a family from before the present epoch does so once and no more."""
        if not (self.replayed and self.stale):
            self._end(self.families)
        self.replayed = self.stale = True

    async def exchange(self) -> None:
        """Presents the code: a second time, this ends the tokens from it."""
        if not await self._present("code", "code", self.world.exchange(self.code)):
            self._end(["code"])

    async def refresh(self) -> None:
        """Presents R1; without success this is a replay."""
        if not await self._present("F", "R1", self.world.refresh(self.second.refresh_token)):
            self._end_by_replay()

    async def replay(self) -> None:
        """Presents R0, which is used."""
        await self._present("F", "R0", self.world.refresh(self.first.refresh_token))
        self._end_by_replay()

    async def revoke_family(self) -> None:
        """Revokes R1."""
        await self.world.store.tokens.revoke(self.world.app, self.second.refresh_token)
        self._end(["F"])

    async def disconnect(self) -> None:
        """The person disconnects the app, if it is connected."""
        assert await refusal_of(self.world.revoke_app()) in (None, "not_found")
        self._end(self.families)
        self.stale = True

    async def reconnect(self) -> None:
        """The person consents again, and the app has new tokens at once."""
        assert await self._present("new", "new", self.world.tokens())

    async def check(self) -> None:
        """The invariants after every step of every order."""
        for what in ("code", "R1"):
            assert self.accepted.count(what) <= 1
        assert "R0" not in self.accepted
        for tokens in itertools.chain(*self.families.values()):
            assert await self.world.lives(tokens.access_token) == (tokens in self.alive)


SETS = [
    pytest.param(["exchange"] * 3, marks=pytest.mark.trap(1), id="one code three times"),
    pytest.param(["refresh", "refresh", "reconnect"], marks=pytest.mark.trap(1), id="one refresh token twice"),
    pytest.param(["refresh", "replay"], marks=pytest.mark.trap(2), id="a replay and a winner about to store"),
    pytest.param(["exchange", "refresh", "replay", "exchange"], marks=pytest.mark.trap(2), id="replays of both"),
    pytest.param(
        ["refresh", "replay", "disconnect", "reconnect"],
        marks=[pytest.mark.trap(2), pytest.mark.trap(3)],
        id="refresh, replay, disconnection, reconnection",
    ),
    pytest.param(["refresh", "exchange", "disconnect"], marks=pytest.mark.trap(3), id="refresh races disconnection"),
    pytest.param(["refresh", "revoke_family", "exchange", "reconnect"], id="refresh races revocation"),
]


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("steps", SETS)
async def test_every_interleaving_leaves_exactly_the_right_tokens_alive(memory_store: Store, steps: list[str]) -> None:
    for order in sorted(set(permutations(steps))):
        story = Story(await World.make(memory_store))
        await story.begin()
        for step in order:
            await getattr(story, step)()
            await story.check()
        for tokens in itertools.chain(*story.families.values()):
            if tokens not in story.alive:
                assert await refusal_of(story.world.refresh(tokens.refresh_token)) == "invalid_grant"


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(3)
async def test_no_token_is_live_after_an_acknowledged_disconnection(memory_store: Store) -> None:
    for order in sorted(set(permutations(["refresh", "exchange", "disconnect", "refresh"]))):
        story = Story(await World.make(memory_store))
        await story.begin()
        for step in order:
            await getattr(story, step)()
        assert story.alive == []
        await story.check()


async def race(calls: Sequence[Awaitable[TokenResponse]]) -> list[TokenResponse]:
    """The successful ones of these concurrent calls; asserts that the others were refused correctly."""
    won: list[TokenResponse] = []

    async def run(call: Awaitable[TokenResponse]) -> str | None:
        async def keep() -> None:
            won.append(await call)

        return await refusal_of(keep())

    refusals = await asyncio.gather(*[run(call) for call in calls])
    assert set(refusals) <= {None, "invalid_grant"}
    return won


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(1)
async def test_a_hundred_concurrent_exchanges_succeed_once_and_end_that_success(store: Store) -> None:
    world = await World.make(store)
    code = await world.code()
    won = await race([world.exchange(code) for _ in range(100)])
    assert len(won) == 1
    assert not await world.lives(won[0].access_token)
    assert await refusal_of(world.refresh(won[0].refresh_token)) == "invalid_grant"


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(1)
async def test_a_hundred_concurrent_refreshes_succeed_once_and_end_that_success(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()
    won = await race([world.refresh(tokens.refresh_token) for _ in range(100)])
    assert len(won) == 1
    for each in (tokens, won[0]):
        assert not await world.lives(each.access_token)
        assert await refusal_of(world.refresh(each.refresh_token)) == "invalid_grant"


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(1)
async def test_a_hundred_concurrent_retries_in_the_retry_window_are_one_rotation(store: Store) -> None:
    world = await World.make(store, refresh_retry_seconds=60)
    tokens = await world.tokens()
    await world.fresh_window()
    won = await race([world.refresh(tokens.refresh_token) for _ in range(100)])
    assert len(won) == 100
    assert len({(each.access_token, each.refresh_token) for each in won}) == 1
    await world.fresh_window()
    assert await world.lives(won[0].access_token)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(3)
async def test_concurrent_refreshes_and_a_disconnection_leave_no_live_token(store: Store) -> None:
    world = await World.make(store)
    families = [await world.tokens() for _ in range(10)]
    refreshes = [world.refresh(tokens.refresh_token) for tokens in families]
    before = asyncio.ensure_future(race(refreshes[:5]))
    await asyncio.sleep(0)
    _, after = await asyncio.gather(world.revoke_app(), race(refreshes[5:]))
    won = [*await before, *after]
    for tokens in [*families, *won]:
        assert not await world.lives(tokens.access_token)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(4)
async def test_the_first_token_after_three_instant_rotations_is_a_replay(store: Store) -> None:
    world = await World.make(store)
    chain = [await world.tokens()]
    for _ in range(3):
        chain.append(await world.refresh(chain[-1].refresh_token))
    assert await refusal_of(world.refresh(chain[0].refresh_token)) == "invalid_grant"
    for tokens in chain:
        assert not await world.lives(tokens.access_token)
        assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(4)
@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_a_replay_is_detected_after_server_and_store_were_restarted(keys: Keys, end: str) -> None:
    with valkey(append_only=True, options=("--appendfsync", "always")) as engine:
        hasher = PasswordHasher(64, 1)
        before = Store(await connect(engine.url), keys, hasher, session_idle=3600, session_lifetime=7200)
        world = await World.make(before)
        code = await world.code()
        first = await world.exchange(code)
        second = await world.refresh(first.refresh_token)
        getattr(engine, end)()
        engine.start()
        await before.close()
        hasher = PasswordHasher(64, 1)
        world.store = Store(await connect(engine.url), keys, hasher, session_idle=3600, session_lifetime=7200)
        assert await world.lives(second.access_token)
        assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"
        assert not await world.lives(second.access_token)
        assert await refusal_of(world.exchange(code)) == "invalid_grant"
        await world.store.close()
