"""Hosted documents compared with a dictionary: any calls in any order by several apps and people. SPEC 4.6, 3.1."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from store import keys
from store.apps.registration import Registration
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.documents.documents import Quotas, Usage
from store.engine.connect import connect
from store.lifetimes import GRACE
from store.results import Caller
from store.wiring import Store
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.document_app import Keeper
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.slow

T = TypeVar("T")
QUOTAS = Quotas(documents=6, collections=3, bytes=60)
RING = Keys(KeyRing.parse(KeyRing.generate(1)))
WHOLE = ("data:read", "data:write")

pairs = st.sampled_from([(person, app) for person in range(2) for app in range(2)])
collections = st.sampled_from(["a", "a.b", "a0", "b"])
ids = st.sampled_from(["1", "10", "2", "x", "x~"])
contents = st.integers(1, 40).map(lambda size: b"9" * size)
conditions = st.sampled_from(["", "", "", "*", "right", "wrong"])
scopes = st.sampled_from([WHOLE, WHOLE, ("data:read",), ("data:write",)])
Pair = tuple[int, int]


@dataclass(frozen=True)
class Kept:
    """A document of the model."""

    content: bytes
    etag: int
    created_at: Any


@dataclass
class Side:
    """The model's view of a pair. `newest` is its last ETag, `connected` whether its token is live."""

    kept: dict[str, Kept] = field(default_factory=dict)
    newest: int = 0
    scopes: tuple[str, ...] = ()
    connected: bool = False
    in_grace: bool = False
    keeper: Keeper | None = None

    def usage(self) -> Usage:
        """A recount."""
        rows: dict[str, tuple[int, int]] = {}
        for name, kept in self.kept.items():
            number, size = rows.get(name.split("/")[0], (0, 0))
            rows[name.split("/")[0]] = (number + 1, size + len(kept.content))
        total = sum(size for _, size in rows.values())
        return Usage(len(self.kept), total, tuple((name, *rows[name]) for name in sorted(rows)))

    def stands(self, name: str, condition: str) -> bool:
        """Whether an If-Match holds."""
        return not condition or (name in self.kept and condition != "wrong")

    def over_quota(self, name: str, content: bytes) -> bool:
        """Whether a write would pass a quota."""
        usage, old = self.usage(), self.kept.get(name)
        growth = len(content) - (len(old.content) if old else 0)
        if growth > 0 and usage.bytes + growth > QUOTAS.bytes:
            return True
        new_collection = name.split("/")[0] not in [row[0] for row in usage.collections]
        full = new_collection and len(usage.collections) >= QUOTAS.collections
        return old is None and (usage.documents >= QUOTAS.documents or full)


