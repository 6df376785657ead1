"""Answers that wait for replicas: batching, and the effect of a silent replica on calls and reads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError

from handlers.core.site import Site
from store.credits.prices import TokenCounts
from store.crypto.keyring import Keys
from store.engine import pipeline
from store.engine.connect import acknowledged, check_store, connect
from store.engine.replicas import CONNECTIONS, Wait, WaitingConnections
from store.errors import StartupError, StoreUnavailable, Unacknowledged
from tests.conftest import OpenStore
from tests.engine.test_cluster import RIGHTS
from tests.engine.test_pipeline import Noted
from tests.repo.test_layers import ROOT
from tests.support.http.driver import Service, json_of
from tests.support.processes.engines import DroppingProxy, Engine
from tests.support.processes.primary_and_replica import Followed
from tests.support.store.credit_spender import DOLLAR, Spender, a_world
from tests.support.store.lost_answers import store_on
from tests.support.store.world import VISITOR, World, refusal_of

COUNT = "return redis.call('INCR', KEYS[1])"
READ = "return redis.call('GET', KEYS[1])"
PATIENT, SHORT = Wait(1, 5.0), Wait(1, 0.3)

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.fixture(scope="module")
def pair() -> Iterator[Followed]:
    """A primary and a replica for all tests of this module that leave both running."""
    with Followed() as pair:
        yield pair


@pytest.fixture
def mortal() -> Iterator[Followed]:
    """The test's own primary and replica."""
    with Followed() as pair:
        yield pair


@pytest.fixture
def followed(pair: Followed) -> Iterator[Followed]:
    """An empty store with a replica, which answers again when the test is over."""
    pair.primary.empty()
    pair.wait_for_replica()
    yield pair
    pair.replica.resume()
    pair.wait_for_replica()


@contextlib.asynccontextmanager
async def waiting_on(url: str, wait: Wait = PATIENT, timeout: float = 5.0) -> AsyncIterator[WaitingConnections]:
    client = await connect(url)
    made = WaitingConnections(client.connection_pool.make_connection, timeout, wait)
    try:
        yield made
    finally:
        await made.close()
        await client.aclose()


async def test_calls_of_one_loop_turn_share_one_wait_and_one_write(followed: Followed) -> None:
    async with waiting_on(followed.url) as waiting:
        await waiting.call(b"PING")
        noted: Any = Noted(waiting.connections[0]._transport)
        waiting.connections[0]._transport = noted
        followed.forget()
        answers = await asyncio.gather(*(waiting.call(b"EVAL", COUNT, 1, "n") for _ in range(50)))
        assert answers == list(range(1, 51))
        assert len(noted.written) == 1
        assert noted.written[0].endswith(b"$4\r\nWAIT\r\n$1\r\n1\r\n$4\r\n5000\r\n")
        assert (followed.calls_of("eval"), followed.calls_of("wait")) == (50, 1)


async def test_acknowledged_writes_are_on_the_replica(followed: Followed) -> None:
    async with waiting_on(followed.url) as waiting:
        with followed.replica.client() as replica:
            for number in range(1, 101):
                assert await waiting.call(b"EVAL", COUNT, 1, "n") == number
                assert replica.get("n") == b"%d" % number


async def test_a_silent_replica_times_out_and_delays_nothing_else(followed: Followed) -> None:
    clock = asyncio.get_running_loop().time
    client: Any = await connect(followed.url)
    async with waiting_on(followed.url, SHORT) as waiting:
        await asyncio.gather(waiting.call(b"PING"), client.eval(COUNT, 1, "other"))
        followed.replica.pause()
        followed.forget()
        began, calls = clock(), []
        for _ in range(3 * CONNECTIONS):
            calls.append(waiting.call(b"EVAL", COUNT, 1, "n"))
            await asyncio.sleep(0)  # a turn for each, and so a connection for each of the first
        for _ in range(20):
            begun = clock()
            assert await client.eval(READ, 1, "other") == b"1"
            assert clock() - begun < SHORT.seconds / 2
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(answer) for answer in found] == [Unacknowledged] * len(calls)
        assert str(found[0]) == "0 of 1 replicas confirmed it within 0.3 s"
        # Two rounds: a group on each connection, and then all that gathered meanwhile, with one WAIT.
        assert clock() - began < 4 * SHORT.seconds
        assert followed.calls_of("wait") == CONNECTIONS + 1
        assert await client.eval(READ, 1, "n") == b"%d" % len(calls)
        followed.replica.resume()
        followed.wait_for_replica()
        assert await waiting.call(b"EVAL", COUNT, 1, "n") == len(calls) + 1
    await client.aclose()


