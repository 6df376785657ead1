"""Several server processes on one port: the supervisor forks them, restarts the ones that die, and ends them all."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from opening import open_store
from store.errors import StartupError

if TYPE_CHECKING:
    from demo import Demo
    from server import Runtime

log = logging.getLogger("latchkey.workers")

POLL_SECONDS = 0.1
# A worker that dies younger than this did not die of its work.
INFANCY_SECONDS = 2.0
INFANT_DEATHS = 5

SIGNALS = (signal.SIGTERM, signal.SIGINT)

Serve = Callable[..., Awaitable[None]]
Announce = Callable[["Runtime", "Demo | None"], None]


def supervise(runtime: Runtime, serve: Serve, announce: Announce) -> int:
    """Serves with `settings.workers` processes until a signal. Returns the exit status."""
    demo = asyncio.run(_prepare(runtime))
    runtime.supervisor = os.getpid()
    supervisor = _Supervisor(runtime, serve)
    try:
        supervisor.start()
        announce(runtime, demo)
        return supervisor.watch()
    finally:
        if demo:
            demo.stop()


async def _prepare(runtime: Runtime) -> Demo | None:
    async with open_store(runtime.settings, runtime.store_url, runtime.keys) as store:
        return await runtime.prepare(store)


class _Supervisor:
    def __init__(self, runtime: Runtime, serve: Serve) -> None:
        self._runtime = runtime
        self._serve = serve
        self._born: dict[int, float] = {}
        self._infant_deaths = 0
        self._stopping = False
        self._exit_code = 0

    def start(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        for _ in range(self._runtime.settings.workers):
            self._fork()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._end_all()

    def _end_all(self) -> None:
        self._stopping = True
        # As long as one process listens, a connection that nobody will take does not fail but waits.
        for one in (*self._runtime.sockets, *self._runtime.ops_sockets):
            one.close()
        for pid in self._born:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _fork(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal waits until the new worker is in the list of those to end.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            if self._stopping:
                return
            pid = os.fork()
            if pid == 0:
                self._work()
            self._born[pid] = time.monotonic()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _work(self) -> NoReturn:
        code = 1
        try:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            if self._runtime.embedded:
                self._runtime.embedded.release_in_child()
            # Not uvloop: of workers that were forked, now and then one did not hear of its end.
            asyncio.run(self._run_worker())
            code = self._runtime.exit_code
        except StartupError as error:
            log.error("a worker cannot start: %s", error)
        except BaseException:
            traceback.print_exc()
        finally:
            # Nothing of the supervisor's clean-up belongs to a worker.
            os._exit(code)

    async def _run_worker(self) -> None:
        await self._serve(self._runtime, alone=False)

    def watch(self) -> int:
        """Until every worker has ended."""
        while self._born:
            time.sleep(POLL_SECONDS)
            self._reap()
            embedded = self._runtime.embedded
            if embedded and not self._stopping and not embedded.alive():
                log.critical("the embedded store ended; see the log in the data directory")
                self._exit_code = 1
                self._end_all()
        return self._exit_code

    def _reap(self) -> None:
        for pid in list(self._born):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            age = time.monotonic() - self._born.pop(pid)
            if self._stopping:
                continue
            log.error("worker %d ended with status %d", pid, os.waitstatus_to_exitcode(status))
            self._infant_deaths = self._infant_deaths + 1 if age < INFANCY_SECONDS else 0
            if self._infant_deaths >= INFANT_DEATHS:
                log.critical("workers keep dying at their start")
                self._exit_code = 1
                self._end_all()
            else:
                self._fork()
