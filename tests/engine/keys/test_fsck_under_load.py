"""The check of a store in use, of a large store, and of one some weeks old."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from runtime import demo
from store import keys
from store.crypto.seal import new_id, new_user_id
from store.engine.connect import connect
from store.fsck import walk
from store.fsck.reading import Reader
from store.lifetimes import DAY
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.browser.furnished_account import furnish
from tests.support.browser.pages import ROOT
from tests.support.browser.tour_kit import Stand
from tests.support.processes.engines import Engine
from tests.support.store.checked_store import EVERYTHING, broken, checked, findings
from tests.support.store.credit_spender import REPLY, Spender
from tests.support.store.document_app import Keeper
from tests.support.store.lost_answers import store_on
from tests.support.store.second_factors import reauth
from tests.support.store.world import CALLBACK, VISITOR, World, to_change

pytestmark = pytest.mark.slow

KEYS = int(os.environ.get("LATCHKEY_FSCK_KEYS", "10000"))
WALKS = 3
SETTLE = 2.5
"""Seconds; every step here takes less."""
PACE = 0.05
"""Seconds between two rounds of one writer, and at least as long as a round took: looks that take longer are disturbed
every time, and count as busy. On a busy machine both take longer."""
OWN: dict[str, Any] = {"name": "Mine", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}
Round = Callable[[int], Awaitable[object]]


@pytest.fixture(autouse=True)
def few_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a walk over all shards, as the deletion of an app does it, quick."""
    monkeypatch.setattr(keys, "SHARDS", keys.SHARDS[:64])


@pytest.fixture
def valkey_store(open_store: OpenStore, valkey_engine: Engine) -> Store:
    """A store on Valkey."""
    valkey_engine.empty()
    return open_store(valkey_engine.url)


@pytest.fixture
def others(open_store: OpenStore, valkey_store: Store, valkey_engine: Engine) -> list[Store]:
    """The same store over separate connections, as other processes have it."""
    return [open_store(valkey_engine.url) for _ in range(7)]


@contextlib.asynccontextmanager
async def over_and_over(*rounds: Round) -> AsyncIterator[list[int]]:
    """Repeats each of these while the block runs. Yields the counts; raises what a round raised."""
    done, counts = asyncio.Event(), [0] * len(rounds)

    async def repeat(place: int, does: Round) -> None:
        while not done.is_set():
            began = time.monotonic()
            await does(counts[place])
            counts[place] += 1
            await asyncio.sleep(max(PACE, time.monotonic() - began))

    tasks = [asyncio.ensure_future(repeat(place, does)) for place, does in enumerate(rounds)]
    try:
        yield counts
    finally:
        done.set()
        await asyncio.gather(*tasks)


