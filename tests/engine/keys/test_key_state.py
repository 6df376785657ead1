"""The store remembers its secret keys: a server with others refuses to start, and unused keys can retire."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from outbound.ai.models import Models
from runtime import processes
from runtime.process_state import Runtime
from settings.declared import Settings
from store import keys as spell
from store.credits.calls import Charge, ReplayedCall
from store.credits.request_digests import RequestDigests
from store.crypto.keyring import KeyFile, KeyRing, KeyRingError, Keys
from store.crypto.passwords import PasswordHasher
from store.errors import StartupError
from store.refused import Refused
from store.wiring import Store
from tests.support.processes.engines import Engine, FakeClock
from tests.support.store.credit_spender import REPLY, Spender, a_world, recount
from tests.support.store.world import refusal_of


def rings(*texts: str) -> list[KeyRing]:
    return [KeyRing.parse(text) for text in texts]


@pytest.mark.gen_test
@pytest.mark.trap(38)
async def test_a_server_with_other_keys_refuses_to_start(valkey_engine: Engine) -> None:
    with valkey_engine.client() as client:
        client.flushall()
    first, second = KeyRing.generate(1), KeyRing.generate(2)

    async def start(text: str) -> None:
        store = await Store.open(
            valkey_engine.url,
            Keys(KeyRing.parse(text)),
            PasswordHasher(64, 1),
            timeout=2.0,
            connections=4,
            session_idle=60,
            session_lifetime=60,
        )
        await store.close()

    await start(first)
    with pytest.raises(StartupError, match="none of the configured secret keys"):
        await start(second)
    with pytest.raises(StartupError, match="id 1 is not the one"):
        await start(KeyRing.generate(1))
    with pytest.raises(StartupError, match="id 1 is not the one"):
        await start(f"{second},{KeyRing.generate(1)}")
    await start(f"{second},{first}")
    await start(second)
    with pytest.raises(StartupError, match="id 2 is not the one"):
        await start(f"{first},{KeyRing.generate(2)}")


@pytest.mark.gen_test
async def test_a_key_can_be_retired_31_days_after_its_last_use(clock: FakeClock, memory_store: Store) -> None:
    state = memory_store.key_state
    old, new = KeyRing.generate(1), KeyRing.generate(2)
    both, turned, only = rings(f"{old},{new}", f"{new},{old}", new)
    await state.check(both)
    assert await state.known() == {1, 2}
    clock.advance(40 * 86_400)
    await state.check(both)
    clock.advance(30 * 86_400)
    await state.check(turned)
    for key_id in (1, 2):
        with pytest.raises(Refused, match="invalid_request"):
            await state.retire(key_id)
    clock.advance(86_400 + 1)
    await state.record_reencryption(2, await state.note_sealing(2))
    await state.retire(1)
    assert await state.known() == {2}
    with pytest.raises(Refused, match="invalid_request"):
        await state.retire(2)
    await state.check(only)
    with pytest.raises(StartupError, match="none of"):
        await state.check(rings(old)[0])


@pytest.mark.gen_test
async def test_an_unused_key_can_be_retired_at_once(memory_store: Store) -> None:
    first, second = KeyRing.generate(1), KeyRing.generate(2)
    await memory_store.key_state.check(rings(f"{first},{second}")[0])
    await memory_store.key_state.retire(2)
    assert await memory_store.key_state.known() == {1}


@pytest.mark.gen_test
async def test_a_server_with_an_unreadable_key_file_keeps_recording_its_sealing_key(
    memory_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "KEY_FILE_SECONDS", 0.01)
    monkeypatch.setattr(processes, "KEY_CHECK_SECONDS", 0.0)
    file = KeyFile.open_or_create(tmp_path / "keys")
    file.path.write_text("unreadable")
    runtime = Runtime(Settings(), "memory", Keys(file), [], "", "", None, Models(()))
    watch = asyncio.ensure_future(processes.watch_over(runtime, memory_store, asyncio.Event()))
    while not await memory_store.client.hexists(spell.KEYRING, "sealed_at:1"):
        await asyncio.sleep(0.01)
    watch.cancel()


@pytest.mark.gen_test
async def test_a_new_key_is_noted_if_a_call_was_the_first_to_read_the_file(
    memory_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "KEY_FILE_SECONDS", 0.01)
    file = KeyFile.open_or_create(tmp_path / "keys")
    server = Keys(KeyFile(file.path))
    await memory_store.key_state.check(server.ring)
    runtime = Runtime(Settings(), "memory", server, [], "", "", None, Models(()))
    watch = asyncio.ensure_future(processes.watch_over(runtime, memory_store, asyncio.Event()))
    await asyncio.sleep(0)
    file.write(KeyRing.parse(f"{KeyRing.generate(2)},{file.ring.render()}"))
    assert server.reload(), "by a call"
    async with asyncio.timeout(10):
        while not await memory_store.client.hexists(spell.KEYRING, "sealed_at:2"):
            await asyncio.sleep(0.01)
    watch.cancel()


@pytest.mark.gen_test
@pytest.mark.parametrize("watched", [False, True], ids=["not watched yet", "watched during the call"])
async def test_a_retry_counts_in_a_process_that_has_not_read_the_new_key_file(
    memory_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    """The first call is in a process that has read it."""
    store = memory_store
    world = await a_world(store)
    await store.credits.grant(world.user, 1000)
    app = await Spender.make(world)
    file = KeyFile.open_or_create(tmp_path / "keys")
    late = Keys(KeyFile(file.path))
    file.write(KeyRing.parse(f"{KeyRing.generate(2)},{file.ring.render()}"))
    monkeypatch.setattr(store.calls, "_digests", RequestDigests(Keys(file)))
    await app.settle(await app.hold(1, key="k", body=b"1"), 1, 0, REPLY)
    monkeypatch.setattr(store.calls, "_digests", RequestDigests(late))
    run, sent = store.scripts.run, list[str]()

    async def counted(name: str, *args: Any, **named: Any) -> Any:
        sent.append(name)
        if watched and name == "place_hold":
            with suppress(KeyRingError):
                late.reload()
        return await run(name, *args, **named)

    monkeypatch.setattr(store.scripts, "run", counted)
    again = await app.ask(1, key="k", body=b"1")
    assert isinstance(again, ReplayedCall)
    assert (again.charge, again.window.remaining) == (Charge(1, 999), 19), "counted once"
    assert sent.count("place_hold") == 2
    sent.clear()
    assert await refusal_of(app.ask(1, key="k", body=b"2")) == "idempotency_mismatch"
    assert sent.count("place_hold") == 1, "the keys are the same as before"
    file.path.write_text("unreadable")
    assert await refusal_of(app.ask(1, key="k", body=b"2")) == "idempotency_mismatch"
    assert (await recount(store, world.user)).amounts == (1000, -1)