async def test_one_replica_is_not_enough_where_two_must_confirm(followed: Followed) -> None:
    async with waiting_on(followed.url, Wait(2, 0.05)) as waiting:
        with pytest.raises(Unacknowledged, match=r"^1 of 2 replicas confirmed it within 0\.05 s$"):
            await waiting.call(b"EVAL", COUNT, 1, "n")


async def test_refusals_and_lost_answers_are_reported_as_without_waiting(followed: Followed) -> None:
    with DroppingProxy(followed.primary) as proxy:
        async with waiting_on(proxy.url) as waiting:
            found = await asyncio.gather(
                waiting.call(b"EVALSHA", "0" * 40, 0), waiting.call(b"PING"), return_exceptions=True
            )
            assert isinstance(found[0], NoScriptError)
            assert found[1] == b"PONG"
            # The answer came, the word of the replicas did not.
            proxy.drop_reply("WAIT")
            with pytest.raises(RedisConnectionError):
                await waiting.call(b"EVAL", COUNT, 1, "n")
            assert proxy.seen["EVAL"] == 1
            assert await waiting.call(b"EVAL", COUNT, 1, "n") == 2


async def test_a_demoted_primary_confirms_nothing(mortal: Followed) -> None:
    async with waiting_on(mortal.url) as waiting:
        await waiting.call(b"PING")
        mortal.replica.pause()
        call = waiting.call(b"EVAL", COUNT, 1, "n")
        with mortal.primary.client() as client:
            while client.info("clients")["blocked_clients"] == 0:
                await asyncio.sleep(0.01)
            client.execute_command("REPLICAOF", "127.0.0.1", 1)
        with pytest.raises((Unacknowledged, RedisConnectionError)):
            await call


