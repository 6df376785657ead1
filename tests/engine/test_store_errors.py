"""Driver errors from real servers become ours without repeating keys or arguments."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Iterator

import pytest
import redis
from redis.asyncio import Redis
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    MaxConnectionsError,
    NoScriptError,
    RedisClusterException,
    RedisError,
    ResponseError,
    SlotNotCoveredError,
    TryAgainError,
)

from store.engine.connect import connect
from store.errors import StoreError, StoreUnavailable, translate, wrapped
from tests.support.lists.offenders import each
from tests.support.processes.engines import Engine, valkey

KEY, ARGUMENT = "{abc}:secret-key", "secret-argument"
WRITE = "redis.call('SET', KEYS[1], ARGV[1])"
BROKEN = "local x = nil\nreturn x .. KEYS[1] .. ARGV[1]"
TELLTALE = "return redis.error_reply('ERR no ' .. KEYS[1] .. ARGV[1])"


@pytest.fixture(scope="module")
def shared() -> Iterator[Engine]:
    with valkey() as engine:
        yield engine


@pytest.fixture
def admin(shared: Engine) -> Iterator[redis.Redis]:
    """A client that puts the server into a state and back afterwards."""
    with shared.client() as client:
        yield client
        client.config_set("maxmemory", 0)
        client.config_set("min-replicas-to-write", 0)
        client.config_set("replica-serve-stale-data", "yes")
        client.slaveof()
        client.flushall()


def fails(url: str, script: str) -> StoreError:
    """The error of running `script`. Checks that the error does not contain the arguments."""

    async def scenario() -> None:
        async with await connect(url) as client:
            await run(client, script)

    async def run(client: Redis, script: str) -> None:
        with wrapped():
            await client.eval(script, 1, KEY, ARGUMENT)

    with pytest.raises(StoreError) as raised:
        asyncio.run(scenario())
    shown = "".join(traceback.format_exception(raised.value))
    assert "secret" not in shown
    assert "secret" not in str(raised.value)
    return raised.value


def replica(admin: redis.Redis) -> None:
    admin.slaveof("127.0.0.1", 1)


def silent_replica(admin: redis.Redis) -> None:
    admin.config_set("replica-serve-stale-data", "no")
    admin.slaveof("127.0.0.1", 1)


def full(admin: redis.Redis) -> None:
    admin.config_set("maxmemory", 1)


def lonely(admin: redis.Redis) -> None:
    admin.config_set("min-replicas-to-write", 1)


@pytest.mark.trap(24)
@pytest.mark.parametrize(
    ("state", "word"),
    [
        pytest.param(replica, "READONLY", id="a replica"),
        pytest.param(silent_replica, "MASTERDOWN", id="a replica cut off from its primary"),
        pytest.param(full, "OOM", id="out of memory"),
        pytest.param(lonely, "NOREPLICAS", id="too few replicas"),
    ],
)
def test_a_server_that_cannot_write_is_unavailable(
    shared: Engine, admin: redis.Redis, state: Callable[[redis.Redis], None], word: str
) -> None:
    state(admin)
    error = fails(shared.url, WRITE)
    assert isinstance(error, StoreUnavailable)
    assert word in str(error)


@pytest.mark.trap(24)
@pytest.mark.parametrize(
    ("script", "shown"),
    [
        pytest.param(BROKEN, "line 2", id="a script that fails"),
        pytest.param(TELLTALE, "ERR", id="an error that repeats what it was given"),
        pytest.param("redis.call('SADD', KEYS[1], '1') redis.call('GET', KEYS[1])", "WRONGTYPE", id="the wrong type"),
        pytest.param("this is not Lua", "ResponseError", id="no script at all"),
    ],
)
def test_a_bug_is_a_store_error_that_names_its_place(
    shared: Engine, admin: redis.Redis, script: str, shown: str
) -> None:
    error = fails(shared.url, script)
    assert not isinstance(error, StoreUnavailable)
    assert shown in str(error)


def test_a_cluster_without_its_slots_is_unavailable() -> None:
    with valkey(options=("--cluster-enabled", "yes", "--port", "0")) as engine:
        error = fails(engine.url, WRITE)
        assert isinstance(error, StoreUnavailable)
        assert "CLUSTERDOWN" in str(error)


def test_a_server_busy_with_a_long_script_is_unavailable() -> None:
    async def scenario() -> None:
        slow, client = await connect(engine.url), await connect(engine.url)
        hog = asyncio.create_task(hang(slow))
        deadline = time.monotonic() + 5
        error: StoreError | None = None
        while error is None and time.monotonic() < deadline:
            try:
                with wrapped():
                    await client.get(KEY)
            except StoreError as exc:
                error = exc
        assert isinstance(error, StoreUnavailable)
        assert "BUSY" in str(error)
        await client.script_kill()
        await asyncio.gather(hog, return_exceptions=True)
        await slow.aclose()
        await client.aclose()

    async def hang(client: Redis) -> None:
        await client.eval("while true do end", 0)

    with valkey(options=("--busy-reply-threshold", "10")) as engine:
        asyncio.run(scenario())


GONE = "attempted to access a non local key in a cluster node script:"
DOWN = "attempted to execute a write command while the cluster is down and readonly"
UNREACHABLE = RedisClusterException("Redis Cluster cannot be connected")
UNREACHABLE.__cause__ = OSError("refused")


@each(
    ("error", "unavailable"),
    [
        pytest.param(ConnectionRefusedError(111, "secret"), True, id="an error of the system"),
        pytest.param(TimeoutError(), True, id="asyncio's timeout"),
        pytest.param(redis.ConnectionError("secret"), True, id="a lost connection"),
        pytest.param(redis.TimeoutError("secret"), True, id="a late reply"),
        pytest.param(BusyLoadingError("secret"), True, id="loading"),
        pytest.param(MaxConnectionsError("secret"), True, id="an exhausted pool"),
        pytest.param(ResponseError("MISCONF secret"), True, id="snapshots that fail"),
        pytest.param(ClusterDownError("secret"), True, id="a cluster that is down"),
        pytest.param(ClusterError("secret"), True, id="a cluster that redirects without end"),
        pytest.param(TryAgainError("secret"), True, id="a slot on the move"),
        pytest.param(ResponseError(f"ERR Script {GONE} secret"), True, id="a key of a script that has moved, in Redis"),
        pytest.param(ResponseError(f"ERR {GONE.capitalize()} secret"), True, id="the same in Valkey"),
        pytest.param(ResponseError(f"ERR Script {DOWN} secret"), True, id="a script while a cluster is down"),
        pytest.param(SlotNotCoveredError("secret"), True, id="a slot nobody serves"),
        pytest.param(UNREACHABLE, True, id="a cluster none of whose nodes can be reached"),
        pytest.param(RedisClusterException("secret"), False, id="keys of several slots"),
        pytest.param(NoScriptError("secret"), False, id="an unknown script"),
        pytest.param(ResponseError("secret is MISCONF"), False, id="a word that is not the first"),
        pytest.param(RedisError("secret"), False, id="anything else"),
    ],
)
def test_each_kind_of_error(error: Exception, unavailable: bool) -> None:
    ours = translate(error)
    assert ours is not None
    assert isinstance(ours, StoreUnavailable) == unavailable
    assert "secret" not in str(ours)


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), asyncio.CancelledError(), KeyboardInterrupt()])
def test_foreign_errors_pass_unchanged(error: BaseException) -> None:
    assert translate(error) is None
    with pytest.raises(type(error)) as raised, wrapped():
        raise error
    assert raised.value is error
