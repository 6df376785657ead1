"""Attempts at deliveries: what is recorded of each, what of a receiver's answer is shown, and its bounds."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from outbound.address_policy import AddressPolicy
from outbound.webhooks.poster import WebhookSender
from outbound.webhooks.posting import Poster
from store import keys
from store.engine.memory import Room
from store.lifetimes import ATTEMPT, DELIVERY
from store.webhooks.attempts import (
    ANSWER_ROOM,
    HEADERS_ROOM,
    KEPT,
    SENT_ROOM,
    Attempt,
    WebhookExchange,
    WebhookResponse,
)
from store.webhooks.deliveries import SESSION_ENDED, WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.http.driver import Browser, Service
from tests.support.http.receiver import Receiver, answering
from tests.support.processes.engines import FakeClock
from tests.support.store.webhook_app import USER, Hooked, engine_on, signs_logouts

HOOKS = "/developer/apps/own/webhooks"
SCRIPT = "<script>alert(1)</script>"


class Internet(AddressPolicy):
    """Takes this machine for a host on the internet."""

    def is_internet(self, text: str) -> bool:
        return True


def public_engine(store: Store) -> WebhookSender:
    """A sender for which the tests' receiver is on the internet."""
    poster = Poster(Internet(loopback=True), 16, connect=2, whole=3)
    return WebhookSender(store.deliveries, store.webhooks.target, poster, 16, signs_logouts(store))


@pytest.fixture
def engine(io_loop: IOLoop, memory_store: Store) -> Iterator[WebhookSender]:
    made = public_engine(memory_store)
    yield made
    io_loop.run_sync(lambda: made.close(1))


@pytest.fixture
def site(memory_store: Store, base_url: str, engine: WebhookSender) -> Site:
    return Site(memory_store, base_url, wake_webhooks=engine.wake)


@pytest.fixture
def receiver(io_loop: IOLoop) -> Iterator[Receiver]:
    made = Receiver()
    io_loop.run_sync(made.start)
    yield made
    io_loop.run_sync(made.close)


async def attempts(store: Store, client_id: str, delivery_id: str) -> list[Attempt]:
    found = await store.deliveries.read_attempts(client_id, delivery_id)
    assert found
    return found[1]


@pytest.mark.gen_test
async def test_each_attempt_is_recorded_with_request_and_answer(memory_store: Store, engine: WebhookSender) -> None:
    hooked = await Hooked.make(memory_store)
    hooked.receiver.script = [
        answering(500, "X-Trace: 12", "Set-Cookie: session=secret", "SET-COOKIE2: other=secret", body=b"no room"),
        answering(204),
    ]
    one = await hooked.tell()
    await engine.bring_out(5)
    await hooked.settled(one, 1)
    assert await memory_store.deliveries.replay("web", one)
    await engine.bring_out(5)
    await hooked.settled(one, 2)
    first, second = await attempts(memory_store, "web", one)
    posted = hooked.receiver.posted[0]
    assert (first.number, first.status, first.error) == (1, 500, "The answer was 500.")
    assert first.exchange.url == f"{hooked.receiver.url}?token=hidden"
    assert dict(first.exchange.headers).items() <= posted.headers.items()
    assert {"webhook-id", "webhook-timestamp", "webhook-signature", "user-agent"} <= dict(first.exchange.headers).keys()
    assert first.exchange.body == posted.body
    assert first.exchange.answer == WebhookResponse((("Content-Length", "7"), ("X-Trace", "12")), b"no room")
    assert first.at <= second.at
    assert (second.number, second.status, second.error) == (2, 204, "")
    entries = str(await memory_store.client.xrange(keys.deliveries("web")["attempts"]))
    assert hooked.secret not in entries
    assert "session=secret" not in entries
    await hooked.receiver.close()


