"""Events on their way to an app: once, again, and no more."""

from __future__ import annotations

import asyncio
import logging
from ipaddress import ip_network
from typing import Any

import pytest
from standardwebhooks.webhooks import WebhookVerificationError
from tornado.ioloop import IOLoop

from outbound.guarded_http import NO_ADDRESS
from outbound.webhooks.errors import NO_TARGET, NOT_SIGNED, OWN_ERROR
from outbound.webhooks.poster import EACH_APP, WebhookSender
from outbound.webhooks.retries import ATTEMPTS, PAUSES
from runtime.outbound_wiring import open_webhooks
from settings.declared import Settings
from store import keys
from store.apps.webhooks import Target
from store.lifetimes import WEBHOOK_OVERLAP
from store.wiring import Store
from tests.support.http.receiver import Receiver, answering
from tests.support.processes.engines import FakeClock
from tests.support.store.hooked_app import engine, hooked
from tests.support.store.webhook_app import USER, Hooked, engine_on, until

__all__ = ["engine", "hooked"]  # fixtures


@pytest.mark.gen_test
async def test_an_event_is_posted_signed_and_settled(hooked: Hooked, engine: WebhookSender) -> None:
    event_id = await hooked.tell()
    engine.wake()
    [one] = await hooked.receiver.count(1)
    assert one.id == event_id
    event = one.verified(hooked.secret)
    assert event["type"] == "grant.revoked"
    assert event["data"] == {"client_id": "web", "sub": USER, "reason": "because"}
    done = await hooked.settled(event_id, 1)
    assert (done.state, done.attempts, done.last_status, done.last_error) == ("delivered", 1, 204, "")


@pytest.mark.gen_test
async def test_delivery_needs_no_wakeup(hooked: Hooked, engine: WebhookSender) -> None:
    await hooked.tell()
    await hooked.receiver.count(1)


@pytest.mark.gen_test(timeout=60)
async def test_failed_posts_are_retried_for_three_days_and_then_by_hand(
    hooked: Hooked, engine: WebhookSender, clock: FakeClock
) -> None:
    clock.stop()
    hooked.receiver.reply = answering(500)
    event_id = await hooked.tell()
    for attempt, pause in enumerate(PAUSES, 1):
        found = await hooked.settled(event_id, attempt, engine)
        assert (found.state, found.attempts, found.last_status) == ("pending", attempt, 500)
        wait = (found.next_attempt_at or 0) / 1000 - clock.time()
        assert 0.8 * pause - 1 <= wait <= 1.2 * pause + 1, attempt
        clock.advance(wait - 0.5)
        assert await hooked.store.deliveries.claim(1, 60) == []
        clock.advance(1)
    failed = await hooked.settled(event_id, ATTEMPTS, engine)
    assert (failed.state, failed.attempts, failed.next_attempt_at) == ("failed", ATTEMPTS, None)
    assert failed.last_error == "The answer was 500."
    clock.advance(86_400)
    assert await hooked.store.deliveries.claim(1, 60) == []
    hooked.receiver.script = [answering(500)]
    hooked.receiver.reply = answering(200)
    assert await hooked.store.deliveries.replay("web", event_id)
    # A replay by hand starts with all its attempts.
    found = await hooked.settled(event_id, ATTEMPTS + 1, engine)
    assert 0 < (found.next_attempt_at or 0) / 1000 - clock.time() < 7
    clock.advance(7)
    assert (await hooked.settled(event_id, ATTEMPTS + 2, engine)).state == "delivered"
    assert {one.id for one in hooked.receiver.posted} == {event_id}
    assert len({one.body for one in hooked.receiver.posted}) == 1


@pytest.mark.gen_test
async def test_410_ends_a_delivery_at_once(hooked: Hooked, engine: WebhookSender) -> None:
    hooked.receiver.reply = answering(410)
    failed = await hooked.settled(await hooked.tell(), 1, engine)
    assert (failed.state, failed.last_status) == ("failed", 410)
    assert "410" in failed.last_error


@pytest.mark.gen_test
async def test_each_attempt_is_reported_by_type_and_outcome(
    hooked: Hooked, engine: WebhookSender, clock: FakeClock
) -> None:
    seen: list[tuple[str, str]] = []
    engine.watch = lambda *attempt: seen.append(attempt)
    hooked.receiver.script = [answering(500), answering(204), answering(410)]
    event_id = await hooked.tell()
    again = await hooked.settled(event_id, 1, engine)
    clock.advance((again.next_attempt_at or 0) / 1000 - clock.time() + 1)
    await hooked.settled(event_id, 2, engine)
    await hooked.settled(await hooked.tell(), 1, engine)
    await engine.close(1)
    assert engine.queue == 0
    assert seen == [("grant.revoked", outcome) for outcome in ("again", "delivered", "failed")]


