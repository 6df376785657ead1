"""A caller's window, taken from the store in portions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from store import keys
from store.lifetimes import INTROSPECT, MINUTE
from store.oauth import portions as module
from store.oauth.portions import Allotment, Portions
from store.refused import Refused
from store.results import Window
from store.wiring import Store
from tests.support.processes.engines import Engine, Ticking
from tests.support.store.lost_answers import OpenNew

CALLER = "api_caller"


def of(store: Store, limit: int, clock: Any = None) -> Portions:
    """The windows of another process on the same store."""
    return Portions(store.scripts, replace(INTROSPECT, limit=limit), *([clock] if clock else []))


async def settled(windows: Portions) -> None:
    """Waits for what runs in the background."""
    for own in windows.allotments.values():
        if own.taking:
            await own.taking


async def admitted(windows: Portions, number: int) -> list[Window]:
    """The figures of the calls among `number`, one after the other, that are admitted."""
    found: list[Window] = []
    refused: list[Refused] = []
    for _ in range(number):
        try:
            found.append(await windows.take(CALLER))
        except Refused as refusal:
            refused.append(refusal)
    assert {refusal.code for refusal in refused} <= {"rate_limited"}
    assert all(refusal.window and refusal.window.remaining == 0 for refusal in refused)
    assert all((refusal.retry_after or 0) >= 1 for refusal in refused)
    return found


@pytest.mark.gen_test
@pytest.mark.parametrize("limit", [1, 7, 100, 600])
async def test_one_process_admits_exactly_the_limit(memory_store: Store, limit: int) -> None:
    found = await admitted(of(memory_store, limit), limit + 50)
    assert len(found) == limit
    assert {window.limit for window in found} == {limit}
    assert found[-1].remaining == 0


@pytest.mark.gen_test
async def test_a_caller_s_burst_at_once_is_bounded(valkey_engine: Engine, open_new: OpenNew) -> None:
    """100 requests at once on two processes."""
    async with open_new(valkey_engine.url) as store:
        await store.client.flushall()
        one, other = of(store, 200), of(store, 200)
        calls = [windows.take(CALLER) for _ in range(150) for windows in (one, other)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {Window, Refused}
        number = sum(isinstance(outcome, Window) for outcome in outcomes)
        assert 200 <= number <= 200 + 2 * 2, "one portion more for each process, at most"


@pytest.mark.gen_test
async def test_the_store_hears_of_a_portion_and_not_of_each_call(valkey_engine: Engine, open_new: OpenNew) -> None:
    async with open_new(valkey_engine.url) as store:
        await store.client.flushall()
        windows = of(store, 6000)
        await windows.take(CALLER)
        await settled(windows)
        await store.client.config_resetstat()
        assert len(await admitted(windows, 600)) == 600
        await settled(windows)
        stats = await store.client.info("commandstats")
        calls = sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))
        assert 1 <= calls <= 30


@pytest.mark.gen_test
async def test_no_call_waits_while_there_is_room(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = of(memory_store, 6000)
    held = asyncio.Event()
    run = memory_store.scripts.run

    async def slow(*args: Any, **options: Any) -> Any:
        await held.wait()
        return await run(*args, **options)

    monkeypatch.setattr(memory_store.scripts, "run", slow)
    for number in range(60):
        window = await asyncio.wait_for(windows.take(CALLER), 1)
        assert window.remaining == 6000 - number - 1
    waits = asyncio.ensure_future(windows.take(CALLER))
    await asyncio.sleep(0)
    assert not waits.done(), "after a portion on credit, calls wait for the store"
    held.set()
    assert (await waits).remaining == 6000 - 61


@pytest.mark.gen_test
async def test_what_was_admitted_on_credit_is_counted(memory_store: Store) -> None:
    windows = of(memory_store, 6000)
    await admitted(windows, 10)
    await settled(windows)
    reply = await memory_store.scripts.run(
        "take_window", {"window": keys.window("introspect", CALLER)}, limit=6000, period=MINUTE
    )
    (own,) = windows.allotments.values()
    assert reply.number("remaining") == 6000 - 10 - own.left - 1


@pytest.mark.gen_test
async def test_a_full_window_is_asked_again_when_it_says_so(memory_store: Store, ticking: Ticking) -> None:
    windows = of(memory_store, 20, ticking)
    assert len(await admitted(windows, 30)) == 20
    memory_store.scripts.observer = lambda name, *_: pytest.fail(f"{name} ran while the window was full")
    assert await admitted(windows, 5) == []
    memory_store.scripts.observer = None
    await memory_store.client.delete(keys.window("introspect", CALLER))
    ticking.now += 60
    assert len(await admitted(windows, 30)) == 20


@pytest.mark.gen_test
async def test_an_old_portion_adds_nothing_to_a_later_window(memory_store: Store, ticking: Ticking) -> None:
    windows = of(memory_store, 600, ticking)
    await windows.take(CALLER)
    await settled(windows)
    assert windows.allotments[CALLER].left > 0
    ticking.now += 60
    await memory_store.client.delete(keys.window("introspect", CALLER))
    assert len(await admitted(windows, 700)) == 600


@pytest.mark.gen_test
async def test_callers_have_windows_of_their_own(memory_store: Store) -> None:
    windows = of(memory_store, 5)
    assert len(await admitted(windows, 9)) == 5
    assert (await windows.take("another")).remaining == 4


@pytest.mark.gen_test
async def test_what_is_kept_of_callers_is_bounded(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CALLERS", 3)
    windows = of(memory_store, 100)
    for number in range(9):
        await windows.take(f"caller-{number}")
    assert list(windows.allotments) == ["caller-6", "caller-7", "caller-8"]
    await settled(windows)


@pytest.mark.gen_test
async def test_a_lower_limit_holds_from_the_next_portion_on(memory_store: Store) -> None:
    windows = of(memory_store, 1000)
    await windows.take(CALLER)
    await settled(windows)
    windows.group = replace(windows.group, limit=20)
    assert len(await admitted(windows, 50)) <= 20


def test_a_caller_begins_on_credit() -> None:
    assert Allotment() == Allotment(left=0, remaining=None)
