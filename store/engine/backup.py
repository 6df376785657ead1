"""Backups of the embedded store: made while a server writes to it, and restored into an empty data directory.

A backup is one file in the engine's own snapshot format (RDB): the store at one moment. The engine writes the file from
a fork of itself. This module copies it to the target, has the engine's own checker read it back, and gives it its name
when it is complete. All of this is synchronous, like everything about the embedded store.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

import redis

from store.engine.datadir import Files, Lock, recorded_socket
from store.engine.embedded import EmbeddedStore, binary, client_of
from store.errors import StartupError

__all__ = [
    "Show",
    "begin_restore",
    "check",
    "give_up",
    "has_store",
    "require_empty",
    "reserved",
    "save",
    "write_privately",
]

Show = Callable[[float, str], None]
"""Receives the share that is done, from 0 to 1, and the present step."""

_POLL: Final = 0.02
_PIECE: Final = 1 << 20
_SNAPSHOT: Final = "dump.rdb"
_FOLDER: Final = "appendonlydir"
_BASE: Final = "appendonly.aof.1.base.rdb"
_MANIFEST: Final = "appendonly.aof.manifest"


def save(data_dir: Path, target: Path, show: Show) -> int:
    """Copies the store that runs on `data_dir` into the new file `target`, and returns the number of keys in it. Raises
    StartupError if the copy cannot be made, FileExistsError, OSError. The file is either complete or absent."""
    files = Files(data_dir.resolve())
    path = recorded_socket(files)
    if path is None:
        raise StartupError(f"No store runs on {files.root}.")
    lock = Lock.take(files.root / "backup.lock")
    if lock is None:
        raise StartupError(f"Another backup of {files.root} is being made. Try again when it is done.")
    snapshot = files.data / _SNAPSHOT
    try:
        with reserved(target), client_of(path, timeout=10.0) as client:
            _snapshot(client, show)
            with snapshot.open("rb") as source, write_privately(target) as file:
                _copy(source, file, show)
                file.flush()
                return check(Path(file.name))
    except redis.RedisError as exc:
        raise StartupError(f"The store of {files.root} could not be copied: {exc}") from exc
    finally:
        with contextlib.suppress(OSError):
            snapshot.unlink()
        lock.release()


def begin_restore(data_dir: Path, source: Path, show: Show) -> EmbeddedStore:
    """Restores a copy into a data directory without a store, and starts the store on it. The caller checks the store
    and stops it, or discards it with `give_up`. Raises StartupError for a directory that is in use or not empty and for
    an incomplete copy, OSError."""
    check(source)
    files = Files.prepare(data_dir)
    lock = Lock.take(files.lock)
    if lock is None:
        raise StartupError(f"The data directory {files.root} is in use. Stop its server first.")
    try:
        require_empty(data_dir)
        draft = files.data / f"{_FOLDER}.draft"
        try:
            draft.mkdir(mode=0o700)
            with source.open("rb") as found, write_privately(draft / _BASE) as file:
                _copy(found, file, show)
            with write_privately(draft / _MANIFEST) as file:
                file.write(f"file {_BASE} seq 1 type b\n".encode())
            draft.rename(files.data / _FOLDER)
        except BaseException:
            _remove(draft)
            raise
    except BaseException:
        lock.release()
        raise
    try:
        return EmbeddedStore(files, lock, "manage", wait=30.0)
    except BaseException:
        _remove(files.data / _FOLDER)
        raise


def has_store(data_dir: Path) -> bool:
    """Whether the data directory holds a store, which may not run. Raises OSError."""
    folder = Files(data_dir.resolve()).data
    return folder.is_dir() and any(folder.iterdir())


def require_empty(data_dir: Path) -> None:
    """Raises StartupError for a data directory that holds a store already, OSError."""
    if has_store(data_dir):
        raise StartupError(f"The data directory {data_dir.resolve()} holds a store already. Restore into an empty one.")


def give_up(data_dir: Path) -> None:
    """Removes what `begin_restore` put into a data directory; its store must be stopped."""
    _remove(Files(data_dir.resolve()).data / _FOLDER)


def check(file: Path) -> int:
    """Has the engine read a copy from end to end; returns its number of keys. Raises StartupError for an incomplete
    copy, OSError for a file that cannot be read."""
    with file.open("rb"):
        pass
    # The engine's binary acts as its own checker under another program name.
    done = subprocess.run(
        ["valkey-check-rdb", str(file.absolute())],
        executable=binary(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={"LC_ALL": "C"},
    )
    found = re.search(r"(\d+) keys read", done.stdout)
    if done.returncode or found is None:
        output = " ".join((done.stdout + done.stderr).split())[-300:]
        raise StartupError(
            f"{file} is no whole copy of a store, or one of an engine that this one does not read: {output}"
        )
    return int(found[1])


@contextlib.contextmanager
def write_privately(target: Path) -> Iterator[IO[bytes]]:
    """A file readable by its owner only. When complete, it gets its name and replaces a file of that name."""
    with tempfile.NamedTemporaryFile(prefix=f".{target.name}.", dir=target.parent, delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


@contextlib.contextmanager
def reserved(target: Path) -> Iterator[None]:
    """Reserves the name of a new file during the block, which creates the file or fails. Raises FileExistsError."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    try:
        yield
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _snapshot(client: redis.Redis, show: Show) -> None:
    """Has the engine write a snapshot, and waits until it is done."""
    begun = int(client.info("persistence")["rdb_saves"])
    client.bgsave(schedule=True)  # waits for a rewrite of the append-only file in progress
    while True:
        state = client.info("persistence")
        if int(state["rdb_saves"]) > begun and not state["rdb_bgsave_in_progress"]:
            break
        total = int(state.get("current_save_keys_total", 0))
        show(int(state.get("current_save_keys_processed", 0)) / max(total, 1) / 2, f"{total:,} keys are written")
        time.sleep(_POLL)
    if state["rdb_last_bgsave_status"] != "ok":
        raise StartupError("The store could not write its snapshot; store.log in the data directory says why.")


def _copy(source: IO[bytes], target: IO[bytes], show: Show) -> None:
    size, done = max(os.fstat(source.fileno()).st_size, 1), 0
    while piece := source.read(_PIECE):
        target.write(piece)
        done += len(piece)
        show(0.5 + done / size / 2, f"{done:,} of {size:,} bytes are copied")


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