@pytest.mark.gen_test
async def test_retry_after_sets_the_next_attempt(hooked: Hooked, engine: WebhookSender, clock: FakeClock) -> None:
    clock.stop()
    hooked.receiver.reply = answering(429, "Retry-After: 600")
    found = await hooked.settled(await hooked.tell(), 1, engine)
    assert abs((found.next_attempt_at or 0) / 1000 - clock.time() - 600) < 2


@pytest.mark.gen_test
@pytest.mark.parametrize("change", [{"status": "disabled"}, {"status": "off"}, {"webhook_url": ""}])
async def test_an_app_without_a_usable_webhook_gets_no_posts(
    hooked: Hooked, engine: WebhookSender, change: dict[str, Any]
) -> None:
    await hooked.store.apps.update("web", **change)
    assert not await hooked.store.webhooks.wants("web")
    failed = await hooked.settled(await hooked.tell(), 1, engine)
    assert (failed.state, failed.last_error) == ("failed", NO_TARGET)
    assert hooked.receiver.posted == []


@pytest.mark.gen_test
async def test_for_a_day_after_a_rotation_both_secrets_sign(
    hooked: Hooked, engine: WebhookSender, clock: FakeClock
) -> None:
    _, newer = await hooked.store.webhooks.rotate("web")
    assert newer
    await hooked.tell()
    engine.wake()
    [one] = await hooked.receiver.count(1)
    one.verified(hooked.secret)
    one.verified(newer)
    clock.advance(WEBHOOK_OVERLAP / 1000 + 1)
    await hooked.tell()
    engine.wake()
    one = (await hooked.receiver.count(2))[1]
    one.verified(newer)
    with pytest.raises(WebhookVerificationError):
        one.verified(hooked.secret)


