"""The client's store connection: nothing is sent twice, and closed connections are replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import fakeredis
import pytest
import redis.asyncio
from redis.asyncio import Redis

from dev.lab.ports import free_port
from store.engine.connect import check_store, connect, unix_url
from store.engine.urls import hosts_of
from store.errors import StartupError, StoreUnavailable, wrapped
from tests.support.lists.offenders import each
from tests.support.processes.engines import DroppingProxy, Engine, redis_server, valkey

INCR = "return redis.call('INCR', KEYS[1])"


@pytest.fixture(scope="module")
def shared() -> Iterator[Engine]:
    """One Valkey for the tests that do not stop it."""
    with valkey() as engine:
        yield engine


@pytest.fixture
def engine(shared: Engine) -> Engine:
    with shared.client() as client:
        client.flushall()
    return shared


async def evalsha(client: Redis, script: str, key: str) -> Any:
    return await client.evalsha(await client.script_load(script), 1, key)


async def run_eval(client: Redis, key: str) -> None:
    await client.eval(INCR, 1, key)


async def run_evalsha(client: Redis, key: str) -> None:
    await evalsha(client, INCR, key)


async def run_pipeline(client: Redis, key: str) -> None:
    async with client.pipeline(transaction=False) as pipe:
        pipe.eval(INCR, 1, key)
        await pipe.execute()


async def wait_for_an_item(client: Redis) -> None:
    await client.execute_command("BLPOP", "nothing", 30)


@pytest.mark.trap(32)
@pytest.mark.parametrize(
    ("command", "send"),
    [
        pytest.param("EVAL", run_eval, id="eval"),
        pytest.param("EVALSHA", run_evalsha, id="evalsha"),
        pytest.param("EVAL", run_pipeline, id="in a pipeline"),
    ],
)
def test_a_script_with_a_lost_reply_runs_once(engine: Engine, command: str, send: Callable[..., Any]) -> None:
    async def scenario() -> None:
        client = await connect(proxy.url)
        await client.ping()
        proxy.drop_reply(command)
        with pytest.raises(StoreUnavailable), wrapped():
            await send(client, "k")
        assert await client.mget("k") == [b"1"]  # on a new connection, by itself
        await client.aclose()

    with DroppingProxy(engine) as proxy:
        asyncio.run(scenario())
        assert proxy.seen[command] == 1
        assert proxy.dropped == 1


def test_the_drivers_own_default_would_run_it_again(engine: Engine) -> None:
    async def scenario() -> None:
        async with redis.asyncio.Redis(unix_socket_path=proxy.socket_path) as client:
            proxy.drop_reply("EVAL")
            assert await client.eval(INCR, 1, "k") == 2

    with DroppingProxy(engine) as proxy:
        asyncio.run(scenario())


def test_a_lost_request_did_not_run(engine: Engine) -> None:
    async def scenario() -> None:
        client = await connect(proxy.url)
        proxy.drop_request("EVAL")
        with pytest.raises(StoreUnavailable), wrapped():
            await client.eval(INCR, 1, "k")
        assert await client.exists("k") == 0
        await client.aclose()

    with DroppingProxy(engine) as proxy:
        asyncio.run(scenario())


@pytest.mark.parametrize("tcp", [pytest.param(False, id="unix socket"), pytest.param(True, id="TCP")])
def test_idle_connections_that_the_store_closed_are_replaced(tcp: bool) -> None:
    async def scenario(client: Redis, engine: Engine) -> None:
        for _ in range(20):
            await asyncio.gather(*(client.incr("k") for _ in range(8)))
            with engine.client() as admin:  # blocks the loop, so the client has not read the end of its connections
                admin.client_kill_filter(_type="normal", skipme=True)
            await asyncio.gather(*(client.incr("k") for _ in range(8)))
        assert await client.mget("k") == [b"320"]
        engine.restart()
        assert await client.incr("k") == 1
        engine.kill()
        with pytest.raises(StoreUnavailable), wrapped():
            await client.incr("k")
        engine.start()
        assert await client.incr("k") == 1

    async def run() -> None:
        port = free_port()
        with valkey(options=("--port", str(port)) if tcp else ()) as engine:
            client = await connect(f"redis://127.0.0.1:{port}" if tcp else engine.url)
            await scenario(client, engine)
            await client.aclose()

    asyncio.run(run())


def test_a_frozen_store_times_out_and_its_late_reply_is_dropped() -> None:
    async def scenario(engine: Engine) -> None:
        client = await connect(engine.url, socket_timeout=0.1)
        await client.set("a", "1")
        await client.set("b", "2")
        engine.pause()
        with pytest.raises(StoreUnavailable), wrapped():
            await client.mget("a")
        engine.resume()
        assert await client.mget("b") == [b"2"]
        await client.aclose()

    with valkey() as frozen:
        asyncio.run(scenario(frozen))


def test_a_cancelled_call_leaves_no_reply_for_the_next(engine: Engine) -> None:
    async def scenario() -> None:
        client = await connect(engine.url, max_connections=1)
        await client.set("a", "1")
        await client.set("b", "2")
        call = asyncio.create_task(wait_for_an_item(client))
        await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError), wrapped():
            await call
        assert await client.mget("b", "a") == [b"2", b"1"]
        await client.aclose()

    asyncio.run(scenario())


def test_calls_wait_for_an_exhausted_pool_until_the_timeout(engine: Engine) -> None:
    async def scenario() -> None:
        client = await connect(engine.url, max_connections=2)
        assert sorted(await asyncio.gather(*(client.incr("k") for _ in range(50)))) == list(range(1, 51))
        client.connection_pool.timeout = 0.05  # type: ignore[attr-defined]  # in place of two seconds
        blocked = [asyncio.create_task(wait_for_an_item(client)) for _ in range(2)]
        await asyncio.sleep(0.01)
        with pytest.raises(StoreUnavailable), wrapped():
            await client.mget("k")
        for call in blocked:
            call.cancel()
        await asyncio.gather(*blocked, return_exceptions=True)
        assert await client.mget("k") == [b"50"]
        await client.aclose()

    asyncio.run(scenario())


REPLIES = """
redis.call('HSET', KEYS[1], 'f', '\\255\\0v')
return {'ok', 7, false, {redis.call('HGETALL', KEYS[1]), {}}, redis.call('HGET', KEYS[1], 'none'), ARGV[1]}
"""


@pytest.mark.parametrize("kind", ["memory", "valkey", "redis_server"])
def test_replies_are_plain_bytes_integers_lists_and_none(kind: str) -> None:
    async def scenario(url: str) -> None:
        client = await connect(url)
        sha = await client.script_load(REPLIES)
        reply = await client.evalsha(sha, 1, "h", b"\xfe\x00")
        assert reply == [b"ok", 7, None, [[b"f", b"\xff\x00v"], []], None, b"\xfe\x00"]
        await check_store(client, url)
        await client.aclose()

    if kind == "memory":
        asyncio.run(scenario("memory"))
    else:
        with valkey() if kind == "valkey" else redis_server() as engine:
            asyncio.run(scenario(engine.url))


def test_connections_carry_the_servers_name(engine: Engine) -> None:
    async def scenario() -> None:
        client = await connect(engine.url)
        assert "latchkey" in {entry["name"] for entry in await client.client_list()}
        await client.aclose()

    asyncio.run(scenario())


def test_memory_clients_share_data_only_through_one_server() -> None:
    async def scenario() -> None:
        server = fakeredis.FakeServer(version=(7,))
        one, two = await connect("memory", server=server), await connect("memory", server=server)
        await one.set("k", "v")
        assert await two.get("k") == b"v"
        assert await (await connect("memory")).get("k") is None

    asyncio.run(scenario())


@pytest.mark.trap(24)
@each(
    "url",
    [
        pytest.param("http://u:hunter2@h", id="another scheme"),
        pytest.param("//u:hunter2@h", id="no scheme"),
        pytest.param("redis:u:hunter2@h", id="no slashes"),
        pytest.param("redis://u:hunter2@h:port", id="a port that is no number"),
        pytest.param("redis://u:hunter2/x@h:1", id="a password with a slash"),
        pytest.param("redis://u:hunter2?x@h:1", id="a password with a question mark"),
        pytest.param("redis://u:hunter2@h?retry_on_timeout=yes", id="retries"),
        pytest.param("redis://h?password=hunter2&decode_responses=1", id="decoding"),
        pytest.param("redis://h?ssl_ca_certs=x&password=hunter2", id="TLS options without TLS"),
        pytest.param("rediss://u:hunter2@h?ssl_nonsense=1", id="an option that does not exist"),
        pytest.param("redis://u:hunter2@h?db=one", id="a database that is no number"),
        pytest.param("redis+sentinel://u:hunter2@h,i", id="no service"),
        pytest.param("redis+sentinel://u:hunter2@h,:1/s", id="a sentinel without a host"),
        pytest.param("redis+sentinel://u:hunter2/x@h/s", id="a password with a slash before sentinels"),
        pytest.param("redis+sentinel://h/s?retry=1&sentinel_password=hunter2", id="retries behind sentinels"),
        pytest.param("rediss+sentinel://u:hunter2@h/s?ssl_nonsense=1", id="an option that does not exist there"),
        pytest.param("redis+cluster://u:hunter2@h,i:port", id="a node's port that is no number"),
        pytest.param("redis+cluster://u:hunter2@h/1", id="a database of a cluster"),
        pytest.param("redis+cluster://u:hunter2@h?db=1", id="a database of a cluster as an option"),
        pytest.param("redis+cluster://u:hunter2@h?sentinel_username=x", id="a sentinel's name for a cluster"),
        pytest.param("redis+cluster://u:hunter2@h?ssl_ca_certs=x", id="TLS options of a cluster without TLS"),
        pytest.param("rediss+cluster://u:hunter2@h?ssl_nonsense=1", id="an option that clusters do not have"),
    ],
)
def test_an_unusable_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(StartupError) as refused:
        asyncio.run(connect(url))
    assert "hunter2" not in str(refused.value)
    assert "URL" in str(refused.value)


def test_a_socket_path_with_odd_characters_works_in_the_url() -> None:
    client = asyncio.run(connect(unix_url("/tmp/a b?#%41@é.sock")))
    assert client.connection_pool.connection_kwargs["path"] == "/tmp/a b?#%41@é.sock"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("redis+cluster://a", ([("a", 7)], {}, ""), id="one host without a port"),
        pytest.param(
            "redis+sentinel://us%40er:p%3A%2Fw@[::1]:1,b/main?db=2&sentinel_password=x",
            (
                [("::1", 1), ("b", 7)],
                {"db": 2, "username": "us@er", "password": "p:/w", "sentinel_password": "x"},
                "main",
            ),
            id="everything there is",
        ),
        pytest.param(
            "rediss+cluster://:p,w@a:1,b:2?ssl_check_hostname=no",
            ([("a", 1), ("b", 2)], {"password": "p,w", "ssl": True, "ssl_check_hostname": False}, ""),
            id="TLS, and a password with a comma",
        ),
    ],
)
def test_a_url_may_list_several_hosts(url: str, expected: tuple[list[tuple[str, int]], dict[str, Any], str]) -> None:
    assert hosts_of(url, 7) == expected