@pytest.mark.gen_test
async def test_only_the_status_of_a_private_address_is_recorded(memory_store: Store) -> None:
    hooked, engine = await Hooked.make(memory_store), engine_on(memory_store)
    hooked.receiver.reply = answering(500, "X-Internal: database-7", body=b"the page of an internal service")
    one = await hooked.tell()
    await engine.bring_out(5)
    await hooked.settled(one, 1)
    [attempt] = await attempts(memory_store, "web", one)
    assert (attempt.status, attempt.exchange.answer) == (500, None)
    assert attempt.exchange.body == hooked.receiver.posted[0].body
    assert b"internal" not in str(await memory_store.client.xrange(keys.deliveries("web")["attempts"])).encode().lower()
    await engine.close(1)
    await hooked.receiver.close()


@pytest.mark.parametrize(
    ("address", "internet"),
    [
        ("1.1.1.1", True),
        ("2606:4700::1111", True),
        ("::ffff:1.1.1.1", True),
        ("10.0.0.1", False),
        ("127.0.0.1", False),
        ("::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("8.8.8.8", False),
        ("::ffff:8.8.8.8", False),
        ("fe80::1%eth0", False),
        ("", False),
    ],
)
def test_networks_of_the_operator_are_not_the_internet(address: str, internet: bool) -> None:
    theirs = tuple(map(ip_network, ("10.0.0.0/8", "8.8.8.0/24", "64:ff9b::/96")))
    policy = AddressPolicy(theirs, loopback=True)
    assert policy.is_internet(address) is internet


@pytest.mark.gen_test
async def test_one_private_address_among_those_tried_hides_the_answer(receiver: Receiver) -> None:
    asked: list[str] = []

    class Half(AddressPolicy):
        def is_internet(self, text: str) -> bool:
            asked.append(text)
            return len(asked) == 1

    policy = Half(loopback=True)
    poster = Poster(policy, 4)
    seen = [(await poster.post(receiver.url, {}, b"{}")).answer is not None for _ in range(2)]
    assert seen == [True, False]
    assert asked == ["127.0.0.1"] * 2, "each post is judged by its own connection"
    await poster.close()


@pytest.mark.gen_test
async def test_an_error_is_recorded_in_words_with_its_duration(memory_store: Store, engine: WebhookSender) -> None:
    hooked = await Hooked.make(memory_store)
    await hooked.receiver.close()
    one = await hooked.tell()
    await engine.bring_out(5)
    await hooked.settled(one, 1)
    [attempt] = await attempts(memory_store, "web", one)
    assert (attempt.status, attempt.error) == (None, "No connection could be made.")
    assert attempt.exchange.answer is None
    assert attempt.exchange.url
    await memory_store.apps.update("web", status="off")
    assert await memory_store.deliveries.replay("web", one)
    await engine.bring_out(5)
    await hooked.settled(one, 2)
    unsent = (await attempts(memory_store, "web", one))[-1]
    assert unsent.exchange == WebhookExchange()
    assert "not active" in unsent.error


@pytest.mark.gen_test
async def test_a_recorded_logout_token_has_no_signature(memory_store: Store, engine: WebhookSender) -> None:
    hooked = await Hooked.make(memory_store)
    await memory_store.apps.update("web", backchannel_logout_uri=hooked.receiver.url)
    now = await memory_store.apps.now()
    event = WebhookEvent(new_event_id(), SESSION_ENDED, "web", USER, now, {"sid": "s" * 22})
    await memory_store.deliveries.enqueue(event)
    await engine.bring_out(5)
    await hooked.settled(event.id, 1)
    [attempt] = await attempts(memory_store, "web", event.id)
    posted = hooked.receiver.posted[0].body.decode()
    head, _, signature = posted.rpartition(".")
    assert len(signature) > 60
    assert attempt.exchange.body.decode() == head + "."
    await hooked.receiver.close()


def largest() -> WebhookExchange:
    """An exchange that is larger than what is kept, in every part."""
    many = tuple((f"x-{number}", "é" * 2000) for number in range(500))
    return WebhookExchange(
        "https://own.example/" + "x" * 1980, many, b"\xff" * 20_000, WebhookResponse(many, b"\xfe" * 90_000), 10**6
    )


async def settle(store: Store, exchange: WebhookExchange, client: str = "web") -> str:
    now = await store.apps.now()
    event = WebhookEvent(new_event_id(), "grant.revoked", client, USER, now)
    await store.deliveries.enqueue(event)
    for one in await store.deliveries.claim(100, 30):
        await store.deliveries.settle(one.id, one.attempts, delivered=True, status=200, exchange=exchange)
    return event.id


@pytest.mark.gen_test
async def test_what_is_kept_of_an_app_is_bounded(memory_store: Store) -> None:
    ids = [await settle(memory_store, largest()) for _ in range(KEPT + 3)]
    entries: Any = await memory_store.client.xrange(keys.deliveries("web")["attempts"])
    assert len(entries) == KEPT
    assert sum(len(value) for _, fields in entries for value in fields.values()) < 1.2 * 2**20
    assert await attempts(memory_store, "web", ids[0]) == []
    [attempt] = await attempts(memory_store, "web", ids[-1])
    assert attempt.cut
    assert attempt.exchange.answer
    assert len(attempt.exchange.answer.body) == ANSWER_ROOM
    assert len(attempt.exchange.body) == SENT_ROOM
    for headers in (attempt.exchange.headers, attempt.exchange.answer.headers):
        assert sum(len(name + value) for name, value in headers) < HEADERS_ROOM
        assert headers[-1] == ("…", "")


@pytest.mark.gen_test
async def test_attempts_end_within_their_time_and_before_their_delivery(clock: FakeClock, memory_store: Store) -> None:
    old = await settle(memory_store, WebhookExchange("https://own.example/"))
    clock.advance(ATTEMPT / 1000 - 60)
    new = await settle(memory_store, WebhookExchange("https://own.example/"))
    clock.advance(120)
    assert await attempts(memory_store, "web", old) == []
    assert len(await attempts(memory_store, "web", new)) == 1
    await settle(memory_store, WebhookExchange("https://own.example/"))
    assert await memory_store.client.xlen(keys.deliveries("web")["attempts"]) == 2, "the old one is gone for good"
    clock.advance(ATTEMPT / 1000)
    assert not await memory_store.client.exists(keys.deliveries("web")["attempts"])
    assert 2 * ATTEMPT < DELIVERY


@pytest.mark.gen_test
async def test_attempts_end_with_their_app(memory_store: Store) -> None:
    await settle(memory_store, WebhookExchange("https://own.example/"))
    kept = await settle(memory_store, WebhookExchange("https://own.example/"), "other")
    await memory_store.deliveries.forget("web")
    assert not await memory_store.client.exists(keys.deliveries("web")["attempts"])
    assert len(await attempts(memory_store, "other", kept)) == 1


@pytest.mark.gen_test
async def test_a_store_short_of_memory_records_no_attempts_but_settles(memory_store: Store) -> None:
    memory_store.headroom.note(Room(90, 100))
    one = await settle(memory_store, largest())
    found = await memory_store.deliveries.read_attempts("web", one)
    assert found
    assert (found[0].state, found[1]) == ("delivered", [])


@pytest.mark.gen_test
async def test_an_unreadable_stream_stops_no_delivery(memory_store: Store) -> None:
    stream = keys.deliveries("web")["attempts"]
    await memory_store.client.set(stream, "x")
    one = await settle(memory_store, WebhookExchange("https://own.example/"))
    assert len(await attempts(memory_store, "web", one)) == 1
    await memory_store.client.xadd(stream, {"delivery": one, "attempt": "x"})
    assert len(await attempts(memory_store, "web", one)) == 1


# The page.


async def shown(service: Service, receiver: Receiver, *replies: Any) -> tuple[Browser, str]:
    """Ada's browser, and the address of a delivery to which the receiver gave these answers."""
    await service.add_app("own", owner=service.ada)
    browser = await service.confirmed()
    await browser.submit(await browser.get(HOOKS), HOOKS, url=receiver.url)
    receiver.script = list(replies)
    event = WebhookEvent(new_event_id(), "user.deleted", "own", USER, await service.store.apps.now())
    await service.store.deliveries.enqueue(event)
    engine = public_engine(service.store)
    for _ in replies:
        await engine.bring_out(5)
        await service.store.deliveries.replay("own", event.id)
    await engine.close(1)
    return browser, f"{HOOKS}/{event.id}"


def text_of(page: HTTPResponse) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.body.decode())).split())


