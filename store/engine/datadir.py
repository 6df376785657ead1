"""The data directory of the embedded store: its files, its owner, and the store's process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from store.errors import StartupError

__all__ = [
    "Files",
    "Lock",
    "LockOwner",
    "Owner",
    "connects",
    "discard_socket",
    "is_store",
    "new_socket",
    "record_socket",
    "recorded_socket",
]

Owner = Literal["server", "manage"]
State = Literal["starting", "running", "stopping"]

# A longer path does not fit a socket address: 107 bytes on Linux, 103 on macOS.
_LONGEST_SOCKET_PATH: Final = 100


@dataclass(frozen=True)
class Files:
    """The paths in the data directory; `root` is absolute, without symbolic links."""

    root: Path

    @classmethod
    def prepare(cls, data_dir: Path) -> Files:
        """The files of `data_dir`; creates the directory, for its owner only, if missing. Raises StartupError."""
        files = cls(data_dir.resolve())
        try:
            files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.data.mkdir(mode=0o700, exist_ok=True)
        except OSError as exc:
            raise StartupError(f"The data directory {files.root} cannot be used: {exc}") from exc
        return files

    @property
    def lock(self) -> Path:
        return self.root / "store.lock"

    @property
    def record(self) -> Path:
        return self.root / "store.json"

    @property
    def data(self) -> Path:
        return self.root / "store"

    @property
    def log(self) -> Path:
        return self.root / "store.log"

    @property
    def pid(self) -> Path:
        return self.root / "store.pid"


class LockOwner(NamedTuple):
    """The owner of a lock, as the owner itself wrote it."""

    owner: Owner
    pid: int
    state: State

    def serves(self) -> bool:
        """Whether the owner is a live server that is not stopping. A killed owner's entry stays in the file."""
        if self.owner != "server" or self.state == "stopping":
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


class Lock:
    """An exclusive lock on a file; the kernel frees it with the last process that has it open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> Lock | None:
        """The lock, or None while another process holds it. Raises StartupError if the file cannot be opened."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as exc:
            raise StartupError(f"The data directory {path.parent} cannot be used: {exc}") from exc
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as exc:
            os.close(descriptor)
            raise StartupError(f"The data directory {path.parent} is on a file system without locks: {exc}") from exc
        return cls(descriptor)

    @staticmethod
    def holder(path: Path) -> LockOwner | None:
        """The recorded owner of the lock on `path`; None while the record is being written."""
        try:
            record = json.loads(path.read_text())
            return LockOwner(record["owner"], record["pid"], record["state"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def say(self, owner: Owner, state: State) -> None:
        """Record the owner of the lock and its state, for other processes."""
        words = json.dumps({"owner": owner, "pid": os.getpid(), "state": state}).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, words, 0)

    def release(self) -> None:
        """Release the lock, in forked processes too, and clear the record of its owner."""
        os.ftruncate(self._descriptor, 0)
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.close()

    def close(self) -> None:
        """Close this process's copy; a lock shared by a fork stays with the other process."""
        os.close(self._descriptor)


def new_socket(files: Files) -> str:
    """A path for the store's socket: in the data directory, or in a new private one if that path is too long."""
    path = str(files.root / "store.sock")
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
        return path
    return os.path.join(tempfile.mkdtemp(prefix="latchkey-", dir="/tmp"), "store.sock")


def record_socket(files: Files, path: str) -> None:
    """Record where the store listens, in one step: a crash leaves either the old record or the new one."""
    draft = files.record.with_suffix(".new")
    draft.write_text(json.dumps({"socket": path}))
    draft.replace(files.record)


def recorded_socket(files: Files) -> str | None:
    """The recorded socket of this directory's store; None if unknown or not trustworthy."""
    try:
        path = json.loads(files.record.read_text())["socket"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return path if isinstance(path, str) and (_inside(files, path) or _private(os.path.dirname(path))) else None


def discard_socket(files: Files, path: str) -> None:
    """Remove a socket without a listener, and the directory that was created for it."""
    Path(path).unlink(missing_ok=True)
    if not _inside(files, path):
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(path))


def connects(path: str) -> bool:
    """Whether a process listens on the socket at `path`."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except BlockingIOError:  # a full queue: something listens
            return True
        except OSError:
            return False
        return True


def is_store(pid: int, files: Files) -> bool:
    """Whether `pid` is a live store of this directory, and not a zombie or a process that reuses the id."""
    if sys.platform == "linux":
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return os.fsencode(files.data) in arguments
    shown = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False).stdout
    return b"--dir " + os.fsencode(files.data) + b" --" in shown


def _inside(files: Files, path: str) -> bool:
    return Path(path).parent == files.root


def _private(directory: str) -> bool:
    """Whether `directory` is ours alone: in /tmp, anybody can recreate it after a clean-up."""
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
