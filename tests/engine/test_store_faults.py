"""The store goes away, loses answers or is full: nothing is done twice or by half, or falsely acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
import redis

from store import keys as spell
from store.crypto.keyring import Keys
from store.engine.connect import connect
from store.errors import StoreUnavailable
from tests.support.calls.every import CALLS
from tests.support.calls.prepared import Call, Prepared, methods_of
from tests.support.processes.engines import Engine, valkey
from tests.support.store.lost_answers import SCRIPTS, Armed, losing, store_on
from tests.support.store.world import VISITOR, World, refusal_of

# One call for each script: the first of the table that runs it.
RUNNING: dict[str, Prepared] = {name: prepared for prepared in [*CALLS.values()][::-1] for name in prepared.scripts}


@pytest.fixture
def mortal() -> Iterator[Engine]:
    """A Valkey that keeps its data, for one test, which may leave it stopped when it fails."""
    with valkey(append_only=True) as engine:
        yield engine


async def outcome_of(call: Call) -> str:
    try:
        await call()
    except Exception as error:
        return type(error).__name__
    return "success"


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(12)
async def test_every_method_fails_cleanly_during_an_outage_and_works_afterwards(mortal: Engine, keys: Keys) -> None:
    store = store_on(await connect(mortal.url), keys)
    assert set(CALLS) == methods_of(store)
    # Each call has its own world, so that they do not disturb each other.
    ready = {name: await prepared.prepare(await World.make(store)) for name, prepared in CALLS.items()}
    mortal.stop()
    assert {name: await outcome_of(call) for name, call in ready.items()} == dict.fromkeys(ready, "StoreUnavailable")
    with pytest.raises(StoreUnavailable):
        await store.ping()
    mortal.start()
    await store.ping()
    assert {name: await outcome_of(call) for name, call in ready.items()} == dict.fromkeys(ready, "success")
    await store.close()


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(12)
async def test_an_unresponsive_store_is_unavailable(mortal: Engine, keys: Keys) -> None:
    store = store_on(await connect(mortal.url, socket_timeout=0.2), keys)
    world = await World.make(store)
    tokens = await world.tokens()
    mortal.pause()
    try:
        with pytest.raises(StoreUnavailable):
            await store.tokens.revoke(None, tokens.refresh_token)
    finally:
        mortal.resume()
    assert await refusal_of(world.refresh(tokens.refresh_token)) in (None, "invalid_grant")
    await store.close()


def runs(engine: Engine) -> int:
    """The number of scripts sent to the engine since the statistics were reset."""
    with engine.client() as direct:
        stats = direct.info("commandstats")
        return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


writing = pytest.mark.parametrize("name", [name for name, script in SCRIPTS.items() if not script.idempotent])
idempotent = pytest.mark.parametrize("name", [name for name, script in SCRIPTS.items() if script.idempotent])


async def until_lost(ready: Call, name: str, engine: Engine, armed: Armed, times: int) -> tuple[str, int]:
    """The outcome of a call during which answers to one script are lost, and how often that script was sent."""
    sent = 0
    original: Any = armed._client.evalsha
    together: Any = armed._client.answers  # type: ignore[attr-defined]  # of ours

    async def counting(sha: str, *words: Any) -> Any:
        nonlocal sent
        sent += sha == SCRIPTS[name].sha
        return await original(sha, *words)

    async def counting_all(commands: Iterable[Sequence[Any]]) -> list[Any]:
        nonlocal sent
        given = list(commands)
        sent += sum(SCRIPTS[name].sha in words for words in given)
        found: list[Any] = await together(given)
        return found

    armed._client.evalsha = counting  # type: ignore[assignment,method-assign]  # counts on the way
    armed._client.answers = counting_all  # type: ignore[attr-defined]  # counts on the way
    armed.arm(name, times)
    with engine.client() as direct:
        direct.config_resetstat()
    return await outcome_of(ready), sent


@writing
@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(32)
async def test_a_writing_script_with_a_lost_answer_is_not_resent(valkey_engine: Engine, keys: Keys, name: str) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        prepared = RUNNING[name]
        ready = await prepared.prepare(world)
        outcome, sent = await until_lost(ready, name, valkey_engine, armed, 1)
        assert (outcome, sent) == ("StoreUnavailable", 1)
        assert armed._proxy.dropped == 1
        # The scripts of the method that come before this one ran too, and none after it.
        assert runs(valkey_engine) == prepared.scripts.index(name) + 1


@idempotent
@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(32)
async def test_an_idempotent_script_with_a_lost_answer_is_resent_once(
    valkey_engine: Engine, keys: Keys, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        # Whoever walks all shards sends no more scripts than needed.
        own = world.user[:3]
        monkeypatch.setattr(spell, "SHARDS", (own, *(shard for shard in spell.SHARDS[:8] if shard != own))[:8])
        ready = await RUNNING[name].prepare(world)
        outcome, sent = await until_lost(ready, name, valkey_engine, armed, 1)
        assert outcome == "success"
        assert armed._proxy.dropped == 1
        # Some run once for each of the three documents that are held, or of two events, or before and after a change.
        # A person has entries in several sections.
        others = {"change_section": 10, "find_entries": 10, "reseal_document": 2}
        others |= {"enqueue_delivery": 1, "list_signing_keys": 2}
        others |= dict.fromkeys(("read_trail", "read_figures"), 2 * spell.TRAIL_SHARDS - 2)
        assert sent == 2 + others.get(name, 0)
    async with losing(valkey_engine, keys) as (world, armed):
        monkeypatch.setattr(spell, "SHARDS", (world.user[:3], *spell.SHARDS[1:]))
        ready = await RUNNING[name].prepare(world)
        # The sections of a person are written side by side, and the shards of the security log are read so.
        twice = {"change_section": 8, "find_entries": 5}
        twice |= dict.fromkeys(("read_trail", "read_figures"), 2 * spell.TRAIL_SHARDS)
        outcome, sent = await until_lost(ready, name, valkey_engine, armed, 9)
        assert (outcome, sent) == ("StoreUnavailable", twice.get(name, 2))


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(32)
async def test_a_rotation_with_a_lost_answer_happened_once(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        tokens = await world.tokens()
        armed.arm("rotate_refresh")
        with pytest.raises(StoreUnavailable):
            await world.refresh(tokens.refresh_token)
        family = world.rows(tokens.refresh_token)["family"]
        assert await world.store.client.hget(family, "generation") == b"1"
        assert await world.lives(tokens.access_token), "the pair lives: nothing was sent a second time"


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(32)
async def test_with_a_retry_window_a_lost_rotation_can_be_repeated(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        world.app = await world.store.apps.update(world.app.client_id, refresh_retry_seconds=30)
        tokens = await world.tokens()
        armed.arm("rotate_refresh")
        with pytest.raises(StoreUnavailable):
            await world.refresh(tokens.refresh_token)
        assert await world.lives((await world.refresh(tokens.refresh_token)).access_token)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(32)
async def test_a_freshly_loaded_script_with_a_lost_answer_is_not_resent(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        tokens = await world.tokens()
        await world.store.client.script_flush()
        armed._proxy.drop_reply("EVAL")
        with pytest.raises(StoreUnavailable):
            await world.refresh(tokens.refresh_token)
        assert armed._proxy.seen["EVAL"] == 1
        assert await world.store.client.hget(world.rows(tokens.refresh_token)["family"], "generation") == b"1"


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(12)
@pytest.mark.parametrize("lost", ["request", "reply"])
async def test_an_uncertain_revocation_is_not_acknowledged(valkey_engine: Engine, keys: Keys, lost: str) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        tokens = await world.tokens()
        armed.lose_request = lost == "request"
        armed.arm("revoke_token")
        with pytest.raises(StoreUnavailable):
            await world.store.tokens.revoke(None, tokens.refresh_token)
        assert await world.lives(tokens.access_token) == (lost == "request")
        await world.store.tokens.revoke(None, tokens.refresh_token)
        assert not await world.lives(tokens.access_token)


@pytest.mark.gen_test(timeout=60)
async def test_a_full_store_refuses_changes_and_stays_unchanged(valkey_engine: Engine, keys: Keys) -> None:
    with valkey_engine.client() as direct:
        direct.flushall()
        store = store_on(await connect(valkey_engine.url), keys)
        world = await World.make(store)
        code, tokens, request_id = await world.code(), await world.tokens(), await world.pending()
        before = contents(direct)
        direct.config_set("maxmemory", "1")
        try:
            calls: list[Call] = [
                lambda: world.exchange(code),
                lambda: world.refresh(tokens.refresh_token),
                lambda: store.authorizations.decide(
                    world.session, world.app, request_id, allow=True, scopes=None, visitor=VISITOR
                ),
                lambda: world.person("new@example.com"),
            ]
            assert [await outcome_of(call) for call in calls] == ["StoreFull"] * len(calls)
        finally:
            direct.config_set("maxmemory", "0")
        assert contents(direct) == before
        assert await world.lives(tokens.access_token)
        assert await world.lives((await world.exchange(code)).access_token)
        await store.close()


def contents(direct: redis.Redis) -> dict[bytes, Any]:
    found: Any = direct.keys("*")
    return {key: (direct.dump(key), direct.pexpiretime(key)) for key in found}


def test_the_table_of_calls_runs_every_script() -> None:
    assert set(RUNNING) == set(SCRIPTS)
