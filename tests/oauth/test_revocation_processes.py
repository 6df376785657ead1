"""Revocations apply on every process; servers that must not share a store do not start."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from store import keys
from store.crypto.keyring import KeyRing
from store.engine.background import background
from store.wiring import Store
from tests.support.http.driver import App, Service, json_of, send
from tests.support.processes import two_servers
from tests.support.processes.engines import DroppingProxy, valkey
from tests.support.processes.processes import Pair, at_once, opened, refused, shared

pytestmark = pytest.mark.slow

within_a_minute = pytest.mark.gen_test(timeout=60)
SLACK = 3.0  # seconds for the requests that find out; without announcements a server takes 5 more
two, service = two_servers.two, two_servers.service


class DeafProxy(DroppingProxy):
    """A proxy that keeps a subscription open but delivers nothing, as after a silent connection loss."""

    async def _pass_back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cutting: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            if b"\r\nmessage\r\n" not in data:
                writer.write(data)
        writer.close()


@dataclass
class Target:
    """A person and an app with live tokens, one of which is about to lose its rights."""

    store: Store
    app: App
    email: str
    tokens: dict[str, str]

    async def disable_app(self) -> None:
        await self.store.apps.update(self.app.client_id, status="disabled")
        assert await self.store.apps.active(self.app.client_id) is None, "at once on the process that did it"

    async def delete_app(self) -> None:
        await self.store.apps.delete(self.app.client_id)
        assert await self.store.apps.active(self.app.client_id) is None, "at once on the process that did it"

    async def disable_person(self) -> None:
        await self.store.operator.set_status(self.email, "disabled")

    async def delete_person(self) -> None:
        await self.store.operator.delete(self.email)

    async def drop_secret(self) -> None:
        await self.store.apps.rotate_secret(self.app.client_id, drop_old=True)
        known = await self.store.apps.active(self.app.client_id)
        assert known
        assert not known.secret_matches(self.app.secret or ""), "at once on the process that did it"

    async def reads(self, server: str) -> int:
        """The status for the access token."""
        answer = await App(server, self.app.client_id, None).userinfo(self.tokens["access_token"])
        return answer.code

    async def authenticates(self, server: str) -> int:
        """The status for the secret."""
        app = App(server, self.app.client_id, self.app.secret)
        answer = await app.revoke("invented", client_id=app.client_id, client_secret=app.secret or "")
        return answer.code

    async def refused_after(self, look: Callable[[str], Awaitable[int]], server: str) -> tuple[float, int]:
        """The seconds until the server refuses, and the number of earlier successes."""
        loop = asyncio.get_running_loop()
        began, accepted = loop.time(), 0
        while (status := await look(server)) == 200:
            accepted += 1
            assert loop.time() - began < 10
            await asyncio.sleep(0.1)
        assert status == 401
        return loop.time() - began, accepted


Change = Callable[[Target], Awaitable[None]]
Look = Callable[[Target, str], Awaitable[int]]
CASES: list[tuple[str, Change, Look]] = [
    ("an app that was disabled", Target.disable_app, Target.reads),
    ("an app that was deleted", Target.delete_app, Target.reads),
    ("a person who was disabled", Target.disable_person, Target.reads),
    ("a person who was deleted", Target.delete_person, Target.reads),
    ("a secret that was rotated out", Target.drop_secret, Target.authenticates),
]


async def target(two: Pair, store: Store) -> Target:
    """A new person with tokens for a new app; the app's registration is cached in this process."""
    made = await two.service(store)
    app = await store.apps.active(made.web.client_id)
    assert app
    tokens = await store.tokens.mint(made.ada, app, ("profile",))
    return Target(store, made.web, two.email, {"access_token": tokens.access_token, "refresh": tokens.refresh_token})


async def subscribed(two: Pair, count: int) -> None:
    """Waits until this many servers follow the registrations."""
    with two.engine.client() as client:
        while dict(client.pubsub_numsub(keys.APPS_CHANNEL))[keys.APPS_CHANNEL.encode()] < count:
            await asyncio.sleep(0.02)


@within_a_minute
@pytest.mark.trap(35)
@pytest.mark.trap(10)
@pytest.mark.parametrize(("change", "look"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
async def test_revoked_tokens_are_refused_at_once_on_every_process(
    service: Service, two: Pair, change: Change, look: Look
) -> None:
    await subscribed(two, 2)
    aim = await target(two, service.store)
    servers = [server.here for server in two.servers]
    assert [await look(aim, server) for server in servers] == [200, 200]
    await change(aim)
    for server in servers:
        seconds, _ = await aim.refused_after(lambda url: look(aim, url), server)
        assert seconds < SLACK
        # Neither does the refresh token with the secret of before.
        answer = await App(server, aim.app.client_id, aim.app.secret).refresh(aim.tokens["refresh"])
        assert json_of(answer)["error"] in ("invalid_client", "invalid_grant")


async def subscriptions(store: Store) -> set[str]:
    """The connections with a subscription."""
    return {client["id"] for client in await store.client.client_list(_type="pubsub")}


@contextlib.asynccontextmanager
async def cut_subscriptions(store: Store, *, spare: set[str]) -> AsyncIterator[None]:
    """Kills every other subscription at the same time."""

    async def cut() -> None:
        while True:
            for one in await subscriptions(store) - spare:
                await store.client.client_kill_filter(_id=one)
            await asyncio.sleep(0.01)

    async with background(cut()):
        yield


async def outcomes(aim: Target, change: Change, look: Look, servers: list[str]) -> list[tuple[float, int]]:
    """What `refused_after` says of each server, all of which have just accepted."""
    assert [await look(aim, server) for server in servers] == [200] * len(servers)
    await change(aim)
    return await at_once(aim.refused_after(lambda url: look(aim, url), server) for server in servers)


@within_a_minute
@pytest.mark.trap(35)
async def test_without_pub_sub_changes_apply_within_5_seconds(service: Service, two: Pair) -> None:
    store = service.store
    await subscribed(two, 2)
    before = await subscriptions(store)
    with DeafProxy(two.engine) as proxy, shared(two.keys.ring.render(), "--redis-url", proxy.url) as deaf:
        servers = [deaf.ready().here, *(server.here for server in two.servers)]
        await subscribed(two, 3)
        async with cut_subscriptions(store, spare=await subscriptions(store) - before):
            aims = [await target(two, store) for _ in CASES]
            found = await at_once(
                outcomes(aim, change, look, servers) for aim, (_, change, look) in zip(aims, CASES, strict=True)
            )
        for (name, change, _), times in zip(CASES, found, strict=True):
            assert max(seconds for seconds, _ in times) < 5 + SLACK, name
            if change in (Target.disable_person, Target.delete_person):
                assert [accepted for _, accepted in times] == [0] * 3, name
        assert found[0][0][1] > 10, "the deaf server heard of it: this proved nothing"
        await subscribed(two, 3)


@within_a_minute
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 10, 20])
async def test_following_registrations_can_be_cancelled_anywhere(two: Pair, turns: int) -> None:
    async with opened(two.engine.url, two.keys) as store:
        leaving = asyncio.ensure_future(leave_after(store, turns))
        done, _ = await asyncio.wait([leaving], timeout=5)
        assert done