async def test_cancelled_and_excess_calls_harm_no_others(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MOST_CALLS", 5)
    async with waiting_on(followed.url) as waiting:
        calls = [waiting.call(b"EVAL", COUNT, 1, "n") for _ in range(6)]
        calls[0].cancel()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert found[1:4] == [2, 3, 4]
        assert [type(error) for error in found[4:]] == [RedisConnectionError] * 2
        assert waiting.is_idle
        assert await waiting.call(b"EVAL", COUNT, 1, "n") == 5


async def test_closing_fails_waiting_calls(followed: Followed) -> None:
    async with waiting_on(followed.url) as waiting:
        await waiting.call(b"PING")
        followed.replica.pause()
        sent = waiting.call(b"EVAL", COUNT, 1, "n")
        await asyncio.sleep(0.05)
        gathered = waiting.call(b"EVAL", COUNT, 1, "n")
        await waiting.close()
        for call in (sent, gathered):
            with pytest.raises(RedisConnectionError):
                await call


async def outcome_of(call: Awaitable[Any]) -> str:
    """The outcome of a call: done, unconfirmed, or the code of a refusal."""
    try:
        return await refusal_of(call) or "done"
    except Unacknowledged:
        return "unconfirmed"


async def test_an_unconfirmed_rotation_has_happened(followed: Followed, keys: Keys) -> None:
    store = store_on(await connect(followed.url), keys, SHORT)
    strict, lenient = await World.make(store), await World.make(store, refresh_retry_seconds=60)
    first, second = await strict.tokens(), await lenient.tokens()
    followed.replica.pause()
    for world, tokens in ((strict, first), (lenient, second)):
        with pytest.raises(
            Unacknowledged, match=r"^rotate_refresh ran, but 0 of 1 replicas confirmed it within 0.3 s$"
        ):
            await world.refresh(tokens.refresh_token)
        assert await store.client.hget(world.rows(tokens.refresh_token)["family"], "generation") == b"1"
    followed.replica.resume()
    followed.wait_for_replica()
    # The old token is a used one: without a retry window it ends the pair (SPEC 3.1).
    assert await outcome_of(strict.refresh(first.refresh_token)) == "invalid_grant"
    again = await lenient.refresh(second.refresh_token)
    assert await lenient.lives(again.access_token)
    await store.close()


@pytest.mark.trap(32)
async def test_after_a_lost_confirmation_only_idempotent_scripts_are_resent(followed: Followed, keys: Keys) -> None:
    with DroppingProxy(followed.primary) as proxy:
        store = store_on(await connect(proxy.url), keys, PATIENT)
        world = await World.make(store)
        tokens = await world.refresh((await world.tokens()).refresh_token)
        await store.credits.grant(world.user, DOLLAR, key="first")

        def sent() -> int:
            return proxy.seen["EVALSHA"] + proxy.seen["EVAL"]

        before = sent()
        proxy.drop_reply("WAIT")
        with pytest.raises(StoreUnavailable):
            await world.refresh(tokens.refresh_token)
        assert sent() == before + 1
        assert await store.client.hget(world.rows(tokens.refresh_token)["family"], "generation") == b"2"
        proxy.drop_reply("WAIT")
        await store.credits.grant(world.user, DOLLAR, key="second")
        assert sent() == before + 3
        assert (await store.credits.show(world.user)).paid == 2 * DOLLAR
        await store.close()


async def sign_out(world: World) -> Callable[[], Awaitable[Any]]:
    return lambda: world.store.sessions.end(world.session, VISITOR)


async def end_another(world: World) -> Callable[[], Awaitable[Any]]:
    other = await world.sign_in()
    return lambda: world.store.sessions.end_other(world.session, other.session_id, VISITOR)


async def revoke(world: World) -> Callable[[], Awaitable[Any]]:
    tokens = await world.tokens()
    return lambda: world.store.tokens.revoke(world.app, tokens.refresh_token)


async def revoke_access(world: World) -> Callable[[], Awaitable[Any]]:
    tokens = await world.tokens()
    return lambda: world.store.tokens.revoke(world.app, tokens.access_token)


async def disable(world: World) -> Callable[[], Awaitable[Any]]:
    return lambda: world.store.operator.set_status(world.email, "disabled")


async def credit(world: World) -> Callable[[], Awaitable[Any]]:
    return lambda: world.store.credits.grant(world.user, DOLLAR, reason="A payment", key="payment-17")


async def settle(world: World) -> Callable[[], Awaitable[Any]]:
    await world.store.credits.grant(world.user, DOLLAR)
    hold = await (await Spender.make(world)).hold(10, 10)
    return lambda: world.store.calls.settle(hold, TokenCounts(10, 5))


async def release(world: World) -> Callable[[], Awaitable[Any]]:
    await world.store.credits.grant(world.user, DOLLAR)
    hold = await (await Spender.make(world)).hold(10, 10)
    return lambda: world.store.calls.release(hold)


async def delete(world: World) -> Callable[[], Awaitable[Any]]:
    return lambda: world.store.people.delete(world.user)


async def disconnect(world: World) -> Callable[[], Awaitable[Any]]:
    await world.tokens()
    return lambda: world.store.grants.revoke(world.session, world.app.client_id, VISITOR)


@pytest.mark.parametrize(
    ("prepare", "last"),
    [
        *((one, "done") for one in (sign_out, end_another, revoke, revoke_access, disable)),
        *((one, "done") for one in (credit, settle, release, delete)),
        (disconnect, "not_found"),
    ],
)
async def test_repeating_an_unconfirmed_call_is_not_confirmed_either(
    followed: Followed, keys: Keys, prepare: Callable[[World], Awaitable[Callable[[], Awaitable[Any]]]], last: str
) -> None:
    """Nothing is left to do, and WAIT does not cover other connections' writes."""
    store = store_on(await connect(followed.url), keys, SHORT)
    world = await a_world(store)
    again = await prepare(world)
    followed.replica.pause()
    assert await outcome_of(again()) == "unconfirmed"
    world.store = other = store_on(await connect(followed.url), keys, SHORT)
    assert await outcome_of(again()) == "unconfirmed"
    followed.replica.resume()
    followed.wait_for_replica()
    assert await outcome_of(again()) == last
    for one in (store, other):
        await one.close()


class TestOverHttp:
    @pytest.fixture
    def site(self, followed: Followed, open_store: OpenStore, base_url: str) -> Site:
        """A server that waits for the replica."""
        return Site(open_store(followed.url, wait=SHORT), base_url)

    @pytest.mark.trap(12)
    @pytest.mark.trap(24)
    async def test_unconfirmed_writes_are_503_and_reads_keep_working(
        self, service: Service, followed: Followed, caplog: pytest.LogCaptureFixture
    ) -> None:
        web, clock = service.web, asyncio.get_running_loop().time
        held, other, reading = await service.tokens(), await service.tokens(), await service.tokens()
        assert (await web.revoke(other["refresh_token"])).code == 200
        followed.replica.pause()

        async def read() -> float:
            began = clock()
            assert (await web.userinfo(reading["access_token"])).code == 200
            return clock() - began

        await read()
        began = clock()
        calls = asyncio.gather(web.refresh(held["refresh_token"]), web.revoke(held["access_token"]))
        assert max([await read() for _ in range(3)]) < SHORT.seconds / 2
        answers = await calls
        assert clock() - began < 4 * SHORT.seconds
        assert [answer.code for answer in answers] == [503, 503]
        assert {json_of(answer)["error"] for answer in answers} == {"temporarily_unavailable"}
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in answers)
        said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        for script in ("rotate_refresh", "revoke_token"):
            assert any(f"{script} ran, but 0 of 1 replicas confirmed it within 0.3 s" in line for line in said)
        secrets = [held["refresh_token"], held["access_token"], str(web.secret)]
        assert not any(secret in line for line in said for secret in secrets)


