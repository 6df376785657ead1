"""The embedded store after kills: it is found again, never duplicated, and keeps its data."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from store.engine import embedded
from store.engine.datadir import Files, connects, is_store, record_socket, recorded_socket
from store.engine.embedded import EmbeddedStore, running_socket
from store.errors import StartupError
from tests.support.processes.store_owners import dies, end_stores, get, owner, printed, put

LONG = "d" * 120

# The same with a worker that survives for a moment after its supervisor was killed.
FORKING = """
if os.fork() == 0:
    store.release_in_child()
    store.stop()
    print(not store.gone(), flush=True)
"""


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "data"
    yield path
    end_stores(tmp_path)


@pytest.mark.parametrize(
    "where", [pytest.param("data", id="in the data directory"), pytest.param(LONG, id="elsewhere, its path being long")]
)
def test_a_store_whose_owner_was_killed_is_adopted_with_its_data(data_dir: Path, where: str) -> None:
    data_dir = data_dir.with_name(where)
    with owner(data_dir) as process:
        pid = int(printed(process))
        path = running_socket(data_dir)
        assert path is not None
        assert len(os.fsencode(path)) <= 100
        put(path, "k", "kept")
        process.kill()
        process.wait()
    assert running_socket(data_dir) is None
    assert connects(path)
    store = EmbeddedStore.start(data_dir, "server")
    assert store.adopted
    assert store.pid == pid
    assert store.socket_path == path
    assert get(path, "k") == "kept"
    assert not store.gone()
    store.stop()
    assert dies(pid, Files(data_dir))
    assert store.gone()
    assert not Path(path).exists()
    again = EmbeddedStore.start(data_dir, "server")
    assert not again.adopted
    assert get(again.socket_path, "k") == "kept"
    again.stop()


def test_a_recorded_socket_in_a_shared_directory_is_not_trusted(data_dir: Path, tmp_path: Path) -> None:
    files = Files.prepare(data_dir)
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    record_socket(files, str(shared / "store.sock"))
    assert recorded_socket(files) == str(shared / "store.sock")
    shared.chmod(0o777)
    assert recorded_socket(files) is None
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    record_socket(files, str(link / "store.sock"))
    assert recorded_socket(files) is None


def test_a_forked_worker_holds_no_lock_and_cannot_stop_the_store(data_dir: Path) -> None:
    with owner(data_dir, then=FORKING) as process:
        pid = int(printed(process))
        assert printed(process) == "True"  # after the worker's stop(), which is none of its business
        process.kill()
        process.wait()
        store = EmbeddedStore.start(data_dir, "server", wait=2)  # the worker still runs
        assert store.adopted
        assert store.pid == pid
        store.stop()


def test_data_survives_kill_9_of_the_store(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    put(store.socket_path, "k", "kept")
    assert not store.gone()
    os.kill(store.pid, signal.SIGKILL)
    os.waitid(os.P_PID, store.pid, os.WEXITED | os.WNOWAIT)
    assert store.gone()
    assert Path(store.socket_path).exists()  # the socket file stays and means nothing
    store.stop()
    again = EmbeddedStore.start(data_dir, "server")
    assert get(again.socket_path, "k") == "kept"
    again.stop()


def test_a_start_recovers_after_both_processes_were_killed(data_dir: Path) -> None:
    with owner(data_dir) as process:
        pid = int(printed(process))
        put(str(data_dir / "store.sock"), "k", "kept")
        process.kill()
        process.wait()
        os.kill(pid, signal.SIGKILL)
    assert dies(pid, Files(data_dir))
    assert (data_dir / "store.pid").exists()
    assert (data_dir / "store.json").exists()
    store = EmbeddedStore.start(data_dir, "server")
    assert not store.adopted
    assert get(store.socket_path, "k") == "kept"
    store.stop()


def append_only_file(data_dir: Path) -> Path:
    return next((data_dir / "store" / "appendonlydir").glob("*.incr.aof"))


def test_a_truncated_append_only_file_loads(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    put(store.socket_path, "k", "kept")
    store.stop()
    with append_only_file(data_dir).open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$100\r\nhal")
    again = EmbeddedStore.start(data_dir, "server")
    assert get(again.socket_path, "k") == "kept"
    assert get(again.socket_path, "x") is None
    again.stop()


def test_a_store_that_cannot_start_shows_its_log_and_frees_the_directory(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    put(store.socket_path, "k", "kept")
    store.stop()
    file = append_only_file(data_dir)
    whole = file.read_bytes()
    file.write_bytes(b"*garbage\r\n" + whole)
    with pytest.raises(StartupError, match=r"ended by itself(.|\n)*Bad file format"):
        EmbeddedStore.start(data_dir, "server")
    file.write_bytes(whole)
    again = EmbeddedStore.start(data_dir, "server")
    assert get(again.socket_path, "k") == "kept"
    again.stop()


@contextlib.contextmanager
def orphan(data_dir: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A store of `data_dir` without an owner, as a killed one leaves it."""
    files = Files.prepare(data_dir)
    path = str(data_dir / "store.sock")
    record_socket(files, path)
    process = subprocess.Popen(
        [embedded.binary(), *embedded._options(files, path), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd=files.data,
    )
    try:
        deadline = time.monotonic() + 5
        while not connects(path) and time.monotonic() < deadline:
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_start_waits_for_an_orphan_that_is_still_loading(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    with redis.Redis(unix_socket_path=store.socket_path) as client:
        for number in range(400):
            client.set(f"k{number}", os.urandom(100).hex())  # does not compress
        client.bgrewriteaof()
        while client.info("persistence")["aof_rewrite_in_progress"] or not list(data_dir.rglob("*.2.base.rdb")):
            time.sleep(0.01)
    store.stop()
    slow = ("--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
    with orphan(data_dir, *slow) as process:
        path = str(data_dir / "store.sock")
        client = redis.Redis(unix_socket_path=path, retry=Retry(NoBackoff(), 0))
        with client, pytest.raises(redis.BusyLoadingError):
            client.ping()
        began = time.monotonic()
        adopted = EmbeddedStore.start(data_dir, "server", wait=0.3)
        assert time.monotonic() - began > 0.3  # longer than `wait`
        assert adopted.adopted
        assert adopted.pid == process.pid
        with redis.Redis(unix_socket_path=adopted.socket_path) as client:
            assert client.dbsize() == 400
        adopted.stop()
        process.wait(5)


def test_an_unresponsive_orphan_is_neither_adopted_nor_duplicated(data_dir: Path) -> None:
    with orphan(data_dir) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(StartupError, match="did not answer"):
            EmbeddedStore.start(data_dir, "server", wait=0.1)
        process.send_signal(signal.SIGCONT)
        store = EmbeddedStore.start(data_dir, "server")
        assert store.adopted
        store.stop()


def test_an_orphan_without_a_socket_is_ended_before_a_new_store_starts(data_dir: Path) -> None:
    with orphan(data_dir) as process:
        put(str(data_dir / "store.sock"), "k", "kept")
        (data_dir / "store.sock").unlink()
        reaper = threading.Thread(target=process.wait)
        reaper.start()
        store = EmbeddedStore.start(data_dir, "server")
        reaper.join(5)
        assert process.returncode == 0
        assert not store.adopted
        assert get(store.socket_path, "k") == "kept"
        store.stop()


def test_a_copied_directory_does_not_adopt_the_originals_store(data_dir: Path, tmp_path: Path) -> None:
    original = EmbeddedStore.start(data_dir / LONG, "server")
    copy_dir = tmp_path / "copy"
    shutil.copytree(data_dir / LONG, copy_dir, ignore=shutil.ignore_patterns("*.sock"))
    copy = EmbeddedStore.start(copy_dir, "server")
    assert not copy.adopted
    assert copy.pid != original.pid
    assert copy.socket_path != original.socket_path
    put(copy.socket_path, "k", "copy")
    assert get(original.socket_path, "k") is None
    copy.stop()
    assert not original.gone()
    original.stop()


def test_a_frozen_store_is_killed_after_the_stop_timeout(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    put(store.socket_path, "k", "kept")
    os.kill(store.pid, signal.SIGSTOP)
    store.stop(timeout=0.1)
    assert not is_store(store.pid, Files(data_dir))
    again = EmbeddedStore.start(data_dir, "server")
    assert get(again.socket_path, "k") == "kept"
    again.stop()


def test_an_orphan_that_ends_during_the_check_is_replaced(data_dir: Path) -> None:
    with orphan(data_dir) as process:
        put(str(data_dir / "store.sock"), "k", "kept")
        process.send_signal(signal.SIGSTOP)
        threading.Timer(0.2, process.kill).start()
        store = EmbeddedStore.start(data_dir, "server")
        assert not store.adopted
        assert get(store.socket_path, "k") == "kept"
        store.stop()