@pytest.mark.gen_test
async def test_a_hostile_answer_is_escaped_and_bounded_on_the_page(service: Service, receiver: Receiver) -> None:
    quotes = SCRIPT.encode() + b'"' * 100_000
    headers = [f"X-{number}: {SCRIPT}" + '"' * 4000 for number in range(20)]
    browser, path = await shown(service, receiver, answering(500, *headers, body=quotes))
    page = await browser.get(path)
    assert page.code == 200
    assert "<script>alert" not in page.body.decode()
    assert html.escape(SCRIPT) in page.body.decode()
    assert "first 4 KiB" in text_of(page)
    assert len(page.body) < 65_536


@pytest.mark.gen_test
async def test_the_page_shows_one_attempt_at_a_time(service: Service, receiver: Receiver) -> None:
    replies = (answering(500, body="zu spät".encode()), answering(200, body=b"\xff\xfe\x00"), answering(204))
    browser, path = await shown(service, receiver, *replies)
    page = await browser.get(path)
    assert [*re.findall(r"\?attempt=(\d)", page.body.decode())] == ["1", "2"]
    assert "Status 204" in text_of(page)
    assert "The body is empty" in text_of(page)
    first = text_of(await browser.get(f"{path}?attempt=1"))
    assert "Status 500" in first
    assert "zu spät" in first
    assert f"POST {receiver.url}" in first
    assert "webhook-signature v1," in first
    assert "isn’t UTF-8 text" in text_of(await browser.get(f"{path}?attempt=2"))
    for odd in ("9", "x", "1&attempt=2", "%00"):
        assert (await browser.get(f"{path}?attempt={odd}")).code in (200, 400)