async def test_too_few_replicas_are_logged_and_a_store_without_wait_is_refused(
    followed: Followed, valkey_engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(url: str, replicas: int) -> None:
        async with contextlib.aclosing(await connect(url)) as client:
            await check_store(client, url, Wait(replicas, 0.5))

    await check(followed.url, 1)
    assert caplog.records == []
    for url, found, wanted in ((followed.url, 1, 2), (valkey_engine.url, 0, 1)):
        caplog.clear()
        await check(url, wanted)
        assert f"has {found} replicas connected, and wait_replicas is {wanted}" in caplog.text
    rights = RIGHTS.search((ROOT / "docs" / "security.md").read_text())
    assert rights
    with followed.primary.client() as admin:
        admin.execute_command("ACL", "SETUSER", "latchkey", "reset", "on", ">pw", *rights[1].split())
        admin.execute_command("ACL", "SETUSER", "barred", "reset", "on", ">pw", "~*", "&*", "+@all", "-wait")
    await check(followed.url + "?username=latchkey&password=pw", 1)
    with pytest.raises(StartupError, match="does not let Latchkey wait for replicas: allow this user WAIT"):
        await check(followed.url + "?username=barred&password=pw", 1)


async def test_an_in_memory_store_has_no_replicas() -> None:
    client: Redis = await connect("memory")
    with pytest.raises(StartupError, match="has no replicas"):
        acknowledged(client, PATIENT)
    await client.aclose()
