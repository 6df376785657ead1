"""Hosted documents under real concurrency: two stores on one Valkey, and two server processes. SPEC 4.6."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from tornado.httpclient import HTTPResponse

from store.documents.documents import Conditions, Quotas
from store.lifetimes import Group
from store.refused import Refused
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.http.driver import Service, json_of, send
from tests.support.processes import two_servers
from tests.support.processes.engines import Engine
from tests.support.processes.processes import Pair, at_once, pair
from tests.support.store.document_app import Keeper
from tests.support.store.world import World, refusal_of

CROWD = 100
ALWAYS = Conditions()
within_a_minute = pytest.mark.gen_test(timeout=60)
Both = tuple[Keeper, Keeper]


@pytest.fixture
def stores(valkey_engine: Engine, open_store: OpenStore) -> tuple[Store, Store]:
    """Two stores on one engine, like two processes, with windows so wide that only quotas decide."""
    both = open_store(valkey_engine.url), open_store(valkey_engine.url)
    for store in both:
        for name in ("data_read", "data_write", "data_list"):
            group: Group = getattr(store.rates, name)
            setattr(store.rates, name, Group(group.name, 1_000_000))
    return both


async def both(stores: tuple[Store, Store], **quotas: int) -> Both:
    """One app of one person on both stores."""
    keeper = await Keeper.make(await World.make(stores[0]))
    for store in stores:
        store.documents.quotas = Quotas(**quotas)
    return keeper, Keeper(stores[1], keeper.caller)


async def write(keeper: Keeper, name: str, content: bytes = b"1", conditions: Conditions = ALWAYS) -> str:
    """How a write ended: `created`, `replaced` or the code of the refusal."""
    collection, document_id = name.split("/")
    try:
        _, created, _ = await keeper.store.documents.write(
            keeper.caller, "data:write", collection, document_id, content, conditions
        )
    except Refused as refused:
        return refused.code
    return "created" if created else "replaced"


@within_a_minute
async def test_100_concurrent_writes_never_exceed_the_number_of_documents(stores: tuple[Store, Store]) -> None:
    apps = await both(stores, documents=30)
    ended = await at_once(write(apps[n % 2], f"c{n % 7}/n{n}") for n in range(CROWD))
    assert Counter(ended) == {"created": 30, "quota_exceeded": CROWD - 30}
    assert (await apps[0].recount()).documents == 30


@within_a_minute
async def test_100_concurrent_writes_never_exceed_the_number_of_collections(stores: tuple[Store, Store]) -> None:
    apps = await both(stores, collections=9)
    ended = await at_once(write(apps[n % 2], f"c{n % 50}/n{n}") for n in range(CROWD))
    usage = await apps[0].recount()
    assert len(usage.collections) == 9
    assert Counter(ended)["created"] == usage.documents


@within_a_minute
async def test_100_concurrent_writes_never_exceed_the_bytes(stores: tuple[Store, Store]) -> None:
    apps = await both(stores, bytes=3_000)
    order = random.Random(4)
    sizes = [order.randint(1, 200) for _ in range(CROWD)]
    names = [f"notes/n{order.randrange(60)}" for _ in range(CROWD)]
    for _ in range(3):
        ended = await at_once(write(apps[n % 2], names[n], b"x" * sizes[n]) for n in range(CROWD))
        assert "quota_exceeded" in ended
        assert set(ended) <= {"created", "replaced", "quota_exceeded"}
        assert (await apps[0].recount()).bytes <= 3_000
        order.shuffle(sizes)
        names.append(names.pop(0))


@within_a_minute
async def test_after_concurrent_writes_and_deletions_usage_matches_a_recount(stores: tuple[Store, Store]) -> None:
    apps = await both(stores, documents=40, collections=5, bytes=3_000)
    order = random.Random(7)

    async def change(n: int) -> None:
        name, keeper = f"c{order.randrange(8)}/n{order.randrange(12)}", apps[n % 2]
        if order.random() < 0.6:
            await write(keeper, name, b"x" * order.randint(1, 150))
        else:
            collection, document_id = name.split("/")
            await refusal_of(
                keeper.store.documents.delete(keeper.caller, "data:write", collection, document_id, ALWAYS)
            )

    for _ in range(4):
        await at_once(change(n) for n in range(CROWD))
        usage = await apps[1].recount()
        assert usage.documents <= 40
        assert usage.bytes <= 3_000
        assert len(usage.collections) <= 5
        reported, _ = await stores[0].documents.usage(apps[0].caller, "data:read")
        assert reported == usage


@within_a_minute
async def test_one_of_100_concurrent_creations_wins(stores: tuple[Store, Store]) -> None:
    apps = await both(stores)
    none = Conditions(if_none_match=True)
    ended = await at_once(write(apps[n % 2], "notes/n1", b"%d" % n, none) for n in range(CROWD))
    assert Counter(ended) == {"created": 1, "precondition_failed": CROWD - 1}
    assert (await apps[0].get("notes/n1"))[1] == b"%d" % ended.index("created")
    await apps[0].recount()


@within_a_minute
async def test_one_of_100_concurrent_writes_to_an_etag_wins_each_round(stores: tuple[Store, Store]) -> None:
    apps = await both(stores)
    found, _, _ = await apps[0].put("notes/n1", b"0")
    for _ in range(3):
        condition = Conditions(found.etag)
        ended = await at_once(write(apps[n % 2], "notes/n1", b"%d" % n, condition) for n in range(CROWD))
        assert Counter(ended) == {"replaced": 1, "precondition_failed": CROWD - 1}
        found, content, _ = await apps[1].get("notes/n1")
        assert content == b"%d" % ended.index("replaced")


@within_a_minute
async def test_a_hundred_etag_guarded_increments_lose_no_update(stores: tuple[Store, Store]) -> None:
    apps = await both(stores)
    await apps[0].put("notes/n1", b"0")

    async def add_one(keeper: Keeper) -> None:
        while True:
            found, content, _ = await keeper.store.documents.read(keeper.caller, "data:read", "notes", "n1")
            condition = Conditions(found.etag)
            if await write(keeper, "notes/n1", b"%d" % (int(content) + 1), condition) == "replaced":
                return

    await at_once(add_one(apps[n % 2]) for n in range(20))
    assert (await apps[0].get("notes/n1"))[1] == b"20"


@within_a_minute
async def test_a_listing_neither_skips_nor_repeats_what_persists(stores: tuple[Store, Store]) -> None:
    apps = await both(stores)
    lasting = [f"k{number:03}" for number in range(0, 60, 2)]
    passing = [f"k{number:03}" for number in range(1, 60, 2)]
    for document_id in lasting:
        await apps[0].put(f"notes/{document_id}")
    done = asyncio.Event()

    async def disturb(number: int) -> None:
        order, keeper = random.Random(number), apps[number % 2]
        while not done.is_set():
            document_id = order.choice(passing)
            await write(keeper, f"notes/{document_id}")
            await write(keeper, f"notes/{order.choice(lasting)}", b"22")
            call = keeper.store.documents.delete(keeper.caller, "data:write", "notes", document_id, ALWAYS)
            await refusal_of(call)

    async def look(most: int) -> None:
        for _ in range(4):
            ids = await apps[most % 2].walk("notes", most=most)
            assert ids == sorted(set(ids)), "in order, none twice"
            assert set(lasting) <= set(ids) <= set(lasting + passing)

    disturbing = [asyncio.create_task(disturb(number)) for number in range(6)]
    try:
        await at_once(look(most) for most in (1, 3, 7, 10))
    finally:
        done.set()
        await at_once(disturbing)
    await apps[0].recount()


@within_a_minute
@pytest.mark.spec("3.1")
async def test_no_write_succeeds_after_an_acknowledged_revocation(stores: tuple[Store, Store]) -> None:
    world = await World.make(stores[0])
    keeper = await Keeper.make(world)
    apps = (keeper, Keeper(stores[1], keeper.caller))
    await keeper.put("notes/first")
    revoked = False

    async def later(n: int) -> tuple[bool, str]:
        began_after = revoked
        return began_after, await write(apps[n % 2], f"notes/n{n}")

    async def revoke() -> None:
        nonlocal revoked
        await world.revoke_app()
        revoked = True

    async def one_after_another(row: int) -> list[tuple[bool, str]]:
        return [await later(row * 25 + n) for n in range(25)]

    *ended, _ = await asyncio.gather(*(one_after_another(row) for row in range(8)), revoke())
    flat = [each for row in ended if row is not None for each in row]
    assert {word for after, word in flat if after} == {"invalid_token"}
    assert {word for _, word in flat} <= {"created", "invalid_token"}
    usage = await keeper.recount()
    assert usage.documents == 1 + sum(word == "created" for _, word in flat)
    ends = {await stores[0].client.pexpiretime(key) for key in keeper.keys().values()}
    assert len(ends) == 1, "no write made a key with an end of its own"
    assert -1 not in ends, "or without one"


@pytest.fixture(scope="module")
def two() -> Iterator[Pair]:
    """Two servers with small quotas."""
    with pair("--document-limit", "20", "--collection-limit", "4", "--storage-limit", "100000") as made:
        yield made


service = two_servers.service


async def crowd(service: Service, two: Pair, method: str, paths: list[str], **headers: str) -> list[HTTPResponse]:
    """The requests at the same time, spread over both servers, with one token."""
    app = await service.store.apps.find(service.web.client_id)
    assert app is not None
    tokens = await service.store.tokens.mint(service.ada, app, ("data:read", "data:write"))
    sent = {"Authorization": f"Bearer {tokens.access_token}", "Content-Type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    urls = [f"{two.servers[n % 2].here}/api/v1/data/{path}" for n, path in enumerate(paths)]
    return await at_once(send(url, method, body="1" if method == "PUT" else None, headers=sent) for url in urls)


@within_a_minute
async def test_quotas_hold_across_two_servers(service: Service, two: Pair) -> None:
    responses = await crowd(service, two, "PUT", [f"c{n % 6}/n{n}" for n in range(60)])
    codes = Counter(one.code for one in responses)
    assert codes == {201: 20, 507: 40}
    assert {json_of(one)["error"] for one in responses if one.code == 507} == {"quota_exceeded"}
    [usage] = await crowd(service, two, "GET", ["_meta/usage"])
    reported = json_of(usage)
    assert reported["documents"] == {"used": 20, "limit": 20}
    assert len(reported["collections"]) <= 4
    assert sum(row["documents"] for row in reported["collections"]) == 20


@within_a_minute
@pytest.mark.spec("8.1")
async def test_conditions_and_windows_hold_across_two_servers(service: Service, two: Pair) -> None:
    responses = await crowd(service, two, "PUT", ["notes/n1"] * CROWD, If_None_Match="*")
    codes = Counter(one.code for one in responses)
    assert codes[201] == 1
    # 60 at once; a step of the window may go by while they are under way.
    assert 60 <= CROWD - codes[429] <= 66
    assert codes[412] == CROWD - codes[429] - 1
