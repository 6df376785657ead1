"""The relay: a text that is older than the row never stays, and a rebuild finds everybody."""

from __future__ import annotations

import random

import pytest

from store import keys
from store.crypto.seal import new_user_id
from store.directory.entries import entries_of
from store.directory.relay import DirectoryRelay, Listed
from store.keystate import LAYOUT
from store.upgrade import ROLLING
from store.webhooks.relay_wakeup import RelayWakeup
from store.wiring import Store
from tests.support.directory.listed_people import everybody, flaws, rename, sign_up

pytestmark = pytest.mark.gen_test


@pytest.fixture(autouse=True)
def few_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a walk over all shards quick; people of other shards are in none of these tests."""
    monkeypatch.setattr(keys, "SHARDS", keys.SHARDS[:16])
    monkeypatch.setattr("tests.support.directory.listed_people.new_user_id", lambda: f"00{new_user_id()[2:]}")


async def test_a_relay_that_was_held_up_leaves_no_older_name(memory_store: Store) -> None:
    """It took the person before two changes, and writes and settles after another relay has done both."""
    user = await sign_up(memory_store, "ada@example.org", "Ada One")
    late = DirectoryRelay(memory_store.client, memory_store.scripts, RelayWakeup())
    (taken,) = await late._take(user[:3], 10)
    await memory_store.client.delete(keys.directory_relay(user[:3])["relaying"])
    for name in ("Ada Two", "Ada Three"):
        await rename(memory_store, user, name)
    await memory_store.directory_relay.sweep()
    assert await flaws(memory_store, {user: ("ada@example.org", "Ada Three")}) == []
    await late.write([taken])
    assert await late.settle(user[:3], [taken]) == 1
    await memory_store.directory_relay.sweep()
    assert await flaws(memory_store, {user: ("ada@example.org", "Ada Three")}) == []


async def test_a_change_while_a_relay_writes_is_not_lost(memory_store: Store) -> None:
    """The name changes and changes back, so the row reads as before; the former entry must still go."""
    user = await sign_up(memory_store, "ada@example.org", "Ada One")
    relay = memory_store.directory_relay
    (taken,) = await relay._take(user[:3], 10)
    for name in ("Ada Two", "Ada One"):
        await rename(memory_store, user, name)
    await relay.write([taken])
    await relay.sections.change([], entries_of(user, "ada@example.org", "Ada Two"))
    assert await relay.settle(user[:3], [taken]) == 1
    await relay.sweep()
    assert await flaws(memory_store, {user: ("ada@example.org", "Ada One")}) == []


async def test_two_relays_do_not_work_on_one_shard(memory_store: Store) -> None:
    user = await sign_up(memory_store, "ada@example.org", "Ada")
    other = DirectoryRelay(memory_store.client, memory_store.scripts, RelayWakeup())
    assert len(await other._take(user[:3], 10)) == 1
    assert await memory_store.directory_relay.relay([user[:3]]) == 0
    assert await other.relay([user[:3]]) == 1
    assert await flaws(memory_store, {user: ("ada@example.org", "Ada")}) == []


async def test_a_deleted_person_leaves_no_entry(memory_store: Store) -> None:
    memory_store.directory_relay.sections.most = 4
    users = [await sign_up(memory_store, f"turing{n}@example.org", f"Turing{n} Alan") for n in range(20)]
    await memory_store.directory_relay.sweep()
    for user in users:
        await memory_store.people.delete(user)
    await memory_store.directory_relay.sweep()
    left = [key async for key in memory_store.client.scan_iter(count=1000)]
    assert not [key for key in left if b"directory:" in key or b":changed" in key or b":relaying" in key]


async def test_many_people_are_written_together_and_again(memory_store: Store) -> None:
    people = {
        await sign_up(memory_store, f"ada{n}@example.org", "Ada Lovelace"): f"ada{n}@example.org" for n in range(9)
    }
    listed = [Listed(user, email, "Ada Lovelace") for user, email in people.items()]
    changed = listed[0].user
    await rename(memory_store, changed, "Countess")
    for _ in range(2):
        await memory_store.directory.add_many(listed)
    assert [one.user for one in await everybody(memory_store, "countess")] == []
    await memory_store.directory_relay.sweep()
    expected = {user: (email, "Countess" if user == changed else "Ada Lovelace") for user, email in people.items()}
    assert await flaws(memory_store, expected) == []


@pytest.mark.parametrize("most", [3, 12, 120])
async def test_many_entries_of_a_section_are_added_at_once(memory_store: Store, most: int) -> None:
    """Names that begin alike, some longer than an entry, into buckets that are empty, partly full, and full."""
    memory_store.directory_relay.sections.most = most
    chance = random.Random(most)
    names = ("Ada", "Adam", "Adelaide", "A" * 50 + " A", "Ad " * 12, *(f"Ad{chance.random()}" for _ in range(20)))
    people: dict[str, tuple[str, str]] = {}
    for number in (1, 5, 300, 40, 2):
        listed = [
            Listed(new_user_id(), f"ad{chance.randrange(10**6)}@example.org", chance.choice(names))
            for _ in range(number)
        ]
        for _ in range(2):  # a repetition changes nothing
            await memory_store.directory_relay.write(listed)
        people |= {one.user: (one.email, one.name) for one in listed}
    assert await flaws(memory_store, people) == []


async def test_a_rebuild_goes_on_where_it_was_and_removes_what_no_row_says(memory_store: Store) -> None:
    people = {
        await sign_up(memory_store, f"ada{n}@example.org", "Ada"): (f"ada{n}@example.org", "Ada") for n in range(9)
    }
    await memory_store.directory_relay.sweep()
    gone = [key async for key in memory_store.client.scan_iter(match="{directory*", count=1000)]
    await memory_store.client.delete(*gone)
    await memory_store.directory_relay.sections.change([], entries_of("0" * 32, "ghost@example.org", "Ghost"))
    rebuild = memory_store.directory_rebuild
    assert await rebuild.begin() == 0
    async for progress in rebuild.fill(2):
        if progress.done == 8:
            break
    assert await rebuild.begin() == 8
    assert [progress.done async for progress in rebuild.fill(4)] == [12, 16]
    assert [progress async for progress in rebuild.fill()] == []
    assert [progress.left async for progress in rebuild.clean()][-1] == 3
    assert await flaws(memory_store, people) == []


async def test_an_upgrade_lets_servers_fill_the_index(memory_store: Store) -> None:
    user = await sign_up(memory_store, "ada@example.org", "Ada")
    await memory_store.client.delete(keys.changed(user)["changed"])
    await memory_store.client.hset(keys.KEYRING, "layout", LAYOUT - 1)
    await memory_store.upgrade.run(LAYOUT - 1)
    assert await everybody(memory_store, "ada", by="name") == []
    async for _ in memory_store.directory_rebuild.fill():
        pass
    assert [one.user for one in await everybody(memory_store, "ada", by="name")] == [user]


async def test_people_of_servers_that_a_rolling_upgrade_replaces_later_are_found_after_a_reindex(
    memory_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "latchkey.store")
    first = await sign_up(memory_store, "ada@example.org", "Ada")
    await memory_store.client.hset(keys.KEYRING, "layout", ROLLING)
    await memory_store.upgrade.run(ROLLING)
    assert "user reindex" in caplog.text
    async for _ in memory_store.directory_rebuild.fill():
        pass
    # A server of the old layout notes nobody.
    late = await sign_up(memory_store, "ada.late@example.org", "Ada")
    await memory_store.client.delete(keys.changed(late)["changed"])
    assert [one.user for one in await everybody(memory_store, "ada")] == [first]
    await memory_store.directory_rebuild.begin()
    async for _ in memory_store.directory_rebuild.fill():
        pass
    assert {one.user for one in await everybody(memory_store, "ada")} == {first, late}
