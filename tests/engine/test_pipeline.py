"""Scripts on few connections: batching per loop turn, losses, timeouts and cancelled calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, NoScriptError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from store.engine import pipeline
from store.engine.connect import connect
from store.engine.pipeline import PipelinedConnection
from tests.support.processes.engines import DroppingProxy, Engine, valkey

ECHO = "return ARGV[1]"
COUNT = "return redis.call('INCR', KEYS[1])"


@pytest.fixture
def mortal() -> Iterator[Engine]:
    """The test's own Valkey, which may be stopped and frozen."""
    with valkey() as engine:
        yield engine


@contextlib.asynccontextmanager
async def connection_to(url: str, timeout: float = 5.0) -> AsyncIterator[PipelinedConnection]:
    client = await connect(url)
    connection = PipelinedConnection(client.connection_pool.make_connection, timeout)
    try:
        yield connection
    finally:
        await connection.close()
        await client.aclose()


async def connections(engine: Engine) -> int:
    """The number of our connections that the server has."""
    with engine.client() as direct:
        return sum(client["name"] == "latchkey" for client in direct.client_list())


@pytest.mark.gen_test
async def test_each_call_gets_its_own_answer(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as connection:
        answers = await asyncio.gather(*(connection.call(b"EVAL", ECHO, 0, f"{n}") for n in range(500)))
        assert answers == [b"%d" % n for n in range(500)]
        assert await connections(valkey_engine) == 1


class Noted:
    """A transport, and what is written on it. uvloop's take no method of ours."""

    def __init__(self, transport: asyncio.Transport | None) -> None:
        self.transport = transport
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Notes and writes."""
        self.written.append(data)
        assert self.transport is not None
        self.transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


@pytest.mark.gen_test
async def test_calls_of_one_loop_turn_are_one_write(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as connection:
        await connection.call(b"PING")
        noted: Any = Noted(connection._transport)
        connection._transport = noted
        await asyncio.gather(*(connection.call(b"EVAL", ECHO, 0, "x") for _ in range(50)))
        assert len(noted.written) == 1


@pytest.mark.gen_test
async def test_an_answer_larger_than_one_read_is_reassembled(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as connection:
        large = b"\x00\xff" * 2**20
        answers = await asyncio.gather(connection.call(b"EVAL", ECHO, 0, large), connection.call(b"PING"))
        assert [*answers] == [large, b"PONG"]


@pytest.mark.gen_test
async def test_a_server_error_reaches_only_its_call(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as connection:
        found = await asyncio.gather(
            connection.call(b"EVALSHA", "0" * 40, 0),
            connection.call(b"NONSENSE"),
            connection.call(b"PING"),
            return_exceptions=True,
        )
        assert [type(answer) for answer in found] == [NoScriptError, ResponseError, bytes]


@pytest.mark.gen_test
async def test_many_commands_have_their_answers_and_errors_in_their_places(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as connection:
        given = [(b"ECHO", "1"), (b"NOSUCH",), (b"ECHO", "3")]
        one, wrong, three = await connection.answers(given)
        assert (one, type(wrong), three) == (b"1", ResponseError, b"3")
        assert await connection.answers([]) == []
        asked = asyncio.ensure_future(connection.answers([(b"ECHO", "4")] * 9))
        await asyncio.sleep(0)
        asked.cancel()
        assert await connection.answers([(b"ECHO", "5")]) == [b"5"]


@pytest.mark.gen_test
async def test_a_cancelled_call_does_not_shift_answers(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as connection:
        waiting = [asyncio.ensure_future(connection.call(b"EVAL", ECHO, 0, f"{n}")) for n in range(10)]
        for gone in waiting[::2]:
            gone.cancel()
        assert await asyncio.gather(*waiting[1::2]) == [b"%d" % n for n in range(1, 10, 2)]
        assert await connection.call(b"PING") == b"PONG"


@pytest.mark.gen_test
async def test_calls_on_a_broken_connection_fail_and_are_not_resent(valkey_engine: Engine) -> None:
    with valkey_engine.client() as direct, DroppingProxy(valkey_engine) as proxy:
        direct.flushall()
        async with connection_to(proxy.url) as connection:
            await connection.call(b"PING")
            proxy.drop_reply("EVAL")
            with pytest.raises(RedisConnectionError):
                await connection.call(b"EVAL", COUNT, 1, "n")
            assert direct.get("n") == b"1"
            assert await connection.call(b"EVAL", COUNT, 1, "n") == 2


@pytest.mark.gen_test
async def test_a_call_made_during_a_break_uses_the_next_connection(valkey_engine: Engine) -> None:
    with DroppingProxy(valkey_engine) as proxy:
        async with connection_to(proxy.url) as connection:
            await connection.call(b"PING")
            proxy.drop_request("EVAL")
            lost = asyncio.ensure_future(connection.call(b"EVAL", ECHO, 0, "lost"))
            made: list[asyncio.Future[bytes]] = []
            lost.add_done_callback(
                lambda _: made.append(asyncio.ensure_future(connection.call(b"EVAL", ECHO, 0, "made")))
            )
            with pytest.raises(RedisConnectionError):
                await lost
            assert await made[0] == b"made"


@pytest.mark.gen_test
async def test_an_unsent_call_uses_the_next_connection(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url) as connection:
        await connection.call(b"PING")
        sent = connection.call(b"EVAL", ECHO, 0, "sent")
        await asyncio.sleep(0)
        gathered = connection.call(b"EVAL", ECHO, 0, "gathered")
        connection.drop("another server is the primary")
        with pytest.raises(RedisConnectionError):
            await sent
        assert await asyncio.wait_for(gathered, 5) == b"gathered"


@pytest.mark.gen_test
async def test_lost_calls_do_not_time_out_the_next_connection(valkey_engine: Engine) -> None:
    with DroppingProxy(valkey_engine) as proxy:
        async with connection_to(proxy.url) as connection:
            await connection.call(b"PING")
            proxy.drop_reply("EVAL")
            lost = [connection.call(b"EVAL", ECHO, 0, "lost") for _ in range(5)]
            found = await asyncio.gather(*lost, return_exceptions=True)
            assert [type(error) for error in found] == [RedisConnectionError] * 5
            assert await connection.call(b"PING") == b"PONG"
            assert connection._watch is not None
            connection._watch.cancel()
            connection._look()  # as its timer would
            assert connection._watch is None, (
                "it would wait for answers of the connection that is gone, and cut this one"
            )


@pytest.mark.gen_test
async def test_a_restart_of_an_idle_store_costs_no_call(mortal: Engine) -> None:
    async with connection_to(mortal.url) as connection:
        await connection.call(b"PING")
        mortal.restart()
        assert await connection.call(b"PING") == b"PONG"


@pytest.mark.gen_test
async def test_calls_fail_at_once_during_an_outage_and_work_afterwards(mortal: Engine) -> None:
    async with connection_to(mortal.url) as connection:
        mortal.stop()
        for _ in range(3):
            with pytest.raises((RedisConnectionError, OSError)):
                await connection.call(b"PING")
        mortal.start()
        assert await connection.call(b"PING") == b"PONG"


@pytest.mark.gen_test
async def test_an_unresponsive_store_fails_every_call_in_time(mortal: Engine) -> None:
    async with connection_to(mortal.url, timeout=0.2) as connection:
        await connection.call(b"PING")
        mortal.pause()
        calls = [connection.call(b"PING") for _ in range(5)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in found] == [RedisTimeoutError] * 5
        # The kernel takes the next connection; nobody behind it answers.
        with pytest.raises(RedisTimeoutError):
            await connection.call(b"PING")
        mortal.resume()
        assert await connection.call(b"PING") == b"PONG"


@pytest.mark.gen_test
async def test_a_steady_stream_of_answers_is_never_cut_off(valkey_engine: Engine) -> None:
    async with connection_to(valkey_engine.url, timeout=0.15) as connection:
        ends = asyncio.get_running_loop().time() + 0.5
        while asyncio.get_running_loop().time() < ends:
            assert await connection.call(b"PING") == b"PONG"
        assert await connections(valkey_engine) == 1


@pytest.mark.gen_test
async def test_calls_on_a_connection_are_bounded(mortal: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MOST_CALLS", 3)
    async with connection_to(mortal.url) as connection:
        found = await asyncio.gather(*(connection.call(b"PING") for _ in range(5)), return_exceptions=True)
        assert found[:3] == [b"PONG"] * 3
        assert [type(error) for error in found[3:]] == [RedisConnectionError] * 2


@pytest.mark.gen_test
async def test_a_malformed_answer_ends_the_connection() -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(1000):
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with connection_to(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=1) as connection:
        with pytest.raises((RedisConnectionError, InvalidResponse)):
            await connection.call(b"PING")
    await ended.wait()
    server.close()
    await server.wait_closed()


@pytest.mark.gen_test
async def test_a_server_that_hangs_up_after_the_greeting_fails_the_call() -> None:
    greeted = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal greeted
        greeted += 1
        received = b""
        while b"LIB-VER" not in received:  # the end of what redis-py says first
            received += await reader.read(1000)
            writer.write(b"+OK\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with connection_to(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=1) as connection:
        with pytest.raises((RedisConnectionError, InvalidResponse)):
            await asyncio.wait_for(connection.call(b"PING"), 2)
    assert greeted == 1
    server.close()
    await server.wait_closed()


@pytest.mark.gen_test
async def test_closing_fails_waiting_calls(mortal: Engine) -> None:
    client: Redis = await connect(mortal.url)
    connection = PipelinedConnection(client.connection_pool.make_connection, 5.0)
    await connection.call(b"PING")
    mortal.pause()
    waiting = connection.call(b"PING")
    await asyncio.sleep(0)
    await connection.close()
    with pytest.raises(RedisConnectionError):
        await waiting
    mortal.resume()
    await client.aclose()
