"""Several processes relay into the index while people change, and some are killed: the index fits in the end."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from store import keys as spell
from store.crypto.keyring import KeyRing, Keys
from store.lifetimes import RENAME
from store.wiring import Store
from tests.conftest import OpenStore, emptied
from tests.support.directory.listed_people import flaws, rename, sign_up
from tests.support.directory.relay_process import READY, SMALL

pytestmark = [pytest.mark.gen_test(timeout=120), pytest.mark.slow]

RING = KeyRing.generate(1)
WORDS = ("Ada", "Adam", "Adele", "Adina", "Bob", "Bobby", "Turing", "Lovelace")


@pytest.fixture
def keys() -> Keys:
    """The keys of every process."""
    return Keys(KeyRing.parse(RING))


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store that several processes can share."""
    return emptied(request, request.param)


@pytest.fixture
def shared(open_store: OpenStore, url: str) -> Store:
    """This process's own view of it."""
    store = open_store(url)
    store.directory_relay.sections.most = SMALL
    return store


@contextmanager
def processes(url: str, *what: str) -> Iterator[list[subprocess.Popen[str]]]:
    """A process for each word of `what`; they begin when all are ready."""
    words = [sys.executable, "-m", "tests.support.directory.relay_process", url, RING]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent.parent)}
    started: list[subprocess.Popen[str]] = []
    try:
        for one in what:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            started.append(subprocess.Popen([*words, one], text=True, env=environment, **pipes))
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == READY
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def name_of(chance: random.Random) -> str:
    return f"{chance.choice(WORDS)} {chance.choice(WORDS)}"


async def forget_the_dead(store: Store, users: Iterable[str]) -> None:
    """Ends the leases of processes that were killed, as ten seconds would."""
    for user in users:
        await store.client.delete(spell.directory_relay(user[:3])["relaying"])


@pytest.mark.parametrize("url", ["valkey", "cluster"], indirect=True)
async def test_processes_that_relay_together_leave_the_newest_names(url: str, shared: Store) -> None:
    chance, people, everybody = random.Random(5), dict[str, tuple[str, str]](), set[str]()
    left: dict[str, int] = {}  # how many new names each person can still take within the hour
    with processes(url, "relay", "relay", "relay") as started:
        for number in range(120):
            email, name = f"ad{number}@example.org", name_of(chance)
            user = await sign_up(shared, email, name)
            people[user], left[user] = (email, name), RENAME.limit
            able = [user for user in sorted(people) if left[user]]
            for user in chance.sample(able, min(3, len(able))):
                people[user] = (people[user][0], name_of(chance))
                left[user] -= 1
                await rename(shared, user, people[user][1])
            everybody |= people.keys()
            if number % 10 == 9:
                gone = chance.choice(sorted(people))
                await shared.people.delete(gone)
                del people[gone]
        started[0].kill()
    await forget_the_dead(shared, everybody)
    await shared.directory_relay.sweep()
    assert await flaws(shared, people) == []


@pytest.mark.parametrize("url", ["valkey"], indirect=True)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("script", ["take_changed", "change_section", "settle_changed"])
async def test_a_relay_killed_at_any_step_costs_a_repetition(url: str, shared: Store, when: str, script: str) -> None:
    people: dict[str, tuple[str, str]] = {}
    for number in range(12):
        email = f"ad{number}@example.org"
        people[await sign_up(shared, email, "Ada Lovelace")] = (email, "Ada Lovelace")
    await shared.directory_relay.sweep()
    for user in list(people)[:6]:
        people[user] = (people[user][0], "Alan Turing")
        await rename(shared, user, "Alan Turing")
    gone = list(people)[-1]
    await shared.people.delete(gone)
    del people[gone]
    with processes(url, f"{when}:{script}") as (process,):
        assert process.wait(60) < 0
    await forget_the_dead(shared, (*people, gone))
    await shared.directory_relay.sweep()
    assert await flaws(shared, people) == []
