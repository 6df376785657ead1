"""An address change spans two slots: wherever it is interrupted, exactly one address signs the person in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from store import keys as spell
from store.crypto.keyring import Keys
from store.crypto.seal import TokenKind
from store.engine.connect import connect
from store.errors import StoreUnavailable
from store.lifetimes import UNDO_LINK
from store.refused import SignedOut
from store.wiring import Store
from tests.accounts.test_links import NEW, text_of
from tests.support.processes.engines import Engine
from tests.support.store.lost_answers import SCRIPTS, Armed, losing, store_on
from tests.support.store.world import PASSWORD, VISITOR, World, every_key, refusal_of, to_change

pytestmark = pytest.mark.gen_test

Crash = Callable[[World, Armed], Awaitable[None]]


async def signs_in(store: Store, user: str, *emails: str) -> list[str]:
    """The addresses that sign this person in with the password."""
    found = [(email, await store.people.verify(email, PASSWORD)) for email in emails]
    return [email for email, credentials in found if credentials and credentials.user == user]


async def test_a_change_link_changes_the_address(store: Store) -> None:
    world = await World.make(store)
    text = await text_of(to_change(store, world.session, NEW))
    seen = await store.links.look(TokenKind.CHANGE, text)
    assert (seen.email, seen.mailed_to, seen.used) == (world.email, NEW, False)
    done = await store.links.change(world.session, text, VISITOR)
    assert (done.old, done.new, done.again) == (world.email, NEW, False)
    assert await signs_in(store, world.user, world.email, NEW) == [NEW]
    assert await store.people.find(world.email) == world.user, "kept for a week, in which the change can be undone"
    assert UNDO_LINK - 5000 < await store.client.pttl(spell.email(world.email)) <= UNDO_LINK
    assert await store.client.pttl(spell.email(NEW)) == -1
    profile = await store.sessions.profile(world.session)
    assert (profile.email, profile.email_verified) == (NEW, True)
    assert (await store.links.change(world.session, text, VISITOR)).again, "a second click is answered kindly"
    assert await world.events() == ["signed_up", "signed_in", "email_change_asked", "email_changed"]
    assert await refusal_of(world.person(world.email)) == "invalid_request"
    await store.client.delete(spell.email(world.email))  # as when the week is over
    assert await world.person(world.email)
    # A late click leaves an address that somebody else has by now.
    await store.links.change(world.session, text, VISITOR)
    assert await store.people.find(world.email) != world.user
    assert await store.client.pttl(spell.email(world.email)) == -1


async def test_an_address_taken_meanwhile_is_refused(store: Store) -> None:
    world = await World.make(store)
    text = await text_of(to_change(store, world.session, NEW))
    other = await world.person(NEW)
    assert await refusal_of(store.links.change(world.session, text, VISITOR)) == "invalid_request"
    assert await signs_in(store, world.user, world.email, NEW) == [world.email]
    assert await store.people.find(NEW) == other


async def test_two_people_cannot_both_get_one_address(store: Store) -> None:
    first, second = await World.make(store), await World.make(store)
    one = await text_of(to_change(store, first.session, NEW))
    two = await text_of(to_change(store, second.session, NEW))
    await store.links.change(first.session, one, VISITOR)
    assert await refusal_of(store.links.change(second.session, two, VISITOR)) == "invalid_request"
    assert await signs_in(store, first.user, first.email, NEW) == [NEW]
    assert await signs_in(store, second.user, second.email, NEW) == [second.email]


async def test_another_change_invalidates_earlier_links(store: Store) -> None:
    world = await World.make(store)
    text = await text_of(to_change(store, world.session, NEW))
    await store.links.change(world.session, text, VISITOR)
    reset = await text_of(store.links.to_reset(world.user, NEW))
    again = await text_of(to_change(store, world.session, world.email))
    assert await refusal_of(store.links.change(world.session, text, VISITOR)) == "invalid_request"
    await store.links.change(world.session, again, VISITOR)
    assert await refusal_of(store.links.reset(reset, PASSWORD, VISITOR)) == "invalid_request"
    assert await signs_in(store, world.user, world.email, NEW) == [world.email]
    assert await store.client.pttl(spell.email(world.email)) == -1
    assert 0 < await store.client.pttl(spell.email(NEW)) <= UNDO_LINK


async def test_concurrent_clicks_change_the_address_once_without_errors(store: Store) -> None:
    world = await World.make(store)
    text = await text_of(to_change(store, world.session, NEW))
    done = await asyncio.gather(*(store.links.change(world.session, text, VISITOR) for _ in range(10)))
    assert [change.again for change in done].count(False) == 1
    assert {(change.old, change.new) for change in done} == {(world.email, NEW)}
    assert await signs_in(store, world.user, world.email, NEW) == [NEW]
    assert (await world.events()).count("email_changed") == 1


async def test_a_concurrent_sign_up_and_change_give_an_address_to_one(store: Store) -> None:
    for round in range(5):
        new, world = f"new{round}@example.com", await World.make(store)
        text = await text_of(to_change(store, world.session, new))
        answers = await asyncio.gather(
            refusal_of(world.person(new)), refusal_of(store.links.change(world.session, text, VISITOR))
        )
        assert sorted(answers, key=str) == [None, "invalid_request"]
        owner = await store.people.find(new)
        assert owner is not None
        assert await signs_in(store, owner, new) == [new]
        assert await signs_in(store, world.user, world.email, new) == [new if owner == world.user else world.email]


async def _after_reserving(armed: Armed) -> None:
    armed.lose_request = True
    armed.arm("confirm_email", 2)


async def _after_making_it_last(armed: Armed) -> None:
    armed.arm("confirm_email", 2)


async def _before_the_row(armed: Armed) -> None:
    armed.lose_request = True
    armed.arm("change_address")


async def _after_the_row(armed: Armed) -> None:
    armed.arm("change_address")


async def _before_keeping(armed: Armed) -> None:
    armed.lose_request = True
    armed.arm("hold_email", 2)


async def _after_keeping(armed: Armed) -> None:
    armed.arm("hold_email", 2)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(32)
@pytest.mark.parametrize(
    ("crash", "moved"),
    [
        pytest.param(_after_reserving, False, id="after the new address was reserved"),
        pytest.param(_after_making_it_last, False, id="after the reservation was made to last"),
        pytest.param(_before_the_row, False, id="before the row was written"),
        pytest.param(_after_the_row, True, id="after the row was written"),
        pytest.param(_before_keeping, True, id="before the old address got an end"),
        pytest.param(_after_keeping, True, id="after the old address got an end"),
    ],
)
async def test_an_interrupted_change_locks_nobody_out_and_can_be_finished(
    valkey_engine: Engine, keys: Keys, crash: Callable[[Armed], Awaitable[None]], moved: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        store = world.store
        text = await text_of(to_change(store, world.session, NEW))
        await crash(armed)
        with pytest.raises(StoreUnavailable):
            await store.links.change(world.session, text, VISITOR)
        armed.times = 0
        works = NEW if moved else world.email
        assert await signs_in(store, world.user, world.email, NEW) == [works]
        assert await store.people.find(works) == world.user
        assert await world.sign_in(works)
        assert (await store.links.change(world.session, text, VISITOR)).again is moved
        assert await signs_in(store, world.user, world.email, NEW) == [NEW]
        assert 0 < await store.client.pttl(spell.email(world.email)) <= UNDO_LINK
        assert await store.client.pttl(spell.email(NEW)) == -1
        assert (await world.events()).count("email_changed") == 1


class Between(Armed):
    """A client that lets something else happen just before a script runs."""

    def __init__(self, client: Redis, script: str, act: Callable[[], Awaitable[object]]) -> None:
        self._client = client
        self.sha = SCRIPTS[script].sha
        self._act: Callable[[], Awaitable[object]] | None = act

    async def evalsha(self, sha: str, *words: Any) -> Any:
        if sha == self.sha and self._act:
            act, self._act = self._act, None
            await act()
        return await self._client.evalsha(sha, *words)


@asynccontextmanager
async def between(engine: Engine, keys: Keys, script: str, act: str) -> AsyncIterator[tuple[World, Store]]:
    """A world, and a store on which the person deletes the account or changes the address just before the script."""
    direct = await connect(engine.url)
    await direct.flushall()
    world = await World.make(store_on(direct, keys))
    text = await text_of(to_change(world.store, world.session, NEW))

    async def happen() -> None:
        if act == "delete":
            await world.store.people.delete(world.user)
        else:
            await world.store.links.change(world.session, text, VISITOR)

    other: Any = Between(await connect(engine.url), script, happen)
    store = store_on(other, keys)
    yield world, store
    await store.close()
    await world.store.close()


async def index_of(store: Store) -> set[bytes]:
    return set(await every_key(store.client, "{email:*"))


async def test_deletion_releases_the_current_address(valkey_engine: Engine, keys: Keys) -> None:
    async with between(valkey_engine, keys, "delete_user", "change") as (world, store):
        await store.people.delete(world.user)
        assert await index_of(store) == set()
        assert await world.person(NEW)
        assert await world.person(world.email)


@pytest.mark.parametrize("script", ["confirm_email", "change_address", "hold_email"])
async def test_a_change_during_a_deletion_leaves_no_address_behind(
    valkey_engine: Engine, keys: Keys, script: str
) -> None:
    async with between(valkey_engine, keys, script, "delete") as (world, store):
        text = await text_of(to_change(world.store, world.session, NEW))
        if script == "hold_email":
            await store.links.change(world.session, text, VISITOR)
        else:
            with pytest.raises(SignedOut):
                await store.links.change(world.session, text, VISITOR)
        assert await index_of(store) == set()


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize(
    ("crash", "moved"),
    [
        pytest.param(_after_making_it_last, False, id="after the reservation was made to last"),
        pytest.param(_before_the_row, False, id="before the row was written"),
        pytest.param(_after_the_row, True, id="after the row was written"),
        pytest.param(_before_keeping, True, id="before the old address got an end"),
    ],
)
async def test_a_leftover_new_address_is_free_and_a_restorable_old_one_is_not(
    valkey_engine: Engine, keys: Keys, crash: Callable[[Armed], Awaitable[None]], moved: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        store = world.store
        text = await text_of(to_change(store, world.session, NEW))
        await crash(armed)
        with pytest.raises(StoreUnavailable):
            await store.links.change(world.session, text, VISITOR)
        armed.times = 0
        if moved:
            assert await refusal_of(world.person(world.email)) == "invalid_request"
            assert await signs_in(store, world.user, world.email, NEW) == [NEW]
            return
        new = await world.person(NEW)
        assert await store.people.find(NEW) == new
        # Clicking the link again takes the address from nobody.
        assert await refusal_of(store.links.change(world.session, text, VISITOR)) == "invalid_request"
        assert await signs_in(store, new, NEW) == [NEW]
        assert await signs_in(store, world.user, world.email, NEW) == [world.email]


async def test_a_change_can_take_a_leftover_address(store: Store) -> None:
    world = await World.make(store)
    await store.client.set(spell.email(NEW), "f" * 32)
    text = await text_of(to_change(store, world.session, NEW))
    await store.links.change(world.session, text, VISITOR)
    assert await signs_in(store, world.user, world.email, NEW) == [NEW]
    assert await store.client.pttl(spell.email(NEW)) == -1
