"""The embedded store's lives: who owns it, who finds it again, and that it keeps its data through every end."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from store import embedded
from store.datadir import Files, Lock, connects, is_store, record_socket, recorded_socket
from store.embedded import EmbeddedStore, open_for_manage, running_socket
from store.errors import StartupError

ROOT = Path(__file__).parent.parent
LONG = "d" * 120

# A process that owns a store until its standard input ends, and then stops it.
OWNER = """
import os, sys
from pathlib import Path
from store.embedded import EmbeddedStore
store = EmbeddedStore.start(Path(sys.argv[1]), sys.argv[2])
print(store.pid, flush=True)
{then}
sys.stdin.read()
store.stop()
"""
# The same with a worker that lives on, as a tornado worker does for a moment after its supervisor was killed.
FORKING = """
if os.fork() == 0:
    store.release_in_child()
    store.stop()
    print(store.alive(), flush=True)
"""
# What a server does on Ctrl-C: it drains, for which it needs the store.
DRAINING = """
import time
try:
    time.sleep(30)
except KeyboardInterrupt:
    time.sleep(0.1)
    print(store.alive(), flush=True)
"""


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "data"
    yield path
    for pid_file in tmp_path.rglob("store.pid"):  # a test that failed half-way leaves no store behind
        files = Files(pid_file.parent.resolve())
        with contextlib.suppress(OSError, ValueError):
            pid = int(pid_file.read_text())
            if is_store(pid, files):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def owner(data_dir: Path, kind: str = "server", then: str = "") -> Iterator[subprocess.Popen[str]]:
    """A child process, in a process group of its own, that owns the store; it has printed the store's pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(then=then), str(data_dir), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def put(path: str, key: str, value: str) -> None:
    with redis.Redis(unix_socket_path=path) as client:
        client.set(key, value)


def get(path: str, key: str) -> str | None:
    with redis.Redis(unix_socket_path=path, decode_responses=True) as client:
        value: str | None = client.get(key)
        return value


def dies(pid: int, files: Files) -> bool:
    deadline = time.monotonic() + 5
    while is_store(pid, files) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_store(pid, files)


def test_data_survives_stop_and_start(data_dir: Path) -> None:
    first = EmbeddedStore.start(data_dir, "server")
    put(first.socket_path, "k", "kept")
    first.stop()
    assert not first.alive() and not connects(first.socket_path)
    second = EmbeddedStore.start(data_dir, "server")
    assert get(second.socket_path, "k") == "kept"
    assert second.alive() and not second.adopted
    second.stop()
    second.stop()  # once more does no harm