async def at_work(stores: list[Store]) -> list[Round]:
    """Typical work of people and apps, each in its own world over its own connections."""
    worlds = [await World.make(store, scopes=EVERYTHING) for store in stores]
    writer, rotating, leaving, spending, coming, owning, moving = worlds
    keeper = await Keeper.make(writer, scopes=EVERYTHING)
    await keeper.fill(450, collections=3)
    spender = await Spender.make(spending, scopes=EVERYTHING)
    await spending.store.credits.grant(spending.user, 10**9)

    async def documents(number: int) -> None:
        await keeper.put(f"more/{number % 40}", b"x" * (number % 90))
        if number % 3 == 0:
            await keeper.delete(f"more/{number % 40}")

    async def tokens(number: int) -> None:
        await rotating.fresh_window()
        await rotating.store.client.delete(keys.limit(rotating.user, "authorize"))
        first = await rotating.tokens()
        await rotating.refresh((await rotating.refresh(first.refresh_token)).refresh_token)
        if number % 5 == 0:
            with contextlib.suppress(Exception):
                await rotating.refresh(first.refresh_token)

    async def connections(number: int) -> None:
        kept = await Keeper.make(leaving, scopes=EVERYTHING)
        await kept.put(f"notes/{number % 9}")
        await leaving.revoke_app()

    async def calls(number: int) -> None:
        hold = await spender.hold(30, key=f"key {number}")
        if number % 3:
            await spender.settle(hold, 20, reply=REPLY)
        else:
            await spending.store.calls.release(hold)
        if number % 4 == 0:
            await spending.store.credits.grant(spending.user, 5)

    async def accounts(number: int) -> None:
        email = f"comes.and.goes.{number}@example.com"
        user = await coming.person(email)
        session = await coming.sign_in(email)
        await coming.store.tokens.mint(user, coming.app, ("profile", "data:write"))
        await coming.store.sessions.end(session, VISITOR)
        await coming.store.people.delete(user)

    async def apps(number: int) -> None:
        await owning.store.client.delete(keys.limit(owning.user, "register-app"))
        made = await owning.store.owned.register(owning.session, f"nonce {number}", VISITOR, most=9, **OWN)
        client = made.registration.client_id
        await owning.store.client.delete(keys.limit(owning.user, "own-password"))
        await reauth(owning)
        await owning.store.owned.delete(owning.session, client, VISITOR)
        await owning.store.apps.finish_deletion(client)

    async def addresses(number: int) -> None:
        for purpose in ("change", "confirm", "reset"):
            await moving.store.client.delete(keys.limit(moving.user, f"mail-{purpose}"))
        new = f"moving.{number}@example.com"
        link = await to_change(moving.store, moving.session, new)
        assert link is not None
        await moving.store.links.change(moving.session, link.text, VISITOR)
        # As when the week is over in which the change can be undone: there are ten of them at most.
        await moving.store.client.delete(keys.email(moving.email))
        await moving.store.client.delete(keys.person(moving.user)["undos"])
        moving.email = new

    return [documents, tokens, connections, calls, accounts, apps, addresses]


@pytest.mark.gen_test(timeout=120)
async def test_a_check_under_load_finds_nothing(valkey_store: Store, others: list[Store]) -> None:
    rounds = await at_work(others)
    valkey_store.fsck.settle = SETTLE
    async with over_and_over(*rounds) as counts:
        before = list(counts)
        for _ in range(WALKS):
            report = await checked(valkey_store, deep=True)
            assert (findings(report), report.busy) == ([], 0)
        assert all(now > then for now, then in zip(counts, before, strict=True)), "each was at work meanwhile"
    report = await checked(valkey_store, deep=True)
    assert findings(report) == []


@pytest.mark.gen_test(timeout=120)
async def test_a_repair_under_load_changes_no_sound_data(valkey_store: Store, others: list[Store]) -> None:
    rounds = await at_work(others)
    valkey_store.fsck.settle = SETTLE
    world = await World.make(valkey_store)
    keeper = await Keeper.make(world)
    await keeper.put("notes/n1")
    await valkey_store.client.zrem(keeper.keys()["index"], "notes/n1")
    async with over_and_over(*rounds):
        report = await checked(valkey_store, repair=True)
    assert broken(report) == {"documents"}
    assert findings(await checked(valkey_store, deep=True)) == []
    await keeper.recount()


@pytest.mark.gen_test(timeout=60)
async def test_fsck_needs_no_more_rights_than_a_server(valkey_store: Store, valkey_engine: Engine) -> None:
    rules = re.search(r"user latchkey (on .*)", (ROOT / "docs" / "security.md").read_text("utf-8"))
    assert rules
    world = await World.make(valkey_store)
    keeper = await Keeper.make(world)
    await keeper.put("notes/n1")
    await valkey_store.client.hset(keeper.keys()["usage"], "documents", "7")
    with valkey_engine.client() as direct:
        direct.execute_command("ACL", "SETUSER", "latchkey", *rules[1].replace(">a-long-random-password", ">x").split())
    try:
        client = await connect(valkey_engine.url.replace("unix://", "unix://latchkey@") + "?password=x")
        limited = store_on(client, valkey_store.keys)
        limited.fsck.settle = 0
        assert broken(await checked(limited, deep=True, repair=True)) - {"stored"} == {"usage"}
        assert findings(await checked(limited, deep=True)) == []
        with valkey_engine.client() as direct:
            assert "latchkey" in {one["user"] for one in direct.client_list()}
        await limited.close()
    finally:
        with valkey_engine.client() as direct:
            direct.execute_command("ACL", "DELUSER", "latchkey")


