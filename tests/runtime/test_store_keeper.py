"""When the embedded store is started again, and when it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from runtime import store_keeper
from runtime.store_keeper import FIRST_PAUSE, LONGEST_PAUSE, SETTLED, StoreKeeper
from store.engine.embedded import EmbeddedStore
from store.errors import StartupError


class EndingStore:
    """An embedded store that ends at once, each time."""

    def __init__(self) -> None:
        self.starts = 0

    def gone(self) -> bool:
        return True

    def start_again(self, wait: float = 30.0, check: Callable[[], None] = lambda: None) -> None:
        check()
        self.starts += 1
        if self.starts % 2:
            raise StartupError("it ended by itself")


class Steady:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Steady:
    clock = Steady()
    monkeypatch.setattr(store_keeper, "time", clock)
    return clock


def pauses(keeper: StoreKeeper, steady: Steady, starts: int) -> list[float]:
    found = []
    for _ in range(starts):
        before = steady.now
        while not keeper.due():
            steady.now += 0.25
        found.append(steady.now - before)
        keeper.start()
    return found


def test_the_pauses_before_the_next_start_grow(steady: Steady) -> None:
    store: Any = EndingStore()
    keeper = StoreKeeper(cast(EmbeddedStore, store), lambda: False)
    assert pauses(keeper, steady, 9) == [0, FIRST_PAUSE, 1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE]
    steady.now += SETTLED
    assert pauses(keeper, steady, 2) == [0, FIRST_PAUSE]
    assert store.starts == 11


def test_a_server_that_ends_starts_no_store(steady: Steady) -> None:
    store: Any = EndingStore()
    stopping = [False, False, True]
    keeper = StoreKeeper(cast(EmbeddedStore, store), lambda: stopping.pop(0))
    assert keeper.due()
    keeper.start()  # the check passes once: the store is started, and does not come up
    stopping[:] = [True]
    keeper.start()
    assert store.starts == 1
    stopping[:] = [True]
    assert not keeper.due()
