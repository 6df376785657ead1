"""A copy that is made while people write, laid into another place: all as it was at that moment, and nothing half."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.lab.engines import wait_until
from dev.lab.ports import HOST
from store.crypto.keyring import KeyFile, KeyRing, Keys
from store.engine import backup
from store.engine.connect import connect, unix_url
from store.engine.datadir import Lock
from store.engine.embedded import EmbeddedStore, running_socket
from tests.support.http.driver import send
from tests.support.processes.clusters import Cluster
from tests.support.processes.engines import redis_server, valkey
from tests.support.processes.operator_commands import NEW_APP, CommandOutput, child
from tests.support.processes.processes import QUICK, Server, opened
from tests.support.store.backed_up import WRITERS, Before, Writer, check_restored, ends_of, load, moved
from tests.support.store.lost_answers import store_on
from tests.support.store.world import PASSWORD, World, every_key, refusal_of

pytestmark = pytest.mark.slow


@pytest.mark.gen_test(timeout=90)
async def test_backup_of_the_embedded_store_under_load(tmp_path: Path) -> None:
    copy, keys = tmp_path / "store.rdb", tmp_path / "store.keys"
    with Server(*QUICK) as server:
        server.ready()
        ring = Keys(KeyFile(server.data_dir / "keys"))
        path = running_socket(server.data_dir)
        assert path is not None
        async with opened(unix_url(path), ring) as store:
            writers = [await Writer.make(store) for _ in range(WRITERS)]
            ends = await ends_of(store, writers)
            async with load(writers):
                least = [writer.written for writer in writers]
                said = await asyncio.to_thread(
                    child, server.data_dir, "store", "backup", str(copy), "--keys", str(keys), "--json"
                )
                most = [writer.written for writer in writers]
            kill_all(server)
    made = said.json
    assert (made["output"], made["keys"], made["bytes"]) == (str(copy), str(keys), copy.stat().st_size)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (copy, keys)] == [0o600, 0o600]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store.keys", "store.rdb"], "no draft is left"

    said = child(tmp_path / "other", "store", "restore", str(copy), "--keys", str(keys), "--keep-tokens", "--json")
    assert 100 < said.json["rows"] <= made["rows"], "what had expired meanwhile is gone"
    with Server(*QUICK, data_dir=tmp_path / "other") as server:
        server.ready()
        path = running_socket(tmp_path / "other")
        assert path is not None
        async with opened(unix_url(path), Keys(KeyFile(tmp_path / "other" / "keys"))) as store:
            bearer = {"Authorization": f"Bearer {writers[0].access}"}
            found = await send(f"{server.here}/api/v1/data/notes/n00000", headers=bearer)
            assert (found.code, found.body) == (200, b'"00000"')
            await check_restored(store, moved(writers, store), Before(least, most, ends))
        assert server.stop() == 0


def kill_all(server: Server) -> None:
    """kill -9 of server and store."""
    store = int((server.data_dir / "store.pid").read_text())
    server.kill()
    subprocess.run(["kill", "-9", str(store)], check=True)


@pytest.fixture
def running(data_dir: Path) -> Iterator[Path]:
    """A data directory with a key file and a store that runs, in which there is one row."""
    store = EmbeddedStore.start(data_dir, "server")
    KeyFile.open_or_create(data_dir / "keys")
    yield data_dir
    store.stop()


def refusal(said: CommandOutput) -> str:
    assert said.status == 1
    assert said.out == ""
    return said.err


def test_a_backup_overwrites_nothing_and_says_what_it_lacks(running: Path, tmp_path: Path) -> None:
    copy = tmp_path / "store.rdb"
    said = child(running, "store", "backup", str(copy))
    assert said.status == 0, said.err
    assert "SECRET KEYS ARE NOT IN IT" in said.out
    assert str(running / "keys") in said.out
    before = copy.read_bytes()
    assert f"{copy} exists already, and is never overwritten" in refusal(child(running, "store", "backup", str(copy)))
    assert copy.read_bytes() == before
    assert not (running / "store" / "dump.rdb").exists(), "no second copy lies about"


def test_a_failed_backup_leaves_nothing(running: Path, tmp_path: Path) -> None:
    (running / "store" / "dump.rdb").mkdir()  # the engine cannot put its snapshot there
    (running / "store" / "dump.rdb" / "in-the-way").touch()
    said = refusal(child(running, "store", "backup", str(tmp_path / "store.rdb")))
    assert "snapshot" in said
    assert not (tmp_path / "store.rdb").exists()


def test_a_concurrent_backup_is_refused(running: Path, tmp_path: Path) -> None:
    lock = Lock.take(running / "backup.lock")
    assert lock is not None
    assert "Another backup" in refusal(child(running, "store", "backup", str(tmp_path / "store.rdb")))
    lock.release()


def test_without_a_server_the_store_runs_for_the_backup(data_dir: Path, tmp_path: Path) -> None:
    copy, other = tmp_path / "store.rdb", tmp_path / "other"
    made = child(data_dir, "user", "create", "--email", "a@example.com", "--name", "Ada", "--json")
    assert child(data_dir, "store", "backup", str(copy), "--keys", str(tmp_path / "keys"), "--json").json["rows"] > 2
    assert running_socket(data_dir) is None
    assert child(other, "store", "restore", str(copy), "--keys", str(tmp_path / "keys")).status == 0
    assert stat.S_IMODE((other / "keys").stat().st_mode) == 0o600
    assert child(other, "user", "show", "a@example.com", "--json").json["sub"] == made.json["sub"]
    assert running_socket(other) is None


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("keep", [False, True], ids=["as a rule", "with --keep-tokens"])
async def test_a_restore_ends_only_access(tmp_path: Path, keep: bool) -> None:
    copy, keys, home, other = (tmp_path / name for name in ("store.rdb", "store.keys", "home", "other"))
    ring = Keys(KeyFile.open_or_create(keys))
    home.mkdir(mode=0o700)
    (home / "keys").write_bytes(keys.read_bytes())
    (home / "keys").chmod(0o600)
    engine = EmbeddedStore.start(home, "server")
    async with opened(unix_url(engine.socket_path), ring) as store:
        world = await World.make(store)
        tokens = await world.tokens()
        said = await asyncio.to_thread(child, home, "store", "backup", str(copy))
        assert said.status == 0, said.err
    engine.stop()
    flags = ("--keep-tokens",) if keep else ()
    said = await asyncio.to_thread(child, other, "store", "restore", str(copy), "--keys", str(keys), "--json", *flags)
    assert (said.json["ended"] == 0) is keep
    engine = EmbeddedStore.start(other, "server")
    async with opened(unix_url(engine.socket_path), ring) as store:
        world.store = store
        assert await world.lives(tokens.access_token) is keep
        assert (await refusal_of(world.refresh(tokens.refresh_token)) is None) is keep
        assert await store.people.verify(world.email, PASSWORD) is not None
    engine.stop()


@pytest.fixture
def copied(tmp_path: Path) -> tuple[Path, Path]:
    """A copy and its keys."""
    copy, keys, home = tmp_path / "store.rdb", tmp_path / "its.keys", tmp_path / "home"
    assert child(home, "app", "create", *NEW_APP, "--scopes", "profile").status == 0
    assert child(home, "store", "backup", str(copy), "--keys", str(keys)).status == 0
    return copy, keys


def test_a_restore_needs_an_empty_directory_and_the_right_keys(copied: tuple[Path, Path], tmp_path: Path) -> None:
    copy, keys = copied
    other = tmp_path / "other"
    assert "worthless without" in refusal(child(other, "store", "restore", str(copy)))
    wrong = tmp_path / "wrong.keys"
    wrong.touch(mode=0o600)
    wrong.write_text(KeyRing.generate(7))
    rings: list[dict[str, Any]] = [{"LATCHKEY_SECRET_KEYS": KeyRing.generate(8)}, {}]
    for given in rings:
        words = () if given else ("--keys", str(wrong))
        said = child(other, "store", "restore", str(copy), *words, **given)
        assert "none of the configured secret keys" in refusal(said)
        assert list((other / "store").iterdir()) == []
        assert not (other / "keys").exists()
    assert child(other, "store", "restore", str(copy), "--keys", str(keys)).status == 0
    for more in (("--keys", str(keys)), ()):
        assert "holds a store already" in refusal(child(other, "store", "restore", str(copy), *more))
    shutil.rmtree(other / "store")
    assert "key file already" in refusal(child(other, "store", "restore", str(copy), "--keys", str(keys)))
    assert child(other, "store", "restore", str(copy)).status == 0
    with contextlib.closing(Stopping(EmbeddedStore.start(other, "server"))):
        assert "in use" in refusal(child(other, "store", "restore", str(copy)))


def test_a_restore_refuses_keys_from_before_a_rotation(copied: tuple[Path, Path], tmp_path: Path) -> None:
    _, old = copied
    home, other, copy = tmp_path / "home", tmp_path / "other", tmp_path / "later.rdb"
    rotated = child(home, "keys", "rotate")
    assert "Copy the key file again" in rotated.out
    assert child(home, "store", "backup", str(copy), "--keys", str(tmp_path / "new.keys")).status == 0
    words = ("store", "restore", str(copy), "--keys", str(old))
    assert "that key 2 sealed" in refusal(child(other, *words))
    assert list((other / "store").iterdir()) == []
    assert not (other / "keys").exists()
    given_up = child(other, *words, "--without-lost-keys")
    assert given_up.status == 0, given_up.err
    assert "What key 2 sealed can't be opened" in given_up.out
    checked = json.loads(child(other, "fsck", "--json").out)
    assert [one["invariant"] for one in checked["findings"] if one["severity"] == "error"] == ["keyring-missing"]
    with Server(*QUICK, data_dir=other) as server:
        server.ready()
        assert server.stop() == 0
        assert re.search(r"ERROR.* key 2 sealed", server.log), server.log
    assert child(tmp_path / "third", *words[:-1], str(tmp_path / "new.keys")).status == 0


class Stopping:
    """A store that `closing` stops."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.close = store.stop


