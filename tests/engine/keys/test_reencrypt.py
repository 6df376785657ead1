"""Reencryption of documents with the newest key, and the conditions for retiring an old key."""

from __future__ import annotations

import asyncio
import io
import os
import time
from pathlib import Path
from typing import Any

import pytest

from cli.terminal import progress
from cli.terminal.progress import ProgressBar
from store import keys
from store.crypto.keyring import KeyFile, KeyRing, SecretKey
from store.keystate import NOTES_LOST
from store.lifetimes import LONGEST_SEALED
from store.reencryption import Progress
from store.refused import Refused
from store.results import Visitor
from store.wiring import Store
from tests.support.processes.operator_commands import Home, child
from tests.support.store.many_documents import check_usage, connect_app, numbered, rotated, stock, write
from tests.support.store.second_factors import reauth_if_needed
from tests.support.store.world import World

pytestmark = pytest.mark.slow


async def walk(store: Store, lag: int = 0) -> Progress:
    last = None
    async for last in store.reencryption.run(lag):
        assert last.documents >= last.renewed
    assert last is not None
    return last


async def rows(store: Store, user: str, client: str) -> dict[str, Any]:
    """A pair's data without the ciphertext, with the expiry of each key."""
    hosted = keys.hosted(user, client)
    return {
        "meta": await store.client.hgetall(hosted["meta"]),
        "index": await store.client.zrange(hosted["index"], 0, -1),
        "usage": await store.client.hgetall(hosted["usage"]),
        "ends": [await store.client.pexpiretime(key) for key in hosted.values()],
    }


async def key_ids(store: Store, user: str, client: str) -> set[int]:
    """The ids of the keys that documents of a pair are sealed under."""
    sealed: Any = await store.client.hvals(keys.hosted(user, client)["docs"])
    return {document[0] for document in sealed}


async def contents(store: Store, user: str, client: str) -> dict[str, bytes]:
    return {found.name: content async for page in store.person_documents.copy(user, client) for found, content in page}


async def worlds(store: Store) -> tuple[World, World]:
    """Two people with documents; one has disconnected the app."""
    made = await World.make(store), await World.make(store)
    for world, number in zip(made, (250, 12), strict=True):
        await connect_app(store, world.user, world.app)
        await stock(store, world.user, world.app.client_id, numbered(number, 40))
    await made[1].revoke_app()
    return made


async def noted(store: Store) -> dict[bytes, Any]:
    names: Any = await store.client.hkeys(keys.KEYRING)
    found = [name for name in names if name.startswith(b"documents")]
    return {name: await store.client.hget(keys.KEYRING, name.decode()) for name in found}


@pytest.mark.gen_test(timeout=30)
async def test_reencryption_moves_everything_to_the_front_key_unchanged(store: Store) -> None:
    made = await worlds(store)
    pairs = [(world.user, world.app.client_id) for world in made]
    before = [(await rows(store, *pair), await contents(store, *pair)) for pair in pairs]
    newer = rotated(store, 2)
    progress = await walk(newer)
    assert (progress.people, progress.done, progress.documents, progress.renewed, progress.unreadable) == (
        2,
        2,
        262,
        262,
        0,
    )
    for pair, (its_rows, its_contents) in zip(pairs, before, strict=True):
        assert await key_ids(store, *pair) == {2}
        assert await rows(store, *pair) == its_rows
        assert await contents(newer, *pair) == its_contents
    assert before[1][0]["ends"][0] > 0
    again = await walk(newer)
    assert (again.documents, again.renewed) == (262, 0)


@pytest.mark.gen_test(timeout=30)
async def test_an_interrupted_walk_continues_and_only_a_complete_one_is_recorded(store: Store) -> None:
    first, second = await worlds(store)
    newer = rotated(store, 2)
    run = newer.reencryption.run(0)
    renewed = 0
    while not renewed:
        renewed = (await anext(run)).renewed
    await run.aclose()
    assert 0 < renewed < 262
    assert await noted(store) == {}
    assert (await walk(newer)).renewed == 262 - renewed
    assert (await noted(store))[b"documents_front"] == b"2"
    for world in (first, second):
        assert await key_ids(store, world.user, world.app.client_id) == {2}