@pytest.mark.gen_test
async def test_the_list_filters_by_event_and_state(service: Service, receiver: Receiver) -> None:
    await service.add_app("own", owner=service.ada)
    browser = await service.confirmed()
    await browser.submit(await browser.get(HOOKS), HOOKS, url=receiver.url)
    ids: dict[str, list[str]] = {"user.deleted": [], "grant.revoked": []}
    for number in range(60):
        type = "grant.revoked" if number % 2 else "user.deleted"
        event = WebhookEvent(new_event_id(), type, "own", USER, await service.store.apps.now())
        await service.store.deliveries.enqueue(event)
        ids[type].append(event.id)
    [done] = await service.store.deliveries.claim(1, 30)
    await service.store.deliveries.settle(done.id, done.attempts, delivered=True, status=200)

    async def listed(query: str) -> list[str]:
        seen: list[str] = []
        path: str | None = f"{HOOKS}?{query}"
        while path:
            page = (await browser.get(path)).body.decode()
            seen += re.findall(rf'href="{HOOKS}/([\w-]{{22}})"', page)
            onward = re.search(r'href="([^"]+)" rel="next"', page)
            path = html.unescape(onward[1]) if onward else None
        return seen

    assert await listed("type=grant.revoked") == ids["grant.revoked"][::-1]
    assert await listed("state=delivered") == [done.id]
    # Events of one millisecond are due together, so the queue decides which of them goes first.
    theirs, others = ("user.deleted", "grant.revoked")[:: 1 if done.id in ids["user.deleted"] else -1]
    assert await listed(f"type={theirs}&state=delivered") == [done.id]
    assert await listed(f"type={others}&state=delivered") == []
    assert len(await listed(f"type={theirs}&state=pending")) == 29
    assert len(await listed("type=nothing&state=odd")) == 60, "an unknown filter is none"
