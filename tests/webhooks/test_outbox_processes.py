"""Several processes relay and post, and some are killed: nothing is lost or posted by two at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from store import keys as spell
from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import new_id
from store.webhooks.deliveries import WebhookEvent
from store.wiring import Store
from tests.conftest import OpenStore, emptied
from tests.support.store.relay_process import READY
from tests.support.store.world import World

pytestmark = [pytest.mark.gen_test(timeout=120), pytest.mark.slow]

RING = KeyRing.generate(1)
Process = subprocess.Popen[str]


@pytest.fixture
def keys() -> Keys:
    """The keys that every process of these tests seals with."""
    return Keys(KeyRing.parse(RING))


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store that several processes can share."""
    return emptied(request, request.param)


@pytest.fixture
def shared(open_store: OpenStore, url: str) -> Store:
    """This process's own view of it."""
    return open_store(url)


@contextmanager
def processes(url: str, *what: str) -> Iterator[list[Process]]:
    """A process for each word of `what`; they start when all are ready."""
    words = [sys.executable, "-m", "tests.support.store.relay_process", url, RING]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent.parent)}
    started: list[Process] = []
    try:
        for one in what:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            started.append(subprocess.Popen([*words, one], text=True, env=environment, **pipes))
        for process in started:
            assert pipe_of(process).readline() == f"{READY}\n"
        for process in started:
            go_on(process)
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def pipe_of(process: Process) -> IO[str]:
    """Its output."""
    assert process.stdout is not None
    return process.stdout


def go_on(process: Process) -> None:
    """Lets it start or continue."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


async def left_by(store: Store, number: int) -> list[World]:
    """People who have disconnected their app."""
    worlds = [await World.make(store) for _ in range(number)]
    for world in worlds:
        await world.tokens()
        await world.revoke_app()
    return worlds


async def delivery_counts(worlds: list[World]) -> list[int]:
    """The number of deliveries for each."""
    return [len(await world.store.deliveries.list(world.app.client_id)) for world in worlds]


@pytest.mark.parametrize(
    ("url", "script"),
    [("valkey", "enqueue_delivery"), ("valkey", "drop_events"), ("cluster", "drop_events")],
    indirect=["url"],
)
async def test_a_killed_relay_neither_loses_nor_repeats_events(shared: Store, url: str, script: str) -> None:
    worlds = await left_by(shared, 4)
    with processes(url, f"die:{script}") as (doomed,):
        assert await asyncio.to_thread(doomed.wait, 60) == -9
    assert sum(await delivery_counts(worlds)) == (1 if script == "drop_events" else 0)
    assert [await shared.client.exists(spell.outbox(world.user)) for world in worlds] == [1] * 4
    with processes(url, "relay", "relay"):
        while any([await shared.client.exists(spell.outbox(world.user)) for world in worlds]):
            await asyncio.sleep(0.05)
    assert await delivery_counts(worlds) == [1] * 4


@pytest.mark.parametrize("url", ["valkey"], indirect=True)  # all of them lie in one slot
async def test_no_delivery_is_claimed_twice(shared: Store, url: str) -> None:
    ids = [new_id() for _ in range(100)]
    for one in ids:  # of several apps
        await shared.deliveries.enqueue(WebhookEvent(one, "grant.revoked", f"app-{one[0]}", "a" * 32, 1))
    with processes(url, *["claim"] * 3) as several:
        firsts = [await asyncio.to_thread(pipe_of(process).readline) for process in several]
        for process in several:
            go_on(process)
        said = [await asyncio.to_thread(pipe_of(process).read) for process in several]
    claimed = Counter(line for out in (*firsts, *said) for line in out.splitlines())
    assert claimed == Counter(f"{one} 1" for one in ids)
    assert await shared.deliveries.next_due() is None
