"""Servers watched by sentinels: the server finds its primary, and the next one after a failover."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from dev.lab.ports import HOST, free_ports
from handlers.core.site import Site
from store.crypto.keyring import Keys
from store.engine import sentinel
from store.engine.client import pool_options
from store.engine.connect import check_store, connect
from store.engine.replicas import Wait
from store.engine.sentinel import Sentinels
from store.errors import StartupError, StoreUnavailable, wrapped
from tests.apps.test_app_cache import until
from tests.conftest import OpenStore
from tests.support.http.driver import Service
from tests.support.processes.clusters import SERVICE, Replicated
from tests.support.processes.engines import DroppingProxy, Engine, valkey
from tests.support.processes.whole_service import check_server_and_commands
from tests.support.store.load import acknowledged, at_work, check_survival, employ, until_each
from tests.support.store.lost_answers import store_on

INCR = "return redis.call('INCR', KEYS[1])"

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]


@pytest.fixture
def site(watched: Replicated, open_store: OpenStore, base_url: str) -> Site:
    watched.primary().empty()
    return Site(open_store(watched.url, timeout=1.0), base_url)


@pytest.mark.parametrize("how", ["by command", "killed", "frozen"])
async def test_the_server_recovers_from_a_failover_by_itself(
    service: Service, watched: Replicated, keys: Keys, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Only writes between the replica's confirmation and our last contact with the old primary may be missing: see
    tests/engine/test_failover.py."""
    workers = await employ(service, monkeypatch, refresh_retry_seconds=60)
    other = store_on(await connect(watched.url, socket_timeout=1.0), keys)
    old, new = watched.primary(), watched.replica()
    async with other.announcements.following(), at_work(workers):
        await until_each(workers, 2)
        safe = acknowledged(workers)
        await asyncio.to_thread(watched.confirm, old)
        await until_each(workers, 1)
        await asyncio.to_thread({"by command": watched.fail_over, "killed": old.kill, "frozen": old.pause}[how])
        await asyncio.to_thread(watched.wait_for_primary, new)
        if how == "by command":
            # The old one stays a primary for some ten seconds more, and would take whatever it is sent.
            await asyncio.to_thread(watched.wait_for_departure, old)
        open_to_loss = acknowledged(workers)
        await until_each(workers, 2)
        # The former primary comes back: at first it believes that it still is one.
        await asyncio.to_thread({"by command": old.resume, "killed": old.start, "frozen": old.resume}[how])
        await until_each(workers, 1)
        await asyncio.to_thread(watched.restore, old)
        await until_each(workers, 1)
        assert await other.apps.find("worker") is not None
        await service.store.apps.update("worker", name="Renamed")
        await until(lambda: "worker" not in other.apps.cache.kept)
    await other.close()
    await check_survival(workers, safe, open_to_loss)


async def test_a_hanging_sentinel_only_costs_time(watched: Replicated) -> None:
    watched.sentinels[0].pause()
    try:
        client = await connect(watched.url, socket_timeout=2.0)
        await check_store(client, watched.url)
        assert await client.eval(INCR, 1, "n") == 1
        await client.aclose()
    finally:
        watched.sentinels[0].resume()


class SlowSentinel:
    """redis-py's requests to a slow or ignorant sentinel."""

    def __init__(self, *, knows: bool) -> None:
        self.knows = knows

    async def sentinel_masters(self) -> dict[str, dict[str, object]]:
        """The primaries, by service."""
        await asyncio.sleep(0.01)
        if not self.knows:
            raise RedisConnectionError("away")
        healthy = {"is_master": True, "is_sdown": False, "is_odown": False, "num-other-sentinels": 2}
        return {SERVICE: {"ip": HOST, "port": 7000, **healthy}}


@pytest.mark.parametrize("at_once", [1, 2, 5])
async def test_concurrent_lookups_forget_no_sentinel(at_once: int) -> None:
    manager: Any = Sentinels([])  # type: ignore[no-untyped-call]  # what it inherits has no types
    clients = [SlowSentinel(knows=False), SlowSentinel(knows=True), SlowSentinel(knows=True)]
    manager.sentinels = list(clients)
    found = await asyncio.gather(*(manager.discover_master(SERVICE) for _ in range(at_once)))
    assert found == [(HOST, 7000)] * at_once
    assert manager.sentinels[0] is clients[1], "who knew is asked first"
    assert set(manager.sentinels) == set(clients)


