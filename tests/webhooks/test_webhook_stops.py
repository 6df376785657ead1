"""Events that are posted, wait or are being taken when a server stops or leaves off."""

from __future__ import annotations

import asyncio

import pytest

from outbound.webhooks.poster import EACH_APP, LEASE_SECONDS
from store.webhooks.deliveries import Delivery
from tests.support.http.receiver import answering
from tests.support.processes.engines import FakeClock
from tests.support.store.hooked_app import engine, hooked
from tests.support.store.webhook_app import Hooked, engine_on

__all__ = ["engine", "hooked"]  # fixtures


@pytest.mark.gen_test
async def test_shutdown_lets_a_post_finish(hooked: Hooked) -> None:
    async def takes_its_time(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        await answering(200)(writer)

    hooked.receiver.reply = takes_its_time
    engine = engine_on(hooked.store)
    engine.start()
    event_id = await hooked.tell()
    engine.wake()
    await hooked.receiver.count(1)
    await engine.close(5)
    assert (await hooked.delivery(event_id)).state == "delivered"
    await hooked.tell()
    await asyncio.sleep(0.05)
    assert len(hooked.receiver.posted) == 1


@pytest.mark.gen_test
async def test_shutdown_returns_waiting_deliveries(hooked: Hooked) -> None:
    async def takes_its_time(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        await answering(200)(writer)

    hooked.receiver.reply = takes_its_time
    engine = engine_on(hooked.store)
    engine.start()
    await hooked.tell(EACH_APP + 5)
    engine.wake()
    await hooked.receiver.count(EACH_APP)
    await engine.close(5)
    found = await hooked.store.deliveries.list("web")
    assert sorted((one.state, one.attempts) for one in found) == [("delivered", 1)] * EACH_APP + [("pending", 0)] * 5
    assert all(one.next_attempt_at for one in found if one.state == "pending")
    assert len(hooked.receiver.posted) == EACH_APP


@pytest.mark.gen_test
async def test_shutdown_returns_deliveries_being_claimed(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, claiming = hooked.store.deliveries.claim, asyncio.Event()

    async def answered_late(most: int, lease: float) -> list[Delivery]:
        found = await claim(most, lease)
        claiming.set()
        await asyncio.sleep(0.1)
        return found

    monkeypatch.setattr(hooked.store.deliveries, "claim", answered_late)
    event_id = await hooked.tell()
    engine = engine_on(hooked.store)
    engine.start()
    await claiming.wait()
    await engine.close(5)
    found = await hooked.delivery(event_id)
    assert (found.state, found.attempts) == ("pending", 0)
    assert found.next_attempt_at
    assert hooked.receiver.posted == []


@pytest.mark.gen_test
async def test_a_post_cut_by_shutdown_is_repeated_after_its_lease(hooked: Hooked, clock: FakeClock) -> None:
    async def hangs(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    hooked.receiver.script = [hangs]
    engine = engine_on(hooked.store)
    engine.start()
    event_id = await hooked.tell()
    engine.wake()
    await hooked.receiver.count(1)
    await engine.close(0)
    after = engine_on(hooked.store)
    after.start()
    assert (await hooked.delivery(event_id)).next_attempt_at is None
    clock.advance(LEASE_SECONDS + 1)
    assert (await hooked.settled(event_id, 2, after)).state == "delivered"
    assert [one.id for one in hooked.receiver.posted] == [event_id, event_id]
    await after.close(1)


@pytest.mark.gen_test
async def test_a_stopped_sender_can_start_again(hooked: Hooked) -> None:
    async def hangs(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    hooked.receiver.script = [hangs]
    engine = engine_on(hooked.store)
    engine.start()
    await hooked.tell()
    await hooked.receiver.count(1)
    await engine.leave_off(0.1)
    assert engine.queue == 0
    await hooked.tell()
    engine.wake()
    await asyncio.sleep(0.05)
    assert (engine.queue, len(hooked.receiver.posted)) == (0, 1)
    engine.start()
    await hooked.receiver.count(2)
    await engine.close(5)


@pytest.mark.gen_test
async def test_draining_includes_deliveries_being_claimed(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, claimed, answered = hooked.store.deliveries.claim, asyncio.Event(), asyncio.Event()

    async def answered_late(most: int, lease: float) -> list[Delivery]:
        found = await claim(most, lease)
        if found:
            claimed.set()
            await answered.wait()
        return found

    monkeypatch.setattr(hooked.store.deliveries, "claim", answered_late)
    event_id = await hooked.tell()
    engine = engine_on(hooked.store)
    engine.start()
    await claimed.wait()
    asyncio.get_running_loop().call_later(0.1, answered.set)
    await engine.bring_out(10)
    assert (await hooked.delivery(event_id)).state == "delivered"
    await engine.close(0)