@pytest.mark.gen_test(timeout=30)
async def test_a_slow_receiver_delays_only_its_own_events(hooked: Hooked) -> None:
    engine = engine_on(hooked.store, connect=60, whole=60)  # no post ends while the test lasts
    engine.start()

    async def hangs(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    hooked.receiver.reply = hangs
    other = await Hooked.make(hooked.store, "other")
    last = await hooked.tell(100)
    engine.wake()
    await hooked.receiver.count(EACH_APP)
    event_id = await other.tell()
    engine.wake()
    await other.receiver.count(1)
    assert (await other.settled(event_id, 1)).state == "delivered"
    assert len(hooked.receiver.posted) == hooked.receiver.most_at_once == EACH_APP

    async def put_back() -> bool:
        found = await hooked.delivery(last)
        return found.attempts == 0 and found.next_attempt_at is not None and found.next_attempt_at > found.created_at

    # What had no place was given back, and counts for nothing.
    await until(put_back)
    await engine.close(0)
    await other.receiver.close()


@pytest.mark.gen_test
async def test_a_receiver_of_many_events_gets_all(hooked: Hooked, engine: WebhookSender, clock: FakeClock) -> None:
    await hooked.tell(90)
    engine.wake()
    await hooked.receiver.count(64)
    # Those that found the line full.
    clock.advance(15)
    engine.wake()
    await hooked.receiver.count(90)
    assert len({one.id for one in hooked.receiver.posted}) == len(hooked.receiver.posted) == 90
    assert hooked.receiver.most_at_once <= EACH_APP


@pytest.mark.gen_test
async def test_our_own_error_stops_nothing_else(
    hooked: Hooked, io_loop: IOLoop, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [RuntimeError("first"), ZeroDivisionError("second")]

    async def target(client_id: str, event: str) -> Target | None:
        if failures:
            raise failures.pop()
        return await hooked.store.webhooks.target(client_id)

    engine = engine_on(hooked.store, target)
    engine.start()
    event_id = await hooked.tell(3)
    engine.wake()
    await hooked.receiver.count(1)
    assert (await hooked.settled(event_id, 1)).attempts == 1
    assert [one.exc_info is not None for one in caplog.records if one.name == "latchkey.webhooks"] == [True, True]
    await engine.close(1)


@pytest.mark.gen_test
async def test_our_own_error_ends_the_attempt_and_is_not_repeated_forever(hooked: Hooked, clock: FakeClock) -> None:
    async def target(client_id: str) -> Target | None:
        raise ZeroDivisionError

    engine = engine_on(hooked.store, target)
    engine.start()
    event_id = await hooked.tell()
    for attempt in range(1, ATTEMPTS + 1):
        found = await hooked.settled(event_id, attempt, engine)
        assert (found.attempts, found.last_error) == (attempt, OWN_ERROR)
        clock.advance(2 * PAUSES[-1])
    assert found.state == "failed"
    await engine.close(1)


@pytest.mark.gen_test
async def test_an_unsignable_event_is_logged_and_retried(
    hooked: Hooked, engine: WebhookSender, caplog: pytest.LogCaptureFixture
) -> None:
    await hooked.store.apps.update("web", webhook_secrets=(b"\xff" * 60,))
    found = await hooked.settled(await hooked.tell(), 1, engine)
    assert (found.state, found.last_error) == ("pending", NOT_SIGNED)
    assert found.next_attempt_at
    assert [one.levelname for one in caplog.records if one.name == "latchkey.webhooks"] == ["ERROR"]


@pytest.mark.gen_test
async def test_nothing_secret_is_logged(
    hooked: Hooked, engine: WebhookSender, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hooked.receiver.script = [answering(500, body=b"inner secret")]
    await hooked.settled(await hooked.tell(), 1, engine)
    await hooked.settled(await hooked.tell(), 1, engine)
    assert [one for one in caplog.records if one.name == "latchkey.webhooks"]
    for hidden in ("hidden", hooked.secret, "inner secret", USER, str(hooked.receiver.port)):
        assert hidden not in "\n".join(one.getMessage() for one in caplog.records if one.name.startswith("latchkey"))


@pytest.mark.gen_test
async def test_draining_posts_what_is_due_and_skips_later_attempts(hooked: Hooked) -> None:
    hooked.receiver.script = [answering(500)]
    engine = engine_on(hooked.store)
    event_id = await hooked.tell(2 * EACH_APP)
    await engine.bring_out(10)
    assert engine.queue == 0
    assert len(hooked.receiver.posted) == 2 * EACH_APP
    assert (await hooked.delivery(event_id)).state == "delivered"
    found = await hooked.store.deliveries.list("web")
    assert sorted(one.state for one in found) == ["delivered"] * (2 * EACH_APP - 1) + ["pending"]
    await engine.close(0)


@pytest.mark.gen_test
async def test_draining_waits_a_limited_time_for_a_hanging_receiver(hooked: Hooked) -> None:
    answers = asyncio.Event()

    async def hangs(writer: asyncio.StreamWriter) -> None:
        await answers.wait()
        await answering(204)(writer)

    hooked.receiver.reply = hangs
    engine = engine_on(hooked.store)
    event_id = await hooked.tell()
    await engine.bring_out(0.1)
    assert engine.queue == 1
    answers.set()
    await engine.bring_out(10)
    assert (await hooked.delivery(event_id)).state == "delivered"
    await engine.close(0)


@pytest.mark.gen_test
async def test_returned_deliveries_do_not_count(store: Store) -> None:
    """On every engine: claimed, given back, claimed again under the same number; a late answer counts for nothing."""
    hooked = await Hooked.make(store, receiver=Receiver())
    event_id = await hooked.tell()
    [claimed] = await store.deliveries.claim(5, 60)
    assert (claimed.attempts, claimed.tries) == (1, 1)
    assert await store.deliveries.put_back(event_id, 1, 0)
    assert not await store.deliveries.put_back(event_id, 1, 0)
    assert not await store.deliveries.settle(event_id, 1, delivered=False, error="late")
    found = await hooked.delivery(event_id)
    assert (found.attempts, found.tries, found.state) == (0, 0, "pending")
    [again] = await until(lambda: store.deliveries.claim(5, 60))
    assert again.attempts == 1
    assert not await store.deliveries.put_back(event_id, 2, 0)
    assert await store.deliveries.put_back(event_id, 1, 100)
    assert await store.deliveries.claim(5, 60) == []
    assert not await store.deliveries.put_back("x" * 22, 1, 0)
    assert await store.client.exists(keys.delivery("x" * 22)["delivery"]) == 0
    await hooked.receiver.close()


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("given", "posted"),
    [
        pytest.param({}, True, id="a developer's machine"),
        pytest.param({"host": "0.0.0.0"}, False, id="others reach it, whatever it is called"),
        pytest.param({"trusted_proxies": (ip_network("127.0.0.1"),)}, False, id="behind a proxy"),
        pytest.param({"base_url": "https://id.example.com"}, False, id="with a name"),
    ],
)
async def test_only_a_private_server_posts_to_its_own_machine(
    hooked: Hooked, given: dict[str, Any], posted: bool
) -> None:
    settings = Settings(**given)
    engine = open_webhooks(settings, hooked.store, "https://id.example.com")
    engine.start()
    event_id = await hooked.tell()
    found = await hooked.settled(event_id, 1, engine)
    await engine.close(1)
    assert found.state == ("delivered" if posted else "pending")
    assert found.last_error == ("" if posted else NO_ADDRESS)
    assert len(hooked.receiver.posted) == posted