async def stock_keys(store: Store, number: int) -> None:
    """Writes `number` keys: people, each with some refresh families."""
    async with store.client.pipeline(transaction=False) as batch:
        for place in range(number // 10):
            user, email = new_user_id(), f"one.of.many.{place}@example.com"
            person = keys.person(user)
            row: dict[Any, Any] = {"status": "active", "epoch": "1", "email": email, "created_at": "1"}
            batch.hset(person["user"], mapping={**row, "name": "N", "password": "x"})
            batch.sadd(person["users"], keys.member(user))
            batch.set(keys.email(email), user)
            batch.set(person["audit"], "1 signed_up   \n")
            batch.hset(keys.changed(user)["changed"], keys.member(user), "")  # the index has yet to be written
            for _ in range(6):
                family = keys.token(user, "-", new_id(), 0)["family"]
                batch.hset(family, mapping={"generation": "1", "scope": "profile", "epoch": "7"})
                batch.pexpire(family, DAY)
        await batch.execute()


@pytest.mark.gen_test(timeout=600)
async def test_a_large_store_is_read_in_small_steps(
    valkey_store: Store, valkey_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await World.make(valkey_store, scopes=EVERYTHING)
    keeper = await Keeper.make(world, scopes=EVERYTHING)
    await keeper.fill(10_000, collections=500)
    await valkey_store.credits.grant(world.user, 10**9)
    spender = await Spender.make(world, scopes=EVERYTHING)
    for _ in range(300):
        await spender.spend(1)
    await stock_keys(valkey_store, KEYS)
    reads: list[int] = []
    look = Reader.look

    async def noted(reader: Reader, anchor: str, *commands: Any) -> Any:
        reads.append(len(commands))
        return await look(reader, anchor, *commands)

    monkeypatch.setattr(Reader, "look", noted)
    valkey_store.fsck.settle = 0
    with valkey_engine.client() as direct:
        direct.config_resetstat()
        report = await checked(valkey_store, deep=KEYS < 50_000)
        stats: Any = direct.info("commandstats")
    assert findings(report) == []
    assert report.seen > KEYS * 9 // 10
    assert (report.documents, report.busy) == (10_000, 0)
    assert max(reads) <= 800
    # By the store's own clock: what a step of the walk has it do at once. Keys of a slot share calls.
    spent = stats["cmdstat_evalsha"]
    assert spent["usec"] / report.seen * walk.AT_ONCE < 20_000
    assert spent["calls"] < report.seen
    assert stats.keys() & {"cmdstat_keys", "cmdstat_smembers", "cmdstat_hvals"} == set()


def test_an_account_in_use_for_weeks_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stand() as stand:
        stand.run(furnish(stand))

        async def check() -> None:
            stand.store.fsck.settle = 0
            await stand.store.app_stats.flush()
            report = await checked(stand.store, deep=True)
            assert findings(report) == []
            assert report.people == 1
            person = (await stand.store.operator.find(demo.EMAIL)).user
            await stand.store.people.delete(person)
            monkeypatch.setattr(keys, "SHARDS", (person[:3],))
            for app in await stand.store.apps.list():
                await stand.store.apps.delete(app.client_id)
            report = await checked(stand.store, deep=True)
            assert findings(report) == []
            assert (report.people, report.apps, report.documents) == (0, 0, 0)

        stand.run(check())
