"""Fixtures of the tests of proofs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handlers.core.application import Latchkey
from store.clock import wall
from tests.support.processes.engines import FakeClock


@pytest.fixture
def server(app: Latchkey) -> Latchkey:
    """The application that serves, under a name of its own."""
    return app


@pytest.fixture
def later(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Puts the clocks of the store and of the server forward, in seconds."""

    def advance(seconds: float) -> None:
        clock.advance(seconds)
        monkeypatch.setattr(wall, "ahead", wall.ahead + seconds)

    return advance