async def leave_after(store: Store, turns: int) -> None:
    """Follows the registrations for some turns of the event loop, then cancels while connecting."""
    async with store.announcements.following():
        for _ in range(turns):
            await asyncio.sleep(0)


@within_a_minute
@pytest.mark.trap(36)
async def test_any_number_of_stale_or_forged_tokens_locks_nobody_out(service: Service, two: Pair) -> None:
    aim = await target(two, service.store)
    other = await service.add_app("other-app")
    registered = await service.store.apps.active("other-app")
    person = await service.store.operator.find(aim.email)
    assert registered
    stale = await service.store.tokens.mint(person.user, registered, ("profile",))
    assert [(await other.refresh(stale.refresh_token)).code for _ in range(2)] == [200, 400]
    apps, others = two.split(aim.app), two.split(other)
    forged = "lk_rt_" + stale.refresh_token[6:-8] + "AAAAAAAA"
    requests: list[Awaitable[Any]] = []
    for number in range(60):
        app, theirs = apps[number % 2], others[number % 2]
        requests += [app.refresh(forged), theirs.refresh(stale.refresh_token), theirs.userinfo(stale.access_token)]
        requests += [theirs.exchange("lk_ac_" + forged[6:]), theirs.userinfo("lk_at_" + forged[6:])]
        requests.append(app.token(client_secret="wrong", grant_type="refresh_token", refresh_token=forged))
    statuses = {answer.code for answer in await at_once(requests)}
    assert statuses == {400, 401, 429}
    browser = await service.signed_in(aim.email)
    for app in apps:
        answer = await app.userinfo(aim.tokens["access_token"])
        assert answer.code == 200
        rotated = await app.refresh(aim.tokens["refresh"])
        assert rotated.code == 200
        aim.tokens["refresh"] = json_of(rotated)["refresh_token"]
        code = await service.code(app, browser, scope="profile", prompt="consent")
        assert (await app.exchange(code)).code == 200


@pytest.mark.trap(38)
@pytest.mark.parametrize(
    ("key_id", "words"),
    [
        pytest.param(1, "the secret key with id 1 is not the one", id="another key under the same id"),
        pytest.param(2, "none of the configured secret keys opens what this store holds", id="another key"),
    ],
)
def test_a_second_host_with_other_keys_does_not_start(two: Pair, key_id: int, words: str) -> None:
    ring = KeyRing.generate(key_id)
    status, log = refused("--redis-url", two.engine.url, environment={"LATCHKEY_SECRET_KEYS": ring})
    assert status == 1
    assert words in log
    assert "Traceback" not in log
    assert ring.partition(":")[2] not in log


@pytest.mark.trap(38)
def test_a_shared_store_without_keys_is_refused() -> None:
    status, log = refused("--redis-url", "redis://localhost:6379")
    assert status == 2
    assert log.startswith("latchkey: secret_keys must be set")
    assert log.count("\n") == 1


def test_a_store_that_may_evict_is_refused() -> None:
    with valkey(options=("--maxmemory-policy", "allkeys-lru")) as engine:
        ring = KeyRing.generate(1)
        status, log = refused("--redis-url", engine.url, environment={"LATCHKEY_SECRET_KEYS": ring})
    assert status == 1
    assert "allkeys-lru" in log
    assert "maxmemory-policy noeviction" in log


def test_an_in_memory_store_is_refused_with_several_workers() -> None:
    status, log = refused("--redis-url", "memory", "--workers", "2")
    assert status == 2
    assert log.startswith("latchkey: workers must be 1 with redis_url memory")
    assert log.count("\n") == 1


@within_a_minute
@pytest.mark.trap(35)
async def test_a_session_of_a_disabled_person_ends_on_every_server(service: Service, two: Pair) -> None:
    browser = await service.signed_in(two.email)
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
    assert [(await send(server.here + "/account", headers=cookie)).code for server in two.servers] == [200, 200]
    await service.store.operator.set_status(two.email, "disabled")
    for server in two.servers:
        answer = await send(server.here + "/account", headers=cookie)
        assert (answer.code, answer.headers["Location"].partition("?")[0]) == (303, "/signin")
