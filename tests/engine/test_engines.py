"""The test tools themselves: fakeredis's clock moves, and engines restart after every kind of end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import fakeredis
import pytest
import redis

from tests.support.processes.engines import Engine, FakeClock, valkey

TIME = "return tonumber(redis.call('TIME')[1])"
EXPIRE_AT = "local t = redis.call('TIME') return redis.call('PEXPIREAT', KEYS[1], t[1] * 1000 + ARGV[1])"


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    with FakeClock() as clock:
        yield clock


@pytest.fixture
def client(clock: FakeClock) -> fakeredis.FakeRedis:
    return fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,)))


def seconds(client: fakeredis.FakeRedis) -> list[int]:
    """The time as the command has it and as a script has it."""
    now = client.time()
    return [now[0], client.eval(TIME, 0)]


def test_time_follows_the_clock_in_commands_and_scripts(clock: FakeClock, client: fakeredis.FakeRedis) -> None:
    assert seconds(client) == pytest.approx([time.time()] * 2, abs=2)
    clock.advance(3600)
    assert seconds(client) == pytest.approx([time.time() + 3600] * 2, abs=2)
    clock.back(7200)
    assert seconds(client) == pytest.approx([time.time() - 3600] * 2, abs=2)


def test_expiries_follow_the_clock(clock: FakeClock, client: fakeredis.FakeRedis) -> None:
    client.set("k", "v", px=30_000)
    client.hset("h", "f", "v")
    assert client.eval(EXPIRE_AT, 1, "h", 30_000) == 1
    clock.advance(20)
    assert 9_000 < client.pttl("k") <= 10_000
    assert 9_000 < client.eval("return redis.call('PTTL', 'h')", 0) <= 10_000
    clock.back(20)
    assert client.pttl("k") > 29_000
    clock.advance(30.1)
    assert client.get("k") is None
    assert client.eval("return redis.call('EXISTS', 'h')", 0) == 0


def test_streams_follow_the_clock(clock: FakeClock, client: fakeredis.FakeRedis) -> None:
    clock.advance(3600)
    entry: Any = client.xadd("s", {"f": "v"})
    assert int(entry.partition(b"-")[0]) / 1000 == pytest.approx(time.time() + 3600, abs=2)


def test_the_clock_is_restored() -> None:
    server = fakeredis.FakeServer(version=(7,))
    with FakeClock() as clock:
        clock.advance(3600)
    assert seconds(fakeredis.FakeRedis(server=server)) == pytest.approx([time.time()] * 2, abs=2)


@pytest.mark.parametrize("end", [pytest.param(Engine.stop, id="stopped"), pytest.param(Engine.kill, id="killed")])
def test_an_append_only_engine_keeps_its_data(end: Callable[[Engine], None]) -> None:
    with valkey(append_only=True) as engine:
        with engine.client() as client:
            client.set("k", "kept")
        end(engine)
        with engine.client() as client, pytest.raises(redis.ConnectionError):
            client.ping()
        engine.start()
        with engine.client() as client:
            assert client.get("k") == b"kept"
        directory = engine.directory
    assert not directory.exists()


REFUSED = {
    "late = redis.call('SET', KEYS[1], ARGV[1])": "global variables: late",
    "early = 1; redis.call('SET', KEYS[1], ARGV[1])": "global variables: early",
    "redis.call('NOSUCH', KEYS[1])": "nosuch",
    "return (": "unexpected symbol",
    "error('said by a script')": "said by a script",
}


def test_quicker_lua_refuses_what_fakeredis_refuses() -> None:
    for _ in ("compiled", "known"):
        client = fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,)))
        assert isinstance(client.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, "other", "value"), bytes)
        for script, complaint in REFUSED.items():
            with pytest.raises(redis.ResponseError, match=complaint):
                client.eval(script, 1, script, "value")
            client = fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,)))
    with pytest.raises(redis.ResponseError, match="early"):
        client.eval("early = 1; redis.call('SET', KEYS[1], ARGV[1])", 1, "key", "value")
    assert client.exists("key") == 0  # refused before the command