class Telling:
    """The sentinels as a client sees them: the current primary, and announcements of a change. They are silent until
    `say`."""

    def __init__(self, primary: str) -> None:
        self.primary = primary
        self.sentinels = [self]
        self.say = asyncio.Event()

    async def discover_master(self, service: str) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.primary)
        assert parts.hostname
        assert parts.port
        return parts.hostname, parts.port

    def pubsub(self) -> Self:
        """A subscription."""
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        pass

    async def subscribe(self, channel: str) -> None:
        """To the word of a change."""
        assert channel == "+switch-master"

    async def get_message(self, *, ignore_subscribe_messages: bool, timeout: float) -> None:
        """Comes with the word, or when the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.say.wait()
                self.say.clear()

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("announced", [pytest.param(True, id="announced"), pytest.param(False, id="asked for")])
async def test_a_replaced_primary_is_left_even_if_it_accepts_writes(
    valkey_engine: Engine, monkeypatch: pytest.MonkeyPatch, announced: bool
) -> None:
    monkeypatch.setattr(sentinel, "LOOK_SECONDS", 30.0 if announced else 0.02)
    first, second = free_ports(2)
    with valkey() as other, DroppingProxy(valkey_engine, first) as old, DroppingProxy(other, second) as new:
        telling: Any = Telling(old.url)
        options = pool_options(5.0, 4)
        pool = sentinel._PrimaryPool(SERVICE, telling, **options)  # type: ignore[no-untyped-call]  # its base has no types
        client = sentinel._PrimaryClient.on(pool, 5.0)
        waits = client.acknowledged(Wait(0, 0.1))
        for _ in range(2):
            await asyncio.gather(client.eval(INCR, 1, "n"), waits.eval(INCR, 1, "m"))
        assert (old.seen["EVAL"], new.seen["EVAL"]) == (4, 0)
        telling.primary = new.url
        if announced:
            telling.say.set()
        await until(lambda: not any(pipelined.is_open for pipelined in client.pipelined_connections))
        await asyncio.gather(client.eval(INCR, 1, "n"), waits.eval(INCR, 1, "m"))
        assert (old.seen["EVAL"], new.seen["EVAL"]) == (4, 2)
        await client.aclose()


async def test_a_read_only_error_closes_the_connection(watched: Replicated) -> None:
    client = await connect(watched.replica().url)
    with pytest.raises(StoreUnavailable), wrapped():
        await client.eval(INCR, 1, "n")
    assert not client.pipelined.is_open  # type: ignore[attr-defined]  # a client that pipelines
    await client.aclose()


@pytest.mark.trap(24)
@pytest.mark.parametrize(
    ("user", "options", "service", "reason"),
    [
        pytest.param("app:pw", "sentinel_username=guard&sentinel_password=gw", SERVICE, None, id="both let it in"),
        pytest.param("app:pw", "", SERVICE, None, id="sentinels that ask for no name"),
        pytest.param("app:no", "", SERVICE, "cannot be reached", id="the primary does not"),
        pytest.param("app:pw", "sentinel_username=guard&sentinel_password=no", SERVICE, "No master", id="they do not"),
        pytest.param("app:pw", "", "another", "No master found for 'another'", id="a set that they do not know"),
    ],
)
async def test_sentinel_names_and_passwords(
    watched: Replicated, user: str, options: str, service: str, reason: str | None
) -> None:
    for servers, name, password in ((watched.servers, "app", "pw"), (watched.sentinels, "guard", "gw")):
        for one in servers:
            with one.client() as admin:
                admin.execute_command("ACL", "SETUSER", name, "reset", "on", f">{password}", "~*", "&*", "+@all")
    hosts = ",".join(f"{HOST}:{one.port}" for one in watched.sentinels)
    url = f"redis+sentinel://{user}@{hosts}/{service}?{options}"
    client = await connect(url, socket_timeout=2.0)
    try:
        if reason is None:
            await check_store(client, url)
        else:
            with pytest.raises(StartupError, match=reason) as refused:
                await check_store(client, url)
            assert "pw" not in str(refused.value)
            assert "no@" not in str(refused.value)
    finally:
        await client.aclose()


async def test_the_server_and_its_commands_work_with_sentinels(watched: Replicated, tmp_path: Path) -> None:
    watched.primary().empty()
    await check_server_and_commands(watched.url, tmp_path)