class Documents(RuleBasedStateMachine):
    """Makes every call to the store and to the model; after each step, the usage equals a recount."""

    url = "memory"
    clock: FakeClock | None = None

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.run(self.open())

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    async def open(self) -> None:
        """Two people and two apps on one store."""
        hasher = PasswordHasher(8192, 1, workers=1)
        client = await connect(self.url)
        self.store = Store(client, RING, hasher, session_idle=10**8, session_lifetime=10**9, quotas=QUOTAS)
        self.people = [await World.make(self.store), await World.make(self.store)]
        self.apps = [world.app for world in self.people]
        self.sides = {(person, app): Side() for person in range(2) for app in range(2)}
        for pair, side in self.sides.items():
            await self.connect(pair, side, WHOLE)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()

    def app(self, pair: Pair) -> Registration:
        return self.apps[pair[1]]

    async def connect(self, pair: Pair, side: Side, wanted: tuple[str, ...]) -> None:
        side.keeper = await Keeper.make(self.people[pair[0]], self.app(pair), wanted)
        side.connected, side.in_grace, side.scopes = True, False, wanted

    def refusal(self, side: Side, *needed: str) -> str | None:
        """The expected answer of the access check."""
        if not side.connected:
            return "invalid_token"
        return None if set(needed) & set(side.scopes) else "insufficient_scope"

    def of(self, pair: Pair) -> tuple[Side, Keeper]:
        side = self.sides[pair]
        assert side.keeper is not None
        return side, side.keeper

    def refused(self, call: Coroutine[Any, Any, object], code: str) -> None:
        assert self.run(refusal_of(call)) == code

    @rule(
        pair=pairs,
        collection=collections,
        document_id=ids,
        content=contents,
        condition=conditions,
        fresh=st.booleans(),
    )
    def put(self, pair: Pair, collection: str, document_id: str, content: bytes, condition: str, fresh: bool) -> None:
        (side, keeper), name = self.of(pair), f"{collection}/{document_id}"
        old = side.kept.get(name)
        if_match = {"right": str(old.etag if old else 1), "wrong": "1 2"}.get(condition, condition)
        none = fresh and not condition
        call = keeper.put(name, content, if_match=if_match, if_none_match=none)
        if code := self.refusal(side, "data:write"):
            return self.refused(call, code)
        if not side.stands(name, condition) or (none and old):
            return self.refused(call, "precondition_failed")
        if side.over_quota(name, content):
            return self.refused(call, "quota_exceeded")
        written, created, _ = self.run(call)
        assert created == (old is None)
        assert int(written.etag) > side.newest
        assert old is None or written.created_at == old.created_at
        side.newest = int(written.etag)
        side.kept[name] = Kept(content, side.newest, written.created_at)
        return None

    @rule(pair=pairs, collection=collections, document_id=ids, condition=conditions)
    def delete(self, pair: Pair, collection: str, document_id: str, condition: str) -> None:
        (side, keeper), name = self.of(pair), f"{collection}/{document_id}"
        old = side.kept.get(name)
        call = keeper.delete(name, {"right": str(old.etag if old else 1), "wrong": "1 2"}.get(condition, condition))
        if code := self.refusal(side, "data:write"):
            return self.refused(call, code)
        if not side.stands(name, condition):
            return self.refused(call, "precondition_failed")
        if old is None:
            return self.refused(call, "not_found")
        self.run(call)
        del side.kept[name]
        return None

    @rule(pair=pairs, collection=collections, document_id=ids)
    def get(self, pair: Pair, collection: str, document_id: str) -> None:
        (side, keeper), name = self.of(pair), f"{collection}/{document_id}"
        call = keeper.get(name)
        if code := self.refusal(side, "data:read"):
            return self.refused(call, code)
        kept = side.kept.get(name)
        if kept is None:
            return self.refused(call, "not_found")
        found, content, _ = self.run(call)
        assert (content, int(found.etag), found.created_at) == (kept.content, kept.etag, kept.created_at)
        return None

    @rule(pair=pairs, collection=collections, prefix=st.sampled_from(["", "1", "x", "z"]), most=st.integers(1, 4))
    def walk(self, pair: Pair, collection: str, prefix: str, most: int) -> None:
        side, keeper = self.of(pair)
        call = keeper.walk(collection, prefix, most)
        if code := self.refusal(side, "data:read"):
            return self.refused(call, code)
        names = sorted(name for name in side.kept if name.startswith(f"{collection}/{prefix}"))
        assert self.run(call) == [name.split("/")[1] for name in names]
        page = self.run(keeper.page(collection, prefix, content=True))
        assert [content for _, content in page.items] == [side.kept[name].content for name in names]
        return None

    @rule(pair=pairs)
    def usage(self, pair: Pair) -> None:
        side, keeper = self.of(pair)
        call = keeper.usage()
        if code := self.refusal(side, *WHOLE):
            return self.refused(call, code)
        assert self.run(call) == side.usage()
        return None

    @rule(pair=pairs, wanted=scopes)
    def authorize(self, pair: Pair, wanted: tuple[str, ...]) -> None:
        """An earlier token keeps its scopes, whatever the later one has."""
        side, keeper = self.of(pair)
        earlier = self.refusal(side, "data:read")
        self.run(self.connect(pair, side, wanted))
        assert self.run(refusal_of(keeper.get("never/written"))) == (earlier or "not_found")

    @rule(pair=pairs)
    def revoke(self, pair: Pair) -> None:
        async def call() -> object:
            world = self.people[pair[0]]
            world.session = await world.sign_in()
            return await self.store.grants.revoke(world.session, self.app(pair).client_id, VISITOR)

        side = self.sides[pair]
        if side.in_grace or not self.run(self.has_grant(pair)):
            return self.refused(call(), "not_found")
        self.run(call())
        side.connected, side.in_grace = False, True
        return None

    async def has_grant(self, pair: Pair) -> bool:
        return bool(await self.store.client.exists(keys.grant(self.people[pair[0]].user, self.app(pair).client_id)))

    @rule(pair=pairs)
    def replay(self, pair: Pair) -> None:
        """A reused refresh token: the tokens die, the data stays."""
        side = self.sides[pair]
        if side.in_grace or not side.connected:
            return

        async def call() -> None:
            minted = await self.store.tokens.mint(self.people[pair[0]].user, self.app(pair), side.scopes)
            window = keys.limit(self.people[pair[0]].user, "oauth")
            await self.store.client.delete(window)
            await self.store.tokens.refresh(self.app(pair), minted.refresh_token, ())
            refused = await refusal_of(self.store.tokens.refresh(self.app(pair), minted.refresh_token, ()))
            assert refused == "invalid_grant"

        self.run(call())
        side.connected = False

    @rule()
    def thirty_days_pass(self) -> None:
        """Ends the data in its grace window. On a real engine, its end is brought forward instead."""
        if self.clock is not None:
            self.clock.advance(GRACE / 1000 + 1)
        for pair, side in self.sides.items():
            if self.clock is None:
                self.run(self.bring_forward(pair))
            if side.in_grace:
                side.kept.clear()
                side.in_grace = False
            if self.clock is not None:
                side.connected = False  # an access token lives an hour

    async def bring_forward(self, pair: Pair) -> None:
        user, client = self.people[pair[0]].user, self.app(pair).client_id
        for key in (keys.grant(user, client), *keys.hosted(user, client).values()):
            if await self.store.client.pttl(key) > 0:
                await self.store.client.pexpireat(key, 1)

    @rule(pair=pairs)
    def an_hour_passes(self, pair: Pair) -> None:
        """One token ends; on fakeredis all do."""
        side, keeper = self.of(pair)
        if self.clock is not None:
            self.clock.advance(3601)
            for each in self.sides.values():
                each.connected = False
        else:
            self.run(self.end_access(keeper.caller))
            side.connected = False

    async def end_access(self, caller: Caller) -> None:
        row = keys.token(caller.user, caller.client, caller.family, caller.generation)["access"]
        await self.store.client.pexpireat(row, 1)

    @invariant()
    def usage_is_a_recount(self) -> None:
        for side in self.sides.values():
            assert side.keeper is not None
            usage = self.run(side.keeper.recount())
            assert usage == side.usage()
            assert usage.documents <= QUOTAS.documents
            assert usage.bytes <= QUOTAS.bytes
            assert len(usage.collections) <= QUOTAS.collections

    async def ends(self, keeper: Keeper) -> set[int]:
        return {int(await self.store.client.pexpiretime(key)) for key in keeper.keys().values()}

    @invariant()
    def only_what_is_in_grace_ends(self) -> None:
        for side in self.sides.values():
            assert side.keeper is not None
            ends = self.run(self.ends(side.keeper)) - {-2}
            assert len(ends) <= 1
            assert not ends or (ends == {-1}) != side.in_grace


brisk = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.spec("3.1")
def test_random_histories_on_fakeredis_with_a_moving_clock(clock: FakeClock) -> None:
    class OnMemory(Documents):
        pass

    OnMemory.clock = clock
    run_state_machine_as_test(OnMemory, settings=brisk)


@pytest.mark.spec("3.1")
def test_random_histories_on_valkey(valkey_engine: Engine) -> None:
    class OnValkey(Documents):
        url = valkey_engine.url

    run_state_machine_as_test(OnValkey, settings=brisk)