def test_the_store_is_private_and_configured_to_keep_everything(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    with redis.Redis(unix_socket_path=store.socket_path, decode_responses=True) as client:
        wanted = {
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
    assert modes and not any(modes.values())
    store.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_store_inherits_neither_descriptors_nor_secrets(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATCHKEY_SECRET_KEYS", "1:secret")
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    store = EmbeddedStore.start(data_dir, "server")
    mine = os.readlink(f"/proc/self/fd/{reader}")
    theirs = {os.readlink(link) for link in Path(f"/proc/{store.pid}/fd").iterdir()}
    assert mine not in theirs and str(data_dir / "store.lock") not in theirs
    assert b"secret" not in Path(f"/proc/{store.pid}/environ").read_bytes()
    assert os.getsid(store.pid) == store.pid
    store.stop()
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    "where", [pytest.param("data", id="in the data directory"), pytest.param(LONG, id="elsewhere, its path being long")]
)
def test_a_store_whose_owner_was_killed_is_adopted_with_its_data(data_dir: Path, where: str) -> None:
    data_dir = data_dir.with_name(where)
    with owner(data_dir) as process:
        pid = int(told(process))
        path = running_socket(data_dir)
        assert path is not None and len(os.fsencode(path)) <= 100
        put(path, "k", "kept")
        process.kill()
        process.wait()
    assert running_socket(data_dir) is None and connects(path)
    store = EmbeddedStore.start(data_dir, "server")
    assert store.adopted and store.pid == pid and store.socket_path == path
    assert get(path, "k") == "kept"
    assert store.alive()
    store.stop()
    assert dies(pid, Files(data_dir)) and not store.alive()
    assert not Path(path).exists()
    again = EmbeddedStore.start(data_dir, "server")
    assert not again.adopted and get(again.socket_path, "k") == "kept"
    again.stop()


def test_a_long_data_directory_gets_a_private_socket_directory_that_goes_with_the_store(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir / LONG, "server")
    directory = Path(store.socket_path).parent
    assert directory.parent == Path("/tmp") and stat.S_IMODE(directory.stat().st_mode) == 0o700
    store.stop()
    assert not directory.exists()


def test_a_recorded_socket_in_a_directory_others_can_write_is_not_trusted(data_dir: Path, tmp_path: Path) -> None:
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


def test_a_second_server_on_the_directory_is_refused_at_once(data_dir: Path) -> None:
    with owner(data_dir) as process:
        told(process)
        began = time.monotonic()
        with pytest.raises(StartupError) as refused:
            EmbeddedStore.start(data_dir, "server")
        assert time.monotonic() - began < 1
        assert str(process.pid) in str(refused.value) and str(data_dir) in str(refused.value)
        assert json.loads((data_dir / "store.lock").read_text()) == {
            "owner": "server",
            "pid": process.pid,
            "state": "running",
        }
        path = running_socket(data_dir)
        assert path is not None and get(path, "k") is None


def test_of_servers_started_together_exactly_one_wins(data_dir: Path) -> None:
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
    assert len(stores) == 1 and len(refusals) == 3
    assert all("runs on the data directory" in refusal for refusal in refusals)
    stores[0].stop()


def test_ctrl_c_in_the_terminal_leaves_the_store_to_its_draining_server(data_dir: Path) -> None:
    with owner(data_dir, then=DRAINING) as process:
        pid = int(told(process))
        time.sleep(0.1)  # the child is to be in its try block
        os.killpg(process.pid, signal.SIGINT)
        assert told(process) == "True"
        process.communicate("", timeout=10)
        assert process.returncode == 0
    assert dies(pid, Files(data_dir))


def test_a_forked_worker_keeps_neither_lock_nor_power_over_the_store(data_dir: Path) -> None:
    with owner(data_dir, then=FORKING) as process:
        pid = int(told(process))
        assert told(process) == "True"  # after the worker's stop(), which is none of its business
        process.kill()
        process.wait()
        store = EmbeddedStore.start(data_dir, "server", wait=2)  # the worker still runs
        assert store.adopted and store.pid == pid
        store.stop()


def test_a_server_waits_for_an_operators_command(data_dir: Path) -> None:
    path, manage = open_for_manage(data_dir)
    assert manage is not None and running_socket(data_dir) == path
    with pytest.raises(StartupError, match=rf"manage \(process {os.getpid()}, running\)"):
        EmbeddedStore.start(data_dir, "server", wait=0.1)
    put(path, "k", "kept")
    threading.Timer(0.2, manage.stop).start()
    server = EmbeddedStore.start(data_dir, "server")
    assert get(server.socket_path, "k") == "kept"
    server.stop()


def test_an_operators_command_beside_a_server_uses_its_socket(data_dir: Path) -> None:
    assert running_socket(data_dir) is None and not data_dir.exists()
    server = EmbeddedStore.start(data_dir, "server")
    assert open_for_manage(data_dir) == (server.socket_path, None)
    server.stop()
    assert running_socket(data_dir) is None


@pytest.mark.parametrize("state", ["starting", "stopping"])
def test_an_operators_command_waits_for_a_server_that_is(data_dir: Path, state: str) -> None:
    lock = Lock.take(Files.prepare(data_dir).lock)
    assert lock is not None
    lock.say("server", "starting" if state == "starting" else "stopping")
    assert running_socket(data_dir) is None
    with pytest.raises(StartupError, match=f"server .*{state}"):
        open_for_manage(data_dir, wait=0.05)
    threading.Timer(0.1, lock.release).start()
    path, manage = open_for_manage(data_dir)
    assert manage is not None and connects(path)
    manage.stop()


def test_the_data_survive_kill_9_of_the_store(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    put(store.socket_path, "k", "kept")
    assert store.alive()
    os.kill(store.pid, signal.SIGKILL)
    os.waitid(os.P_PID, store.pid, os.WEXITED | os.WNOWAIT)
    assert not store.alive()
    assert Path(store.socket_path).exists()  # the socket file stays and means nothing
    store.stop()
    again = EmbeddedStore.start(data_dir, "server")
    assert get(again.socket_path, "k") == "kept"
    again.stop()


def test_both_killed_leave_files_that_the_next_start_sees_through(data_dir: Path) -> None:
    with owner(data_dir) as process:
        pid = int(told(process))
        put(str(data_dir / "store.sock"), "k", "kept")
        process.kill()
        process.wait()
        os.kill(pid, signal.SIGKILL)
    assert dies(pid, Files(data_dir)) and (data_dir / "store.pid").exists() and (data_dir / "store.json").exists()
    store = EmbeddedStore.start(data_dir, "server")
    assert not store.adopted and get(store.socket_path, "k") == "kept"
    store.stop()


def append_only_file(data_dir: Path) -> Path:
    return next((data_dir / "store" / "appendonlydir").glob("*.incr.aof"))


def test_an_append_only_file_cut_short_by_a_crash_loads(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    put(store.socket_path, "k", "kept")
    store.stop()
    with append_only_file(data_dir).open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$100\r\nhal")
    again = EmbeddedStore.start(data_dir, "server")
    assert get(again.socket_path, "k") == "kept" and get(again.socket_path, "x") is None
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
        [embedded._binary(), *embedded._options(files, path), *options],
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


def test_an_orphan_that_is_still_loading_is_waited_for_as_long_as_it_gets_on(data_dir: Path) -> None:
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
        assert adopted.adopted and adopted.pid == process.pid
        with redis.Redis(unix_socket_path=adopted.socket_path) as client:
            assert client.dbsize() == 400
        adopted.stop()
        process.wait(5)


def test_an_orphan_that_does_not_answer_is_neither_adopted_nor_doubled(data_dir: Path) -> None:
    with orphan(data_dir) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(StartupError, match="did not answer"):
            EmbeddedStore.start(data_dir, "server", wait=0.1)
        process.send_signal(signal.SIGCONT)
        store = EmbeddedStore.start(data_dir, "server")
        assert store.adopted
        store.stop()


def test_an_orphan_without_its_socket_is_ended_before_another_store_starts(data_dir: Path) -> None:
    with orphan(data_dir) as process:
        put(str(data_dir / "store.sock"), "k", "kept")
        (data_dir / "store.sock").unlink()
        reaper = threading.Thread(target=process.wait)
        reaper.start()
        store = EmbeddedStore.start(data_dir, "server")
        reaper.join(5)
        assert process.returncode == 0 and not store.adopted and get(store.socket_path, "k") == "kept"
        store.stop()


def test_a_copied_directory_does_not_adopt_the_originals_store(data_dir: Path, tmp_path: Path) -> None:
    original = EmbeddedStore.start(data_dir / LONG, "server")
    copy_dir = tmp_path / "copy"
    shutil.copytree(data_dir / LONG, copy_dir, ignore=shutil.ignore_patterns("*.sock"))
    copy = EmbeddedStore.start(copy_dir, "server")
    assert not copy.adopted and copy.pid != original.pid and copy.socket_path != original.socket_path
    put(copy.socket_path, "k", "copy")
    assert get(original.socket_path, "k") is None
    copy.stop()
    assert original.alive()
    original.stop()


def test_a_frozen_store_is_killed_when_its_time_to_stop_is_up(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir, "server")
    put(store.socket_path, "k", "kept")
    os.kill(store.pid, signal.SIGSTOP)
    store.stop(timeout=0.1)
    assert not is_store(store.pid, Files(data_dir))
    again = EmbeddedStore.start(data_dir, "server")
    assert get(again.socket_path, "k") == "kept"
    again.stop()


def test_a_directory_with_odd_characters_in_its_name_works(data_dir: Path) -> None:
    store = EmbeddedStore.start(data_dir / "a b'\"\\é?#", "server")
    put(store.socket_path, "k", "kept")
    assert open_for_manage(data_dir / "a b'\"\\é?#") == (store.socket_path, None)
    store.stop()


def test_a_platform_without_a_binary_is_told_what_to_do(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    with pytest.raises(StartupError, match=r"glibc Linux .* and macOS.*--redis-url"):
        EmbeddedStore.start(data_dir, "server")


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="cannot be used"):
        EmbeddedStore.start(tmp_path / "file", "server")
