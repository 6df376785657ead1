"""The sliding window: every rule of its description at every phase, and the Lua compared with a model."""

from __future__ import annotations

import json
import random as generator
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import keys
from store.engine.script_source import load_scripts
from store.engine.scripts import Scripts
from store.lifetimes import OAUTH
from store.refused import Refused
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.windows import DRIVER, INCLUDES, LuaWindow, Model

pytestmark = pytest.mark.slow

START = 1_800_000_000_000
STEP, MINUTE = 3_000, 60_000

even = st.sampled_from([20, 60, 100, 300])  # multiples of the 20 steps, as every limit of SPEC 8.1 is
any_limit = st.integers(1, 321)
phase = st.integers(0, MINUTE - 1)
brisk = settings(max_examples=20, deadline=None)


def spread(limit: int, seconds: int, start: int) -> list[int]:
    """The times of requests at exactly the limit."""
    return [start + number * MINUTE // limit for number in range(limit * seconds // 60)]


@pytest.mark.spec("8.1")
@brisk
@given(even, phase)
def test_a_sustained_rate_at_the_limit_is_never_refused(limit: int, offset: int) -> None:
    window = LuaWindow(limit)
    for now in spread(limit, 150, START + offset):
        assert window.take(now).admitted


@brisk
@given(even, phase, st.randoms(use_true_random=False))
def test_a_sustained_rate_with_jitter_is_never_refused(limit: int, offset: int, random: generator.Random) -> None:
    window = LuaWindow(limit)
    jittered = [now + random.randint(-STEP, STEP) for now in spread(limit, 150, START + offset)]
    assert all(window.take(now).admitted for now in sorted(jittered))


@pytest.mark.spec("8.1")
@brisk
@given(any_limit, phase, st.integers(0, STEP - 1))
def test_a_short_burst_gets_exactly_the_limit_and_remaining_counts_down_by_one(
    limit: int, offset: int, length: int
) -> None:
    window = LuaWindow(limit)
    answers = [window.take(START + offset + number * length // (limit + 5)) for number in range(limit + 5)]
    assert [answer.remaining for answer in answers[:limit]] == list(range(limit - 1, -1, -1))
    assert [answer.admitted for answer in answers] == [True] * limit + [False] * 5


@pytest.mark.spec("8.1")
@brisk
@given(even, phase, st.integers(0, STEP - 1), st.data())
def test_a_second_full_burst_within_the_minute_is_refused_part_way_through(
    limit: int, offset: int, first: int, data: st.DataObject
) -> None:
    window, start = LuaWindow(limit), START + offset
    for number in range(limit):
        assert window.take(start + number * first // limit).admitted
    begins = data.draw(st.integers(start + first + STEP, start + MINUTE - 2), label="second burst begins")
    length = data.draw(st.integers(0, start + MINUTE - 1 - begins), label="and takes, in ms")
    admitted = [window.take(begins + number * length // limit).admitted for number in range(limit)]
    assert admitted[0], "admitted in part"
    assert not all(admitted), "then refused"


@brisk
@given(even, phase, st.lists(st.integers(0, 4_000), min_size=1, max_size=40), st.integers(0, 30_000))
def test_a_request_after_retry_after_is_admitted(limit: int, offset: int, gaps: list[int], later: int) -> None:
    window, now = LuaWindow(limit), START + offset
    for _ in range(limit):
        window.take(now)
    now += later
    for gap in gaps:
        now += gap
        answer = window.take(now)
        while answer.admitted:
            answer = window.take(now)
        now += answer.retry * 1000
        assert window.take(now).admitted


@brisk
@given(any_limit, phase, st.integers(0, MINUTE))
def test_retry_after_is_whole_seconds_until_the_next_place_rounded_up(limit: int, offset: int, later: int) -> None:
    window, anchor = LuaWindow(limit), START + offset
    for _ in range(limit):
        window.take(anchor)
    now = anchor + later
    while (answer := window.take(now)).admitted:
        pass
    # By step k, floor(k * limit / 20) have left: the next place is free at the first step by which one more has.
    left = (now - anchor) // STEP * limit // 20
    step = next(k for k in range((now - anchor) // STEP + 1, 1000) if k * limit // 20 > left)
    wait = anchor + step * STEP - now
    if later < MINUTE:
        assert answer.retry == -(-wait // 1000)
    assert answer.retry >= 1


@brisk
@given(even, phase, st.integers(1, 10**9), st.integers(0, 59_999), st.integers(1, 400))
def test_stepping_the_clock_back_never_refills_the_window(
    limit: int, offset: int, back: int, after: int, burst: int
) -> None:
    window, start = LuaWindow(limit), START + offset
    for _ in range(min(burst, limit)):
        window.take(start)
    before = window.take(start + after)
    now = start + after - back
    answer = window.take(now)
    free = before.remaining
    assert answer.admitted == (free > 0)
    assert answer.remaining == max(0, free - 1)
    while answer.admitted:
        answer = window.take(now)
    assert answer.retry * 1000 <= STEP
    assert window.take(now + answer.retry * 1000).admitted


@brisk
@given(any_limit, phase, st.lists(st.integers(-MINUTE, MINUTE), max_size=30))
def test_no_clock_steps_exceed_the_limit(limit: int, offset: int, moves: list[int]) -> None:
    """However the clock jumps back, a full window stays full at that instant."""
    window, now = LuaWindow(limit), START + offset
    for _ in range(limit):
        window.take(now)
    last = now
    for move in moves:
        now = last - abs(move)
        assert not window.take(now).admitted
        last = now


@brisk
@given(any_limit, phase, st.integers(0, MINUTE), st.integers(1, 50))
def test_a_refused_request_does_not_count(limit: int, offset: int, later: int, tries: int) -> None:
    window, start = LuaWindow(limit), START + offset
    for _ in range(limit):
        window.take(start)
    while window.take(start + later).admitted:
        pass
    row, expires, writes = window.row, window.expires, window.writes
    answers = {window.take(start + later) for _ in range(tries)}
    assert len(answers) == 1
    assert (window.row, window.expires, window.writes) == (row, expires, writes)


@pytest.mark.spec("8.2")
@brisk
@given(any_limit, phase, st.lists(st.integers(0, 5_000), min_size=1, max_size=60))
def test_reset_is_when_the_window_is_empty_and_its_key_expires(limit: int, offset: int, gaps: list[int]) -> None:
    window, now = LuaWindow(limit), START + offset
    for gap in gaps:
        now += gap
        answer = window.take(now)
    assert answer.reset == window.expires
    assert now < answer.reset <= now + MINUTE + STEP
    full = limit - 1
    spared = LuaWindow(limit)
    spared.row, spared.expires = window.row, window.expires
    assert window.take(answer.reset).remaining == full, "empty at that instant"
    if limit % 20 == 0:
        assert spared.take(answer.reset - 1).remaining < full, "not before"


@brisk
@given(any_limit, phase, st.lists(st.integers(0, 5_000), min_size=1, max_size=60), st.integers(0, MINUTE))
def test_an_empty_row_equals_a_missing_row(limit: int, offset: int, gaps: list[int], later: int) -> None:
    """A key that outlived its expiry, as on a replica that lags, changes nothing."""
    window, now = LuaWindow(limit), START + offset
    for gap in gaps:
        now += gap
        reset = window.take(now).reset
    window.expires = 10**15
    fresh = LuaWindow(limit)
    assert [window.take(reset + later) for _ in range(3)] == [fresh.take(reset + later) for _ in range(3)]


@settings(max_examples=60, deadline=None)
@given(
    any_limit,
    phase,
    st.lists(st.tuples(st.integers(-8_000, 20_000) | st.just(0), st.integers(1, 40)), min_size=1, max_size=40),
)
def test_the_lua_and_the_model_agree_step_by_step(limit: int, offset: int, moves: list[tuple[int, int]]) -> None:
    window, model, now = LuaWindow(limit), Model(limit), START + offset
    for move, times in moves:
        now += move
        for _ in range(times):
            assert window.take(now) == model.take(now)


@pytest.mark.gen_test
async def test_all_engines_give_the_same_results(store: Store, tmp_path: Path) -> None:
    """The test sets the times, so a real engine's answers are predictable."""
    shutil.copytree(INCLUDES, tmp_path / "include")
    (tmp_path / "drive.lua").write_text(DRIVER)
    seconds, _ = await store.client.time()
    now = seconds * 1000 + 10**7  # ahead of the engine's clock, or the key would expire
    times = [now + at for at in (*[0] * 110, *range(2_000, 9_000, 70), 62_000, 61_000, 125_000, *[10**8] * 120)]
    scripts = Scripts(store.client, load_scripts(tmp_path))
    reply = await scripts.run("drive", {"window": "{w}"}, limit=100, times=json.dumps(times))
    model = Model(100)
    expected = [model.take(at) for at in times]
    assert reply.rows("answers") == [[int(a.admitted), a.remaining, a.reset, a.retry] for a in expected]
    assert await store.client.pexpiretime("{w}") == expected[-1].reset


@pytest.mark.gen_test
@pytest.mark.spec("8.1")
async def test_the_window_of_a_store_follows_the_clock(clock: FakeClock, memory_store: Store) -> None:
    for number in range(OAUTH.limit):
        assert (await memory_store.limits.unknown_user("192.0.2.1")).remaining == OAUTH.limit - 1 - number
    with pytest.raises(Refused) as refused:
        await memory_store.limits.unknown_user("192.0.2.1")
    assert refused.value.code == "rate_limited"
    assert refused.value.retry_after is not None
    assert 1 <= refused.value.retry_after <= 3
    assert await memory_store.client.exists(keys.network("address", "192.0.2.0/24", "192.0.2.1"))
    clock.advance(refused.value.retry_after)
    await memory_store.limits.unknown_user("192.0.2.1")
    clock.advance(63)
    assert not await memory_store.client.exists(keys.network("address", "192.0.2.0/24", "192.0.2.1"))
