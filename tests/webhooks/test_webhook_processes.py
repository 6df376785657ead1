"""Webhooks of real servers: from a click to a receiver, with two processes, and when one dies."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
from tornado.ioloop import IOLoop

from store import keys
from store.crypto.keyring import KeyRing
from store.errors import StoreUnavailable
from store.lifetimes import GRACE
from store.webhooks.deliveries import WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.http.driver import App, Service, send
from tests.support.http.receiver import Receiver, answering
from tests.support.processes import two_servers
from tests.support.processes.engines import Engine, valkey
from tests.support.processes.processes import QUICK, Pair, Server, at_once, opened, shared
from tests.support.store.webhook_app import until

pytestmark = pytest.mark.slow

within_a_minute = pytest.mark.gen_test(timeout=60)
two, service = two_servers.two, two_servers.service


@pytest.fixture
def receiver(io_loop: IOLoop) -> Iterator[Receiver]:
    made = Receiver()
    io_loop.run_sync(made.start)
    yield made
    io_loop.run_sync(made.close)


async def hook(store: Store, app: App, receiver: Receiver) -> str:
    """The signing secret of the app, whose events go to the receiver from now on."""
    _, secret = await store.webhooks.set_url(app.client_id, receiver.url)
    assert secret
    return secret


async def disconnect(service: Service, app: App, email: str) -> None:
    """Disconnects as a person does on the account page."""
    browser = await service.signed_in(email)
    action = f"/account/apps/{app.client_id}/revoke"
    assert (await browser.submit(await browser.get("/account/apps"), action)).code == 303


@contextlib.asynccontextmanager
async def service_on(engine: Engine, ring: str, server: Server) -> AsyncIterator[Service]:
    """A person and an app on a server, and its store."""
    two = Pair(engine, ring, (server, server))
    async with opened(engine.url, two.keys) as store:
        yield await two.service(store)


async def ping(store: Store, client_id: str) -> str:
    event = WebhookEvent(new_event_id(), "ping", client_id, "", await store.apps.now())
    await store.deliveries.enqueue(event)
    return event.id


@within_a_minute
async def test_disconnecting_an_app_posts_an_event(service: Service, receiver: Receiver, two: Pair) -> None:
    secret = await hook(service.store, service.web, receiver)
    await service.tokens(browser=await service.signed_in(two.email))
    await disconnect(service, service.web, two.email)
    [one] = await receiver.count(1)
    event = one.verified(secret)
    assert event["type"] == "grant.revoked"
    assert event["data"] == {
        "client_id": service.web.client_id,
        "sub": service.ada,
        "reason": "disconnected_by_person",
    }
    found = await service.store.deliveries.list(service.web.client_id)

    async def delivered() -> bool:
        nonlocal found
        found = await service.store.deliveries.list(service.web.client_id)
        return [one.state for one in found] == ["delivered"]

    await until(delivered)
    assert (found[0].id, found[0].attempts) == (one.id, 1)
    assert secret not in "".join(server.log for server in two.servers)


@within_a_minute
async def test_ended_documents_are_reported_when_gone(service: Service, receiver: Receiver, two: Pair) -> None:
    """30 days later: the dates of the keys and of the due list are moved as the clock would."""
    secret = await hook(service.store, service.web, receiver)
    tokens = await service.tokens(browser=await service.signed_in(two.email))
    headers = {"Authorization": f"Bearer {tokens['access_token']}", "Content-Type": "application/json"}
    kept = await send(f"{service.base_url}/api/v1/data/notes/n1", "PUT", body="1", headers=headers)
    assert kept.code == 201
    await disconnect(service, service.web, two.email)
    await receiver.count(1)
    due = keys.outbox_keys(service.ada[:3])["due"]
    listed: Any = await service.store.client.zrange(due, 0, -1, withscores=True)
    [(entry, ends)] = listed
    await service.store.client.zadd(due, {entry: ends - GRACE})
    for key in keys.hosted(service.ada, service.web.client_id).values():
        await service.store.client.delete(key)
    await service.store.outbox.sweep(service.store.webhooks.wants)
    one = (await receiver.count(2))[1]
    assert one.verified(secret)["type"] == "data.deleted"
    assert one.verified(secret)["data"]["reason"] == "grace_over"


@within_a_minute
async def test_a_replay_and_a_deleted_account_post_events(service: Service, receiver: Receiver, two: Pair) -> None:
    secret = await hook(service.store, service.web, receiver)
    tokens = await service.tokens(browser=await service.signed_in(two.email))
    assert (await service.web.refresh(tokens["refresh_token"])).code == 200
    assert (await service.web.refresh(tokens["refresh_token"])).code == 400
    [first] = await receiver.count(1)
    event = first.verified(secret)
    assert (event["type"], event["data"]["reason"]) == ("tokens.revoked", "refresh_token_replayed")
    await service.store.operator.delete(two.email)
    await service.store.outbox.sweep(service.store.webhooks.wants)
    second = (await receiver.count(2))[1].verified(secret)
    assert second["type"] == "user.deleted"
    assert second["data"] == {"client_id": service.web.client_id, "sub": service.ada}


@within_a_minute
async def test_two_servers_post_each_event_once(service: Service, receiver: Receiver, two: Pair) -> None:
    await hook(service.store, service.web, receiver)
    people = [f"many-{number}@example.com" for number in range(12)]
    users = await at_once(service.add_person(email) for email in people)
    registration = await service.store.apps.find(service.web.client_id)
    assert registration
    for user in users:
        await service.store.tokens.mint(user, registration, ("profile",))
    services = [service, Service(two.servers[1].here, service.store)]
    two.forget_addresses()
    await at_once(disconnect(services[number % 2], service.web, email) for number, email in enumerate(people))
    await receiver.count(len(people))
    # What is written last is posted last or nearly so, and nothing comes behind it.
    last = await ping(service.store, service.web.client_id)
    await receiver.count(len(people) + 1)

    async def all_done() -> bool:
        found = await service.store.deliveries.list(service.web.client_id)
        return all(one.state == "delivered" for one in found)

    await until(all_done)
    assert len(receiver.posted) == len({one.id for one in receiver.posted}) == len(people) + 1
    assert last in {one.id for one in receiver.posted}
    assert {event["data"].get("sub") for event in receiver.events()} == {*users, None}


@within_a_minute
async def test_an_event_is_posted_again_after_a_kill_before_settlement(io_loop: IOLoop, receiver: Receiver) -> None:
    """At least once, under one id: by the remaining server, when the dead one's lease is over."""

    async def hangs(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    receiver.script = [hangs]
    ring = KeyRing.generate(1)
    with valkey() as engine:
        options = ("--redis-url", engine.url, *QUICK)
        with shared(ring, *options) as first:
            async with service_on(engine, ring, first.ready()) as service:
                secret = await hook(service.store, service.web, receiver)
                event_id = await ping(service.store, service.web.client_id)
                await receiver.count(1)
                first.kill()
                [found] = await service.store.deliveries.list(service.web.client_id)
                assert (found.state, found.attempts, found.next_attempt_at) == ("pending", 1, None)
                with shared(ring, *options) as second:
                    second.ready()
                    # The end of the lease, put forward as a minute would.
                    await service.store.client.zadd(keys.DELIVERIES_DUE, {event_id: 1})
                    again = (await receiver.count(2))[1]
                    assert again.id == event_id == receiver.posted[0].id
                    assert again.body == receiver.posted[0].body
                    again.verified(secret)

                    async def delivered() -> Any:
                        one = await service.store.deliveries.read(service.web.client_id, event_id)
                        return one if one and one.state == "delivered" else None

                    assert (await until(delivered)).attempts == 2


@within_a_minute
async def test_a_sign_out_reaches_the_app_although_its_server_dies(io_loop: IOLoop, receiver: Receiver) -> None:
    """The server that ended the session is killed: before it relays, and while it posts. Another one carries on."""

    async def hangs(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    receiver.script = [hangs]
    ring = KeyRing.generate(1)
    with valkey() as engine:
        options = ("--redis-url", engine.url, *QUICK)
        with shared(ring, *options, "--no-webhooks") as first:
            async with service_on(engine, ring, first.ready()) as service:
                app = await service.add_app("rp", scopes=("openid",), backchannel_logout_uri=receiver.url)
                browser = await service.signed_in("ada-1@example.com")
                tokens = await service.tokens(app, browser, scope="openid")
                page = await browser.get("/account")
                assert (await browser.submit(page, "/signout")).code == 303
                first.kill()
                with shared(ring, *options) as second:
                    second.ready()
                    await receiver.count(1)
                    second.kill()
                (found,) = await service.store.deliveries.list("rp")
                assert (found.state, found.attempts) == ("pending", 1)
                with shared(ring, *options) as third:
                    third.ready()
                    # The end of the lease, put forward as a minute would.
                    await service.store.client.zadd(keys.DELIVERIES_DUE, {found.id: 1})
                    posted = await receiver.count(2)
                    signed = [dict(parse_qsl(one.body.decode()))["logout_token"] for one in posted]
                    verify = service.store.signing_keys.verify
                    claims = [(await verify(token, types=("logout+jwt",))).claims for token in signed]
                    its = (await verify(tokens["id_token"], types=("JWT",))).claims
                    for name in ("sub", "sid", "aud"):
                        assert [one[name] for one in claims] == [its[name]] * 2
                    assert claims[0]["jti"] != claims[1]["jti"]


@within_a_minute
async def test_a_stopping_server_lets_a_post_finish(io_loop: IOLoop, receiver: Receiver) -> None:
    async def takes_its_time(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)
        await answering(200)(writer)

    receiver.reply = takes_its_time
    ring = KeyRing.generate(1)
    with valkey() as engine, shared(ring, "--redis-url", engine.url, *QUICK) as server:
        async with service_on(engine, ring, server.ready()) as service:
            await hook(service.store, service.web, receiver)
            event_id = await ping(service.store, service.web.client_id)
            await receiver.count(1)
            server.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(server.wait) == 0
            found = await service.store.deliveries.read(service.web.client_id, event_id)
            assert found is not None
            assert (found.state, found.attempts) == ("delivered", 1)


@within_a_minute
async def test_a_server_without_webhooks_leaves_posts_to_another(io_loop: IOLoop, receiver: Receiver) -> None:
    ring = KeyRing.generate(1)
    with valkey() as engine, shared(ring, "--redis-url", engine.url, *QUICK, "--no-webhooks") as silent:
        async with service_on(engine, ring, silent.ready()) as service:
            secret = await hook(service.store, service.web, receiver)
            await service.tokens(browser=await service.signed_in("ada-1@example.com"))
            await disconnect(service, service.web, "ada-1@example.com")
            assert await service.store.client.exists(keys.outbox_keys(service.ada[:3])["outbox"]) == 1
            with shared(ring, "--redis-url", engine.url, *QUICK) as other:
                other.ready()
                [one] = await receiver.count(1)
                assert one.verified(secret)["type"] == "grant.revoked"


@within_a_minute
async def test_posting_resumes_after_a_store_outage(io_loop: IOLoop, receiver: Receiver) -> None:
    ring = KeyRing.generate(1)
    with valkey(append_only=True) as engine, shared(ring, "--redis-url", engine.url, *QUICK) as server:
        async with service_on(engine, ring, server.ready()) as service:
            await hook(service.store, service.web, receiver)
            await ping(service.store, service.web.client_id)
            await receiver.count(1)
            engine.kill()

            async def away() -> bool:
                return (await send(f"{server.here}/readyz")).code == 503

            await until(away)
            engine.restart()

            async def pinged() -> Any:
                try:
                    return await ping(service.store, service.web.client_id)
                except StoreUnavailable:  # the connections of this process come back in their time
                    return None

            await until(pinged)
            posted = await receiver.count(2, seconds=30)
            assert len({one.id for one in posted}) == len(posted)
            assert "Traceback" not in server.log
