"""Server processes run as an operator would: started, watched, and restarted when they end."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from dev.bench.measure import HOST, ROOT, Unexpected

START_SECONDS = 30.0
_WATCH_SECONDS = 0.1
_PAUSE_SECONDS = 0.5
"""Seconds between two starts of one server: without its store, a server ends at once."""


class Server:
    """`server.py` on fixed ports, in a process group of its own, with `workers` processes."""

    def __init__(
        self,
        name: str,
        directory: Path,
        options: Sequence[str],
        environment: Mapping[str, str],
        port: int,
        workers: int,
    ) -> None:
        self.name, self.port, self.workers = name, port, workers
        self.starts = 0
        self._command = [sys.executable, "server.py", "--host", HOST, "--port", str(port), *options]
        if workers > 1:
            self._command += ["--workers", str(workers)]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
        self._environment = {**inherited, **environment}
        self._log = directory / f"{name.replace(' ', '-')}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def log(self) -> str:
        """The server's log."""
        return self._log.read_text("utf-8", "replace")

    def start(self, *options: str) -> None:
        """Starts the process without waiting."""
        self.starts += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *options],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def ready(self) -> bool:
        """Whether the server and its store answer."""
        with contextlib.closing(http.client.HTTPConnection(HOST, self.port, timeout=1)) as connection:
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False

    def processes(self) -> list[int]:
        """The process ids of the workers that answer."""
        if self._process is None or not self.runs:
            return []
        if self.workers == 1:
            return [self._process.pid]
        with contextlib.suppress(psutil.NoSuchProcess):
            # The store that a supervisor starts has its own session.
            ours = os.getpgid(self._process.pid)
            found = psutil.Process(self._process.pid).children()
            return [one.pid for one in found if _group(one.pid) == ours]
        return []

    def kill_one(self, pid: int) -> None:
        """kill -9 of one process."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """kill -9 of the started process alone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, seconds: float = 30.0) -> None:
        """Shuts the server down cleanly; kills whatever remains after `seconds`."""
        process = self._process  # the keeper may replace it meanwhile
        if process is None:
            return
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


class Keeper:
    """Restarts every server that ended, as a service manager does."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = servers
        self._task: asyncio.Task[None] | None = None

    async def begin(self, *first: str) -> None:
        """Starts all servers; the first has its own options and starts before the others. Raises Unexpected."""
        self._servers[0].start(*first)
        await self.wait(self._servers[:1])
        for server in self._servers[1:]:
            server.start()
        await self.wait()
        self._task = asyncio.ensure_future(self._watch())

    async def wait(self, servers: Sequence[Server] | None = None, seconds: float = START_SECONDS) -> None:
        """Waits until all servers answer. Raises Unexpected with the end of a log."""
        deadline = asyncio.get_running_loop().time() + seconds
        for server in servers or self._servers:
            while not await asyncio.to_thread(server.ready):
                if asyncio.get_running_loop().time() > deadline:
                    raise Unexpected(f"{server.name} does not answer: {server.log[-2000:]}")
                await asyncio.sleep(0.05)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            for server in self._servers:
                if not server.runs:
                    await asyncio.sleep(_PAUSE_SECONDS)
                    server.start()

    async def end(self) -> None:
        """Shuts all servers down."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.gather(*(asyncio.to_thread(server.stop) for server in self._servers))
