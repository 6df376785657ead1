"""Events of honest apps, next to accounts with receivers and name servers that never answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from outbound.address_policy import AddressPolicy, Resolver, asking
from outbound.webhooks.poster import WebhookSender
from outbound.webhooks.posting import Poster
from settings.declared import Settings
from store.wiring import Store
from tests.support.browser.mailbox import until
from tests.support.http.receiver import Receiver
from tests.support.processes.engines import FakeClock
from tests.support.store.webhook_app import Hooked, engine_on, signs_logouts

pytestmark = pytest.mark.gen_test(timeout=60)

APPS = Settings().apps_per_person


async def hangs(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@pytest.fixture
def slow(io_loop: IOLoop) -> Iterator[Receiver]:
    """Accepts every connection and answers none."""
    made = Receiver(hangs)
    io_loop.run_sync(lambda: made.start("0.0.0.0"))
    yield made
    io_loop.run_sync(made.close)


@contextlib.asynccontextmanager
async def posting(store: Store, most: int, **limits: float) -> AsyncIterator[WebhookSender]:
    engine = engine_on(store, most=most, **limits)
    engine.start()
    try:
        yield engine
    finally:
        await engine.close(0)


async def hostile(store: Store, slow: Receiver, accounts: int, apps: int, events: int, host: str = "") -> None:
    """Accounts whose apps all have waiting events; each app has its own host, or all share one."""
    for account in range(accounts):
        for number in range(apps):
            where = host or f"127.0.{account + 1}.{number + 1}"
            app = await Hooked.make(store, f"evil-{account}-{number}", slow, owner=f"evil-{account}", host=where)
            await app.tell(events)


async def honest(store: Store, **whose: Any) -> None:
    """Another person's event is posted. No slow receiver frees its place during the test."""
    app = await Hooked.make(store, "honest", **whose)
    await app.tell()
    await app.receiver.count(1)
    await app.receiver.close()


@pytest.mark.parametrize("whose", [{"owner": "ada"}, {}], ids=["of another owner", "of the operator"])
async def test_accounts_with_slow_receivers_delay_nobody_else(
    memory_store: Store, slow: Receiver, whose: dict[str, str]
) -> None:
    await hostile(memory_store, slow, 5, APPS, 4)
    async with posting(memory_store, 64, whole=60, connect=60) as engine:
        await slow.count(48)
        assert slow.most_at_once <= 60, "places stay free for those who hold none"
        await honest(memory_store, **whose)
        assert engine.queue > 0


async def test_accounts_on_one_host_delay_nobody_else(memory_store: Store, slow: Receiver) -> None:
    await hostile(memory_store, slow, 3, 5, 4, "127.0.0.1")
    async with posting(memory_store, 64, whole=60, connect=60):
        await slow.count(8)
        await honest(memory_store, owner="ada")


async def test_one_accounts_waiting_events_leave_room_for_others(memory_store: Store, slow: Receiver) -> None:
    await hostile(memory_store, slow, 1, 4, 40)
    async with posting(memory_store, 8, whole=60, connect=60):  # 128 events may be taken
        await slow.count(1)
        await asyncio.sleep(0.3)
        await honest(memory_store, owner="ada")


async def test_deleted_apps_count_for_their_owner(memory_store: Store) -> None:
    app = await Hooked.make(memory_store, owner="ada")
    before = await memory_store.webhooks.target("web")
    await memory_store.apps.begin_deletion("web", by="ada")
    after = await memory_store.webhooks.target("web")
    assert before
    assert after
    assert (before.payer, after.payer) == ("ada", "ada")
    operators = await Hooked.make(memory_store, "operators", app.receiver)
    target = await memory_store.webhooks.target(operators.client_id)
    assert target
    assert target.payer == "operators"
    await app.receiver.close()


class NameServers:
    """Replaces the system's lookups: names that begin with "dead" have no answer before the end."""

    def __init__(self) -> None:
        self.looked_up: list[str] = []
        self.over = threading.Event()

    def look_up(self, host: str, port: int, **how: Any) -> list[Any]:
        self.looked_up.append(host)
        if host.startswith("dead"):
            self.over.wait(20)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServers]:
    made = NameServers()
    monkeypatch.setattr(socket, "getaddrinfo", made.look_up)
    yield made
    made.over.set()


def lookup_for(payer: str, resolver: Resolver, host: str) -> asyncio.Task[Any]:
    """A lookup for an owner."""

    async def look_up() -> Any:
        asking.set(payer)
        return await resolver.resolve(host, 443)

    return asyncio.ensure_future(look_up())


async def test_accounts_with_dead_name_servers_leave_threads_for_others(names: NameServers) -> None:
    resolver = Resolver(16)
    dead = [lookup_for(f"evil-{one}", resolver, f"dead-{one}-{number}") for one in range(5) for number in range(APPS)]
    await asyncio.sleep(0.1)
    assert len(names.looked_up) < 16
    async with asyncio.timeout(10):
        assert len(await lookup_for("ada", resolver, "somebody")) == 1
    names.over.set()
    await asyncio.gather(*dead)


async def test_an_abandoned_lookup_takes_no_thread(names: NameServers) -> None:
    receiver = Receiver()
    await receiver.start()
    resolver = Resolver(4, waits=0.5)
    poster = Poster(AddressPolicy(loopback=True), 16, connect=0.5, resolver=resolver)
    asking.set("evil")
    url = f"http://{{}}.example:{receiver.port}/"
    gave_up = await asyncio.gather(*(poster.post(url.format(f"dead-{n}"), {}, b"") for n in range(5)))
    assert {one.status for one in gave_up} == {None}
    # A look-up is dropped a moment after its post has given up.
    threads = vars(resolver)["_semaphore"]
    await until(lambda: not threads._waiting)
    names.over.set()
    await until(lambda: not threads._taken)
    patient = Poster(AddressPolicy(loopback=True), 16, resolver=resolver)
    assert (await patient.post(url.format("alive"), {}, b"")).delivered
    assert sorted(names.looked_up) == ["alive.example", "dead-0.example"]
    for one in (poster, patient):
        await one.close()
    await receiver.close()


async def test_name_lookups_count_for_the_apps_owner(memory_store: Store, clock: FakeClock) -> None:
    found: list[str] = []

    class Noting(Resolver):
        async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_UNSPEC) -> Any:
            found.append(asking.get())
            raise OSError("no name")

    poster = Poster(AddressPolicy(), 4, resolver=Noting())
    signs = signs_logouts(memory_store)
    engine = WebhookSender(memory_store.deliveries, memory_store.webhooks.target, poster, 4, signs)
    for owner in ("ada", "bea"):
        app = await Hooked.make(memory_store, owner=owner, client_id=owner)
        await memory_store.apps.update(owner, webhook_url=f"https://{owner}.example/")
        await app.tell()
        await app.receiver.close()
    engine.start()
    async with asyncio.timeout(5):
        while len(found) < 2:
            await asyncio.sleep(0.01)
    assert sorted(found) == ["ada", "bea"]
    await engine.close(1)