def test_an_incomplete_backup_is_refused(copied: tuple[Path, Path], tmp_path: Path) -> None:
    copy, keys = copied
    whole = copy.read_bytes()
    other = tmp_path / "other"
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    for broken in (whole[: len(whole) // 2], bytes(damaged), b"", b"no copy at all"):
        copy.write_bytes(broken)
        said = child(other, "store", "restore", str(copy), "--keys", str(keys))
        assert "no whole copy" in refusal(said)
        assert not (other / "keys").exists()
    assert "No such file" in refusal(child(other, "store", "restore", str(tmp_path / "none"), "--keys", str(keys)))


def test_other_stores_are_backed_up_with_their_own_tools(tmp_path: Path) -> None:
    ring = KeyRing.generate(1)
    with valkey() as engine:
        words = ("--redis-url", engine.url, "store")
        for verb in ("backup", "restore"):
            said = child(tmp_path / "data", *words, verb, str(tmp_path / "copy"), LATCHKEY_SECRET_KEYS=ring)
            assert "docs/operations.md" in refusal(said)


def redis_cli() -> str:
    found = shutil.which("redis-cli")
    if found is None:
        pytest.skip("there is no redis-cli on the PATH")
    return found


@pytest.mark.gen_test(timeout=90)
async def test_backup_of_redis_under_load_with_its_own_tools(keys: Keys, tmp_path: Path) -> None:
    """As docs/operations.md has it: redis-cli writes the copy; a fresh Redis loads it, then turns its log on."""
    copy = tmp_path / "dump.rdb"
    with redis_server(append_only=True, options=["--repl-diskless-sync-delay", "0"]) as engine:
        store = store_on(await connect(engine.url), keys)
        writers = [await Writer.make(store) for _ in range(WRITERS)]
        ends = await ends_of(store, writers)
        async with load(writers):
            least = [writer.written for writer in writers]
            await asyncio.to_thread(
                subprocess.run,
                [redis_cli(), "-s", engine.socket_path, "--rdb", str(copy)],
                check=True,
                capture_output=True,
            )
            most = [writer.written for writer in writers]
        engine.kill()
        await store.close()
    with redis_server() as loading:
        loading.stop()
        shutil.copy(copy, loading.directory / "dump.rdb")
        loading.start()
        with loading.client() as client:
            client.config_set("appendonly", "yes")
            wait_until(lambda: logged(client))
        loading.kill()
        with redis_server(append_only=True) as fresh:
            fresh.stop()
            shutil.rmtree(fresh.directory / "appendonlydir")
            shutil.copytree(loading.directory / "appendonlydir", fresh.directory / "appendonlydir")
            fresh.start()
            store = store_on(await connect(fresh.url), keys)
            await check_restored(store, moved(writers, store), Before(least, most, ends))
            await store.close()


def logged(client: Any) -> bool:
    """Whether everything is in the append-only file."""
    state = client.info("persistence")
    return bool(state["aof_enabled"] and not state["aof_rewrite_in_progress"] and not state["aof_rewrite_scheduled"])


@pytest.mark.gen_test(timeout=90)
async def test_backup_of_a_cluster_node_by_node(keys: Keys, tmp_path: Path) -> None:
    """Each person is on one node, so each is as at one moment."""
    with Cluster(redis_server) as cluster:
        store = store_on(await connect(cluster.url), keys)
        writers = [await Writer.make(store) for _ in range(WRITERS)]
        ends = await ends_of(store, writers)
        first = f"{HOST}:{cluster.primaries[0].port}"
        async with load(writers):
            least = [writer.written for writer in writers]
            await asyncio.to_thread(
                subprocess.run,
                [redis_cli(), "--cluster", "backup", first, str(tmp_path)],
                check=True,
                capture_output=True,
            )
            most = [writer.written for writer in writers]
        copies = [next(tmp_path.glob(f"*-{node.port}-*.rdb")) for node in cluster.primaries]
        await store.close()
    with Cluster(redis_server) as fresh:
        for node, copy in zip(fresh.primaries, copies, strict=True):
            node.engine.stop()
            shutil.copy(copy, node.engine.directory / "dump.rdb")
            node.engine.start()
        fresh.settle()
        store = store_on(await connect(fresh.url), keys)
        await check_restored(store, moved(writers, store), Before(least, most, ends))
        assert len(await every_key(store.client)) > 50
        await store.close()


class Rewriting:
    """An engine that rewrites its append-only file for a while, then writes the snapshot that it was asked for."""

    def __init__(self) -> None:
        before: dict[str, Any] = {"rdb_saves": 3, "rdb_bgsave_in_progress": 0, "rdb_last_bgsave_status": "ok"}
        self._states = [before, before, before, {**before, "rdb_bgsave_in_progress": 1}, {**before, "rdb_saves": 4}]
        self.scheduled = False

    def info(self, section: str) -> dict[str, Any]:
        """How far it is; each answer takes it a step further."""
        assert section == "persistence"
        return self._states.pop(0)

    def bgsave(self, *, schedule: bool) -> None:
        """Without `schedule` an engine refuses it in the middle of a rewrite."""
        self.scheduled = schedule

    @property
    def done(self) -> bool:
        """Whether the snapshot is there."""
        return not self._states


def test_a_backup_during_an_append_only_rewrite_waits_for_its_own_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backup, "_POLL", 0.0)
    engine: Any = Rewriting()
    backup._snapshot(engine, lambda share, what: None)
    assert (engine.scheduled, engine.done) == (True, True)
