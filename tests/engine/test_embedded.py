"""The embedded store: its owner, operators' commands, and privacy."""

from __future__ import annotations

import json
import os
import platform
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dev.lab.watchdog import watch
from runtime.early_stop import EarlyStop
from server import start_embedded
from settings.declared import Settings
from store.engine.datadir import Files, Lock, connects
from store.engine.embedded import EmbeddedStore, open_for_manage, running_socket
from store.errors import StartupError
from tests.support.processes.store_owners import dies, end_stores, get, owner, printed, put

LONG = "d" * 120

# A server's drain on Ctrl-C, which needs the store.
DRAINING = """
import time
try:
    print("waits", flush=True)
    time.sleep(30)
except KeyboardInterrupt:
    time.sleep(0.1)
    print(not store.gone(), flush=True)
"""


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    watch(tmp_path)
    path = tmp_path / "data"
    yield path
    end_stores(tmp_path)


def test_data_survives_stop_and_start(data_dir: Path) -> None:
    first = EmbeddedStore.start(data_dir, "server")
    put(first.socket_path, "k", "kept")
    first.stop()
    assert first.gone()
    assert not connects(first.socket_path)
    second = EmbeddedStore.start(data_dir, "server")
    assert get(second.socket_path, "k") == "kept"
    assert not second.gone()
    assert not second.adopted
    second.stop()
    second.stop()  # once more does no harm


def test_the_store_is_private_and_configured_to_keep_everything(data_dir: Path) -> None:
    store = start_embedded(Settings(data_dir=data_dir, store_memory=2**28), EarlyStop())
    with redis.Redis(unix_socket_path=store.socket_path, decode_responses=True) as client:
        wanted = {
            "maxmemory": str(2**28 - 2**24),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            "port": "0",
            "aof-load-truncated": "yes",
            "dir": str(data_dir / "store"),
        }
        assert client.config_get(*wanted) == wanted
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.stat(store.socket_path).st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (data_dir / "store").rglob("*")}
    assert modes
    assert not any(modes.values())
    store.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_store_inherits_neither_descriptors_nor_secrets(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATCHKEY_SECRET_KEYS", "1:secret")
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    store = EmbeddedStore.start(data_dir, "server")
    mine = os.readlink(f"/proc/self/fd/{reader}")
    theirs = {os.readlink(link) for link in Path(f"/proc/{store.pid}/fd").iterdir()}
    assert mine not in theirs
    assert str(data_dir / "store.lock") not in theirs
    assert b"secret" not in Path(f"/proc/{store.pid}/environ").read_bytes()
    assert os.getsid(store.pid) == store.pid
    store.stop()
    os.close(reader)
    os.close(writer)


def test_a_long_data_directory_gets_a_temporary_private_socket_directory(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir / LONG, "server")
    directory = Path(store.socket_path).parent
    assert directory.parent == Path("/tmp")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    store.stop()
    assert not directory.exists()


def test_a_second_server_on_the_directory_is_refused_at_once(data_dir: Path) -> None:
    with owner(data_dir) as process:
        printed(process)
        began = time.monotonic()
        with pytest.raises(StartupError) as refused:
            EmbeddedStore.start(data_dir, "server")
        assert time.monotonic() - began < 10, "it waited for the other to end"
        assert str(process.pid) in str(refused.value)
        assert str(data_dir) in str(refused.value)
        assert json.loads((data_dir / "store.lock").read_text()) == {
            "owner": "server",
            "pid": process.pid,
            "state": "running",
        }
        path = running_socket(data_dir)
        assert path is not None
        assert get(path, "k") is None


def test_one_of_concurrently_started_servers_wins(data_dir: Path) -> None:
    stores: list[EmbeddedStore] = []
    refusals: list[str] = []
    barrier = threading.Barrier(4)

    def start() -> None:
        barrier.wait()
        try:
            stores.append(EmbeddedStore.start(data_dir, "server"))
        except StartupError as exc:
            refusals.append(str(exc))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 1
    assert len(refusals) == 3
    assert all("runs on the data directory" in refusal for refusal in refusals)
    stores[0].stop()


def test_ctrl_c_in_the_terminal_leaves_the_store_to_its_draining_server(data_dir: Path) -> None:
    with owner(data_dir, then=DRAINING) as process:
        pid = int(printed(process))
        assert printed(process) == "waits"
        os.killpg(process.pid, signal.SIGINT)
        assert printed(process) == "True"
        process.communicate("", timeout=10)
        assert process.returncode == 0
    assert dies(pid, Files(data_dir))


def test_a_server_waits_for_an_operators_command(data_dir: Path) -> None:
    path, manage = open_for_manage(data_dir)
    assert manage is not None
    assert running_socket(data_dir) == path
    with pytest.raises(StartupError, match=rf"manage \(process {os.getpid()}, running\)"):
        EmbeddedStore.start(data_dir, "server", wait=0.1)
    put(path, "k", "kept")
    threading.Timer(0.2, manage.stop).start()
    server = EmbeddedStore.start(data_dir, "server")
    assert get(server.socket_path, "k") == "kept"
    server.stop()


def test_an_operators_command_next_to_a_server_uses_its_socket(data_dir: Path) -> None:
    assert running_socket(data_dir) is None
    assert not data_dir.exists()
    server = EmbeddedStore.start(data_dir, "server")
    assert open_for_manage(data_dir) == (server.socket_path, None)
    server.stop()
    assert running_socket(data_dir) is None


@pytest.mark.parametrize("state", ["starting", "stopping"])
def test_an_operators_command_waits_for_a_starting_or_stopping_server(data_dir: Path, state: str) -> None:
    lock = Lock.take(Files.prepare(data_dir).lock)
    assert lock is not None
    lock.say("server", "starting" if state == "starting" else "stopping")
    assert running_socket(data_dir) is None
    with pytest.raises(StartupError, match=f"server .*{state}"):
        open_for_manage(data_dir, wait=0.05)
    threading.Timer(0.1, lock.release).start()
    path, manage = open_for_manage(data_dir)
    assert manage is not None
    assert connects(path)
    manage.stop()


def test_a_directory_with_odd_characters_in_its_name_works(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir / "a b'\"\\é?#", "server")
    put(store.socket_path, "k", "kept")
    assert open_for_manage(data_dir / "a b'\"\\é?#") == (store.socket_path, None)
    store.stop()


def test_a_platform_without_a_binary_gets_instructions(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    with pytest.raises(StartupError, match=r"glibc Linux .* and macOS.*--redis-url"):
        EmbeddedStore.start(data_dir, "server")


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="cannot be used"):
        EmbeddedStore.start(tmp_path / "file", "server")