@pytest.mark.gen_test(timeout=30)
async def test_concurrent_writes_are_kept(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    caller = await connect_app(store, world.user, world.app)
    documents = numbered(300, 40)
    await stock(store, world.user, client, documents)
    newer = rotated(store, 2)
    written = dict.fromkeys(list(documents)[::10], b'"written meanwhile, under the old key"')
    deleted = list(documents)[5::50]

    await reauth_if_needed(world)

    async def as_an_app_does() -> None:
        await write(store, caller, written)
        for name in deleted:
            await store.client.delete(keys.limit(world.user, "data-write", client))
            collection, _, document_id = name.partition("/")
            await store.person_documents.delete(world.session, client, collection, document_id, Visitor())

    await asyncio.gather(walk(newer), as_an_app_does())
    expected = {name: content for name, content in {**documents, **written}.items() if name not in deleted}
    assert await contents(newer, world.user, client) == expected
    assert await check_usage(store, world.user, client) == 294


@pytest.mark.gen_test
@pytest.mark.parametrize("present", [pytest.param(b"another", id="rewritten"), pytest.param(None, id="deleted")])
async def test_a_document_changed_meanwhile_is_left_alone(store: Store, present: bytes | None) -> None:
    docs = keys.hosted("0" * 32, "an-app")["docs"]
    if present:
        await store.client.hset(docs, "notes/a", present)
    reply = await store.scripts.run(
        "reseal_document", {"docs": docs}, document="notes/a", expected=b"\x01read", sealed=b"\x02renewed"
    )
    assert reply.word == "changed"
    assert await store.client.hget(docs, "notes/a") == present
    assert await store.client.exists(docs) == (1 if present else 0)


@pytest.mark.gen_test(timeout=30)
async def test_an_unreadable_document_is_named_and_the_walk_not_recorded(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    await connect_app(store, world.user, world.app)
    await stock(store, world.user, client, numbered(30, 40))
    docs = keys.hosted(world.user, client)["docs"]
    await store.client.hset(docs, "c000/doc000003", b"\x01" + b"\0" * 60)
    await store.client.hset(docs, "c000/doc000006", b"\x63" + b"\0" * 60)
    progress = await walk(rotated(store, 2))
    assert (progress.documents, progress.renewed, progress.unreadable) == (30, 28, 2)
    assert progress.named == [f"{world.user}/{client}/c000/doc00000{n}" for n in (3, 6)]
    assert await noted(store) == {}


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("walked", "refused"),
    [
        pytest.param(None, True, id="never re-encrypted"),
        pytest.param(("2", -1), True, id="before the key was last at the front"),
        pytest.param(("2", 0), True, id="in the same millisecond"),
        pytest.param(("2", 1), False, id="after it was last at the front"),
        pytest.param(("1", 1), True, id="but under the key itself"),
    ],
)
async def test_a_key_can_be_retired_only_when_no_document_uses_it(
    store: Store, walked: tuple[str, int] | None, refused: bool
) -> None:
    last = int(time.time() * 1000) - LONGEST_SEALED - 60_000
    await store.client.hset(keys.KEYRING, mapping={"check:1": "x", "sealed_at:1": last})
    if walked:
        state: dict[Any, Any] = {"documents_front": walked[0], "documents_since": last + walked[1]}
        await store.client.hset(keys.KEYRING, mapping=state)
    if refused:
        with pytest.raises(Refused) as refusal:
            await store.key_state.retire(1)
        assert "keys reencrypt" in refusal.value.description
        assert await store.client.hexists(keys.KEYRING, "check:1")
    else:
        await store.key_state.retire(1)
        assert not await store.client.hexists(keys.KEYRING, "check:1")


@pytest.mark.gen_test(timeout=30)
async def test_a_walk_is_recorded_with_a_time_before_its_start(store: Store) -> None:
    """A server may seal with the old key until its next note; documents written after the walk must not be lost."""
    await worlds(store)
    await store.key_state.check(store.keys.ring)  # a server notes that it seals with key 1
    newer = rotated(store, 2)
    before = await store.key_state.note_sealing(2)
    await walk(newer, lag=NOTES_LOST)
    since = int((await noted(store))[b"documents_since"])
    assert 0 <= since - (before - NOTES_LOST) < 5000
    state = await store.client.hgetall(keys.KEYRING)
    assert since < int(state[b"sealed_at:1"])
    await store.client.hset(keys.KEYRING, "sealed_at:1", int(state[b"sealed_at:1"]) - LONGEST_SEALED - 60_000)
    await store.key_state.retire(1)


def put(home: Home, number: int) -> tuple[str, str]:
    """A person whose app keeps documents under the front key."""
    home.app("an-app")
    user = home.user("ada@example.com")["sub"]

    async def fill(store: Store) -> None:
        app = await store.apps.find("an-app")
        assert app is not None
        await connect_app(store, user, app)
        await stock(store, user, "an-app", numbered(number, 40))

    home.with_store(fill)
    return user, "an-app"


def test_rotate_reencrypt_retire(home: Home) -> None:
    path = home.data_dir / "keys"
    original = KeyFile(path).ring
    try:
        pair = put(home, 30)
        before = home.with_store(lambda store: contents(store, *pair))
        new = SecretKey.parse(KeyRing.generate(9))
        KeyFile(path).write(KeyRing((new, *original.keys)))
        age_file(path)
        record = home.json("keys", "reencrypt")
        assert record == {"id": 9, "people": 1, "documents": 30, "reencrypted": 30, "unreadable": 0}
        assert home.json("keys", "reencrypt")["reencrypted"] == 0
        assert "less than 31 days ago" in home.error("keys", "retire", "1")[2]
        with home.client() as client:
            client.hset(keys.KEYRING, "sealed_at:1", int(time.time() * 1000) - LONGEST_SEALED)
        assert home.json("keys", "retire", "1") == {"id": 1, "retired": True}
        assert home.with_store(lambda store: contents(store, *pair)) == before
    finally:
        KeyFile(path).write(original)


def age_file(path: Path) -> None:
    """As if every running server had loaded the file long ago."""
    os.utime(path, (time.time() - 60, time.time() - 60))


def test_with_configured_keys_a_walk_is_recorded_with_an_earlier_time(home: Home) -> None:
    old, new = KeyFile(home.data_dir / "keys").ring.front, KeyRing.generate(9)
    configured = {"LATCHKEY_SECRET_KEYS": f"{new},{old.render()}"}
    put(home, 3)
    assert home.json("keys", "reencrypt", **configured)["reencrypted"] == 3
    with home.client() as client:
        since = int(client.hget(keys.KEYRING, "documents_since") or 0)
    assert 0 <= time.time() * 1000 - NOTES_LOST - since < 30_000


def test_damaged_documents_are_reported(home: Home) -> None:
    user, client_id = put(home, 3)
    with home.client() as client:
        client.hset(keys.hosted(user, client_id)["docs"], "c000/doc000000", b"\x63" + b"\0" * 60)
    age_file(home.data_dir / "keys")
    record = home.json("keys", "reencrypt")
    assert (record["unreadable"], record["unreadableNames"]) == (1, [f"{user}/{client_id}/c000/doc000000"])
    assert "no key that sealed is retired" in home.words("keys", "reencrypt").out


def test_reencryption_runs_as_a_separate_process(home: Home) -> None:
    put(home, 20)
    age_file(home.data_dir / "keys")
    done = child(home.data_dir, "keys", "reencrypt", "--json")
    assert (done.json["documents"], done.err) == (20, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_progress_bar_is_drawn_and_wiped_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "REDRAWN_EVERY", 0)
    terminal = Terminal()
    with ProgressBar(terminal) as bar:
        bar.show(0.5, "half the people")
        bar.show(1.5, "all")
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert drawn == ["", f"[{'#' * 12}{'.' * 12}]  50%  half the people", f"[{'#' * 24}] 100%  all", ""]


def test_a_progress_bar_is_redrawn_rarely_and_fits_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    with ProgressBar(terminal) as bar:
        for step in range(1000):
            bar.show(step / 1000, "x" * 100)
    drawn = [line for line in terminal.getvalue().split("\r\x1b[K") if line]
    assert 1 <= len(drawn) < 20
    assert {len(line) for line in drawn} == {39}


def test_a_progress_bar_is_silent_in_a_dumb_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    with ProgressBar(terminal) as bar:
        bar.show(0.5, "half")
    assert terminal.getvalue() == ""


def test_a_progress_bar_is_silent_outside_a_terminal() -> None:
    pipe = io.StringIO()
    with ProgressBar(pipe) as bar:
        bar.show(0.5, "half")
    assert pipe.getvalue() == ""
