"""Data of the release before layout 3: data of disconnected apps ends on time, and the apps get the event."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from store import keys as spell
from store.crypto.keyring import KeyRing, Keys
from store.keystate import LAYOUT
from store.wiring import Store
from tests.support.calls.webhooks import wanted
from tests.support.processes.engines import FakeClock
from tests.support.store.checked_store import checked, findings
from tests.support.store.layout_one import DATA, fill
from tests.support.store.world import every_key

OLD: dict[str, Any] = json.loads((DATA / "layout2.json").read_text("utf-8"))


@pytest.fixture
def keys() -> Keys:
    """The keys that the old release sealed with."""
    return Keys(KeyRing.parse(OLD["keys"]))


@pytest.fixture
def old_store(memory_store: Store, clock: FakeClock) -> Store:
    """The old release's store as it was left."""
    clock.advance(OLD["moment"] / 1000 - time.time())
    return memory_store


async def due(store: Store) -> dict[str, int]:
    """All due lists."""
    found: dict[str, int] = {}
    for key in await every_key(store.client, "{???}:due"):
        listed: Any = await store.client.zrange(key, 0, -1, withscores=True)
        found |= {key.decode()[1:4] + entry.decode(): int(score) for entry, score in listed}
    return found


@pytest.mark.gen_test(timeout=30)
async def test_an_earlier_disconnection_still_sends_its_final_event(old_store: Store, clock: FakeClock) -> None:
    store, left = old_store, OLD["left"]
    await fill(store.client, OLD)
    assert await store.key_state.check(store.keys.ring) == 2
    await store.upgrade.run(2)
    assert await store.key_state.check(store.keys.ring) == LAYOUT
    ends = int(await store.client.pexpiretime(spell.hosted(left["user"], left["client"])["docs"]))
    listed = await due(store)
    assert listed.keys() == {f"{left['user']}:{left['client']}"}, "only documents that will end"
    assert abs(next(iter(listed.values())) - ends) < 1000
    await store.upgrade.run(2)
    assert (await due(store)).keys() == listed.keys()
    store.fsck.settle = 0
    assert findings(await checked(store)) == []
    clock.advance(31 * 86400)
    await store.outbox.sweep(wanted)
    (event,) = await store.deliveries.list(left["client"])
    assert (event.type, event.sub) == ("data.deleted", left["user"])
    for other in (OLD["connected"], OLD["left_nothing"]):
        assert await store.deliveries.list(other["client"]) == []


def test_the_test_data_comes_from_the_previous_release() -> None:
    assert OLD["commit"] in (DATA / "write_layout2.py").read_text()
