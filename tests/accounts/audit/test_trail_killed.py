"""A real server is killed between an act and the security log, and the log has the act."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys
from store.accounts.audit import recorded
from store.crypto.keyring import KeyRing, Keys
from store.wiring import Store
from tests.support.http.driver import EMAIL, Browser, Service
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, opened, shared

pytestmark = pytest.mark.slow


async def events(store: Store, person: str) -> list[str]:
    return [one.event for one in await store.security_events.newest(None) if one.person == person]


async def dead_writers(store: Store) -> None:
    """What 90 seconds do: the marks of processes that live end."""
    marks = [key async for key in store.client.scan_iter(keys.TRAIL_WRITER + "*")]
    if marks:
        await store.client.delete(*marks)


@pytest.mark.gen_test(timeout=90)
async def test_the_log_has_the_acts_of_a_server_that_was_killed_right_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ring = KeyRing.generate(1)
    with valkey() as engine:
        async with opened(engine.url, Keys(KeyRing.parse(ring))) as store:
            service = Service("", store)
            ada = await service.add_person(EMAIL)
            await store.security.flush()
            with shared(ring, "--redis-url", engine.url, *QUICK) as server:
                server.ready()
                assert (await Browser(server.here).sign_in()).code == 303
                # A batch collects events for a second.
                server.process.kill()
                server.wait()
            notes: dict[Any, Any] = await store.client.hgetall(keys.recorded(ada[:3]))
            assert len(notes) == 1
            before = await events(store, ada)
            assert "signed_in" not in before
            # A server that starts looks for such notes at once. Here it is this process, after the 90 seconds.
            monkeypatch.setattr(recorded, "DEAD_MS", 0)
            await dead_writers(store)
            assert await store.recorded_events.sweep() == 1
            after = await events(store, ada)
            assert sorted(after) == sorted([*before, "signed_in"])
            assert await store.client.hlen(keys.recorded(ada[:3])) == 0
            assert await store.recorded_events.sweep() == 0
            assert await events(store, ada) == after
