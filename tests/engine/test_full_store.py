"""A store at its `maxmemory` keeps reading, ending, freeing and charging; additions are refused and change nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handlers.core.errors import cause_of, refusal_of
from runtime.memory_watch import RoomWatch
from runtime.wiring import document_quotas
from settings.declared import Settings
from store.crypto.keyring import Keys
from store.engine.connect import connect
from store.engine.memory import DOCUMENTS_PART, LEAST_RESERVE, PORTION, Headroom, Room, default_memory, limit_of
from store.errors import StoreFull
from store.refused import Refused, UnknownUser
from store.wiring import Store
from tests.support.calls.every import CALLS
from tests.support.processes.engines import Engine
from tests.support.store.document_app import Keeper
from tests.support.store.lost_answers import store_on
from tests.support.store.world import CALLBACK, SCOPES, VISITOR, World

pytestmark = pytest.mark.slow

REFUSED = {
    "apis.create": "a registration of an API",
    "app_acts.create": "a registration",
    "app_tokens.issue": "an access token",
    "apps.create": "a registration",
    "authorizations.begin": "a pending request",
    "authorizations.decide": "a grant and a code",
    "calls.hold": "a hold, and in the end a reply",
    "device_requests.begin": "a request of a device",
    "assertion_grants.issue": "a grant, a family and its token",
    "device_requests.claim": "a decision, which needs room for a grant",
    "device_requests.decided": "a grant and a code",
    "device_requests.exchange": "a family and its tokens",
    "directory_rebuild.clean": "the note on a person who is compared once more",
    "directory_relay.repeat": "the same",
    "document_fetches.begin": "the mark of a fetch; apps whose documents are kept go on",
    "document_fetches.failed": "the mark of a failed fetch",
    "documents.write": "a document",
    "factors.rename_passkey": "a longer name",
    "initial_tokens.create": "a registration token",
    "address_changes.change": "the index entry of another address",
    "addresses.reserve": "an entry of the index of addresses",
    "identities.reserve": "an entry of the index of identities at other servers",
    "identities.restore": "the same; with room, the next sign-in brings it back",
    "links.change": "an entry of the index of addresses",
    "movers.create": "accounts",
    "movers.update": "an identity at another server",
    "import_state.note": "the place of an import, which can go on when there is room",
    "hash_prices.add": "a price of imported password hashes",
    "operator_keys.create": "a key of an operator",
    "outbox.relay": "the mark of a sweep; what a process tells of by itself goes on",
    "owned.set_logo": "a logo",
    "owned.give": "an entry in an owner's list",
    "owned.register": "a registration",
    "app_sweep.sweep": "what can wait until there is room: it comes again",
    "people_acts.change": "a name and groups",
    "people_acts.change_address": "the index entry of another address",
    "people.create": "an account",
    "people.invite": "an invitation",
    "people.invite_again": "an invitation",
    "pushed.open": "the browser of a pushed request",
    "pushed.push": "a pushed request",
    "payments.begin": "a place in a window; payments that are made are booked all the same",
    "credits.choose_mails": "the mark of unwanted mails",
    "profiles.hide_passkey_offer": "the mark of a hidden offer",
    "profiles.prefer": "a language and a zone",
    "profiles.rename": "a longer name",
    "token_exchange.exchange": "a family and its token",
    "profiles.save_picture": "a picture",
    "provisioning.change": "an id from an outside directory; suspending alone goes on",
    "provisioning.create": "an account",
    "proofs.use": "the mark of a proof, which comes with a request for tokens",
    "self_registered.keep": "a first grant, which is refused too",
    "self_registered.put": "a registration",
    "self_registered.save": "a registration",
    "teams.accept": "a member of a team",
    "teams.invite": "an invitation to a team",
    "tokens.exchange": "a family and its tokens",
    "tokens.mint": "a grant, a family and its tokens",
    "tokens.refresh": "an access token",
    "upstream.admit": "an account, with an identity at another server",
    "upstream.link": "an identity at another server",
}
"""Calls that a full store refuses, each with the data it would add."""


@contextlib.contextmanager
def full(engine: Engine) -> Iterator[None]:
    """Keeps the store over its limit during the block."""
    with engine.client() as direct:
        direct.config_set("maxmemory", "1")
        try:
            yield
        finally:
            direct.config_set("maxmemory", "0")


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("engine", ["valkey_engine", "redis_engine"])
async def test_a_full_store_refuses_only_what_adds_data(
    engine: str, keys: Keys, request: pytest.FixtureRequest
) -> None:
    server: Engine = request.getfixturevalue(engine)
    with server.client() as direct:
        direct.flushall()
    store = store_on(await connect(server.url), keys)
    refused = set()
    for prepared in CALLS.values():
        ready = await prepared.prepare(await World.make(store))
        with full(server):
            try:
                await ready()
            except StoreFull:
                refused.add(prepared.method)
    await store.close()
    assert refused == set(REFUSED)


@pytest.mark.gen_test
@pytest.mark.parametrize("engine", ["valkey_engine", "redis_engine"])
async def test_a_replay_ends_tokens_in_a_full_store_too(
    engine: str, keys: Keys, request: pytest.FixtureRequest
) -> None:
    server: Engine = request.getfixturevalue(engine)
    with server.client() as direct:
        direct.flushall()
    world = await World.make(store_on(await connect(server.url), keys))
    code = await world.code()
    first, other = await world.exchange(code), await world.tokens()
    second = await world.refresh(first.refresh_token)
    with full(server):
        with pytest.raises((Refused, UnknownUser), match="invalid_grant"):
            await world.exchange(code)
        assert not await world.lives(second.access_token)
        with pytest.raises((Refused, UnknownUser), match="invalid_grant"):
            await world.refresh(first.refresh_token)
        assert not await world.lives(other.access_token), "of the same person and app"
    await world.store.close()


def test_a_full_store_is_503_with_its_own_cause() -> None:
    refusal = refusal_of(500, StoreFull("store: OOM"))
    assert (refusal.code, refusal.retry_after) == ("temporarily_unavailable", 30)
    assert cause_of(StoreFull("store: OOM")) == "full"


@pytest.mark.parametrize(
    ("files", "own", "most"),
    [
        pytest.param(
            {"a/b/memory.max": "max", "a/memory.max": "4000"}, "0::/a/b", 3000, id="the group above has a limit"
        ),
        pytest.param({"memory.max": "8000"}, "0::/docker/of/the/host", 6000, id="a container sees its own group only"),
        pytest.param({"memory/x/memory.limit_in_bytes": "400"}, "3:cpu:/x\n4:memory:/x", 300, id="version 1"),
    ],
)
def test_the_default_memory_limit_fits_the_control_group(
    tmp_path: Path, files: dict[str, str], own: str, most: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "own").write_text(own + "\n")
    assert default_memory(tmp_path, tmp_path / "own") == most
    assert default_memory(tmp_path, tmp_path / "none") > 2**20, "of the machine"


def test_every_store_keeps_a_reserve() -> None:
    assert limit_of(2**30) == 2**30 - 2**26
    assert limit_of(2**26) == 2**26 - LEAST_RESERVE


def test_a_filling_store_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    watch = RoomWatch()
    with caplog.at_level(logging.INFO, "latchkey.store"):
        for used in (10, 71, 69, 80, 76, 100, 120, 99, 82, 79, 74, 66, 64, 10):
            watch.note(Room(used << 20, 100 << 20))
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the store is nearly full",
        "the store is too full for documents",
        "the store is full",
        "the store is too full for documents",
        "the store is nearly full",
        "the store is well",
    ]
    assert watch.seen == Room(10 << 20, 100 << 20)


def test_documents_are_refused_before_the_store_is_full() -> None:
    headroom = Headroom()
    assert not headroom.low, "nothing is known"
    headroom.note(Room(500 << 20, 0))
    headroom.grew(1 << 30)
    assert not headroom.low, "a store without a limit"
    line = int(6400 * DOCUMENTS_PART)
    headroom.note(Room(line - 10, 6400))
    headroom.grew(9)
    assert not headroom.low
    headroom.grew(1)
    assert headroom.low
    with pytest.raises(StoreFull):
        headroom.require()
    assert not headroom.wanted.is_set()
    headroom.grew(6400 // PORTION - 9)
    assert headroom.wanted.is_set(), "this process alone has written a part that counts"
    headroom.note(Room(line - 1, 6400))
    assert not headroom.low


@pytest.mark.gen_test
async def test_above_the_threshold_only_growth_is_refused(memory_store: Store) -> None:
    world = await World.make(memory_store)
    keeper = await Keeper.make(world)
    await keeper.put("a/1", b"12345")
    await world.store.profiles.save_picture(world.session, b"image", VISITOR)
    world.store.headroom.note(Room(90, 100))
    for name, content in (("a/2", b"1"), ("a/1", b"123456")):
        with pytest.raises(Refused, match="quota_exceeded") as refused:
            await keeper.put(name, content)
        assert refused.value.description == "All apps of this server together keep as much as they may."
        assert refused.value.window is not None
    for content in (b"54321", b"1"):
        await keeper.put("a/1", content)
    await keeper.delete("a/1")
    with pytest.raises(StoreFull):
        await world.store.profiles.save_picture(world.session, b"another", VISITOR)
    await world.store.profiles.save_picture(world.session, b"", VISITOR)
    facts: dict[str, Any] = {"name": "An App", "redirect_uris": (CALLBACK,), "scopes": SCOPES}
    with pytest.raises(StoreFull):
        await world.store.owned.register(world.session, "nonce", VISITOR, most=20, **facts)
    world.store.headroom.note(Room(79, 100))
    await world.store.owned.register(world.session, "nonce", VISITOR, most=20, **facts)
    await keeper.put("a/2", b"1")


@pytest.mark.gen_test
async def test_the_watch_checks_again_after_many_writes(redis_engine: Engine, keys: Keys) -> None:
    store = store_on(await connect(redis_engine.url), keys)
    with redis_engine.client() as direct:
        direct.config_set("maxmemory", "100000000")
    watching = asyncio.ensure_future(RoomWatch(tells=False).watch(store))
    try:
        async with asyncio.timeout(5):
            while not store.headroom.seen.limit:
                await asyncio.sleep(0.01)
            with redis_engine.client() as direct:
                direct.config_set("maxmemory", "90000000")
            store.headroom.grew(100_000_000 // PORTION + 1)
            while store.headroom.seen.limit != 90_000_000:
                await asyncio.sleep(0.01)
    finally:
        watching.cancel()
        with redis_engine.client() as direct:
            direct.config_set("maxmemory", "0")
        await store.close()


def test_one_person_gets_only_a_share_of_a_small_store(memory_store: Store) -> None:
    documents, headroom = memory_store.documents, memory_store.headroom
    documents.quotas = document_quotas(Settings())
    assert documents.person_bytes == 256 << 20, "nothing is known of the store"
    for limit, most in ((2**40, 256 << 20), (2**32, 64 << 20), (2**26, 4 << 20)):
        headroom.note(Room(0, limit))
        assert documents.person_bytes == most
    documents.quotas = document_quotas(Settings(person_storage_limit=2**30))
    headroom.note(Room(0, 2**26))
    assert documents.person_bytes == 2**30, "what the operator says counts"
