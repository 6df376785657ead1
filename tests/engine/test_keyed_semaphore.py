"""Shared places: a greedy key leaves places for others."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from store.keyed_semaphore import FairSemaphore, KeyedSemaphore

pytestmark = pytest.mark.gen_test


class Crowd:
    """Tasks that each take a place and hold it until released."""

    def __init__(self, places: FairSemaphore) -> None:
        self.places = places
        self.held: Counter[str] = Counter()
        self.order: list[str] = []
        self._held_by: dict[str, list[asyncio.Event]] = {}
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, key: str, number: int = 1) -> None:
        """Asks for `number` places."""
        self.tasks += [asyncio.ensure_future(self._hold(key)) for _ in range(number)]
        await settle()

    async def _hold(self, key: str) -> None:
        async with self.places.place(key):
            self.held[key] += 1
            self.order.append(key)
            over = asyncio.Event()
            self._held_by.setdefault(key, []).append(over)
            await over.wait()
            self.held[key] -= 1

    async def leave(self, key: str) -> None:
        """Gives one of the key's places back."""
        self._held_by[key].pop(0).set()
        await settle()

    async def end(self) -> None:
        """Cancels all holders and waiters."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def settle() -> None:
    """Lets every task reach its wait."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_greedy_keys_leave_places_for_others() -> None:
    crowd = Crowd(FairSemaphore(64))
    for greedy in range(20):
        await crowd.ask(f"greedy-{greedy}", 100)
    assert crowd.held["greedy-0"] == 16, "of free places one key gets a quarter"
    assert crowd.held.total() <= 64
    # When places are freed, a key above its share gets none of them.
    for _ in range(16):
        for greedy in range(20):
            if crowd.held[f"greedy-{greedy}"]:
                await crowd.leave(f"greedy-{greedy}")
    assert 40 < crowd.held.total() <= 58, crowd.held
    await crowd.ask("honest")
    assert crowd.held["honest"] == 1
    await crowd.end()


async def test_the_next_place_goes_to_the_key_with_the_fewest_then_the_longest_wait() -> None:
    crowd = Crowd(FairSemaphore(4, 1))
    await crowd.ask("greedy", 10)
    await crowd.ask("second", 2)
    await crowd.ask("third", 2)
    for _ in range(3):
        await crowd.leave("greedy")
    assert crowd.order == ["greedy"] * 4 + ["second", "third", "greedy"]
    await crowd.end()


@pytest.mark.parametrize("order", ["cancelled, then its turn", "its turn, then cancelled", "long before"])
async def test_a_cancelled_waiter_takes_no_place(order: str) -> None:
    places = FairSemaphore(1)
    await places.acquire("first")
    gone, last = (asyncio.ensure_future(places.acquire(key)) for key in ("gone", "last"))
    await settle()
    if order == "its turn, then cancelled":
        places.release("first")
        gone.cancel()
    else:
        gone.cancel()
        if order == "long before":
            await settle()
        places.release("first")
    await settle()
    assert gone.cancelled()
    assert last.done()
    places.release("last")
    assert (places._taken, dict(places._waiting), dict(places._taken_by)) == (0, {}, {})


async def test_each_key_has_its_own_places_and_an_idle_key_takes_no_memory() -> None:
    turns = KeyedSemaphore(2)
    async with turns.place("a"), turns.place("a"), turns.place("b"):
        third = asyncio.ensure_future(turns.place("a").__aenter__())
        await settle()
        assert not third.done()
        third.cancel()
        await settle()
    assert not turns._lines
