"""Several server processes on one port: the supervisor forks them, restarts the ones that die, and ends them all.

Each worker has its own listening sockets. The supervisor holds them all, so the replacement of a dead worker takes the
connections that wait at them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from runtime import event_loop, notify
from runtime.demo import Demo
from runtime.listening import for_each_worker, take_connections
from runtime.process_state import Runtime
from runtime.reload import attempt, read_checked
from runtime.starting import STOPPED, STOPPING, announce, prepare
from runtime.store_keeper import StoreKeeper
from runtime.wiring import open_store
from store.crypto.keyring import KeyRing, Keys
from store.errors import StartupError

log = logging.getLogger("latchkey.workers")

POLL_SECONDS = 0.1
# A worker that dies younger than this did not die of its work.
INFANCY_SECONDS = 2.0
INFANT_DEATHS = 5
# After each young death the replacement starts later, up to this many seconds.
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
# Seconds that a worker may take to exit, in addition to the time for requests in progress.
ENDING_SECONDS = 5.0

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Serve = Callable[..., Awaitable[None]]


def supervise(runtime: Runtime, serve: Serve) -> int:
    """Serves with `settings.workers` processes until a signal. Returns the exit status."""
    try:
        demo = asyncio.run(_prepare(runtime))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    runtime.supervisor = os.getpid()
    try:
        supervisor = _Supervisor(runtime, serve)
        supervisor.start()
        announce(runtime, demo)
        return supervisor.watch()
    finally:
        if demo:
            demo.stop()


async def _prepare(runtime: Runtime) -> Demo | None:
    async with open_store(runtime.settings, runtime.store_url, runtime.keys) as store:
        with runtime.early.cancelling():
            return await prepare(runtime, store)


async def _check_keys(runtime: Runtime, ring: KeyRing) -> None:
    """Raises StartupError if the keys are not those of the store."""
    async with open_store(runtime.settings, runtime.store_url, Keys(ring)) as store:
        await store.key_state.check(ring)


@dataclass(frozen=True)
class _Worker:
    born: float
    sockets: list[socket.socket]
    number: int


class _Supervisor:
    def __init__(self, runtime: Runtime, serve: Serve) -> None:
        self._runtime = runtime
        self._serve = serve
        # The operations port has one socket for all workers, so that an idle worker takes its few requests.
        self._sockets = for_each_worker(runtime.sockets, runtime.settings.workers, shared=runtime.passed)
        self._workers: dict[int, _Worker] = {}
        # When each replacement starts, and its sockets.
        self._later: list[tuple[float, list[socket.socket]]] = []
        self._infant_deaths = 0
        self._stopping = False
        self._patience = 0.0
        self._exit_code = 0
        self._reload_asked = False
        embedded = runtime.embedded
        self._keeper = StoreKeeper(embedded, lambda: self._stopping) if embedded else None

    def start(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        self._runtime.early.check()
        self._reload_asked |= self._runtime.hangup.asked
        take_connections((*_all(self._sockets), *self._runtime.ops_sockets, *self._runtime.metrics_sockets))
        for sockets in self._sockets:
            self._fork(sockets)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGHUP:
            self._end_all(signal.Signals(number))
        elif self._runtime.hangup.is_meant():
            self._end_all()
        else:
            self._reload_asked = True

    def _end_all(self, number: signal.Signals = signal.SIGINT) -> None:
        """Ends the workers; with SIGTERM they serve for `drain_delay` seconds more."""
        if not self._stopping:
            settings = self._runtime.settings
            seconds = settings.drain_delay + settings.drain_timeout + settings.call_seconds + ENDING_SECONDS
            self._patience = time.monotonic() + seconds
            notify.notify_stopping()
        self._stopping = True
        self._later.clear()
        # The supervisor closes its sockets too: while one process listens, a connection that nobody accepts waits and
        # does not fail.
        for one in (*_all(self._sockets), *self._runtime.ops_sockets, *self._runtime.metrics_sockets):
            one.close()
        self._tell_all(number)

    def _reload(self) -> None:
        """Reloads the settings, keeps them for later workers, and hands them to the present ones."""
        self._reload_asked = False
        runtime = self._runtime
        with attempt():
            fresh = read_checked(runtime.settings, runtime.reread)
            if fresh.ring is not None:
                asyncio.run(_check_keys(runtime, fresh.ring))
            fresh.give(runtime.handover)
            fresh.keep(runtime)
            fresh.tell()
            self._tell_all(signal.SIGHUP)

    def _tell_all(self, number: signal.Signals) -> None:
        for pid in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _fork(self, sockets: list[socket.socket]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        # Signals wait until the new worker is in the list of processes to stop.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            if self._stopping:
                return
            # The first free number, so that a replacement continues the metrics of the dead worker.
            taken = {worker.number for worker in self._workers.values()}
            number = next(one for one in range(self._runtime.settings.workers) if one not in taken)
            pid = os.fork()
            if pid == 0:
                self._runtime.number = number
                self._work(sockets)
            self._workers[pid] = _Worker(time.monotonic(), sockets, number)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _work(self, sockets: list[socket.socket]) -> NoReturn:
        code = 1
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            self._runtime.hangup.asked = False  # it belongs to the supervisor, which has signalled all workers
            signal.signal(signal.SIGHUP, self._runtime.hangup.note)
            notify.forget_address()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            # Close the sockets of other workers: connections that wait there must end with those workers.
            for one in _all(self._sockets):
                if one not in sockets:
                    one.close()
            self._runtime.sockets = sockets
            if self._runtime.embedded:
                self._runtime.embedded.release_in_child()
            event_loop.run(self._run_worker())
            code = 0
        except StartupError as error:
            log.error("a worker cannot start: %s", error)
        except BaseException:
            log.critical("uncaught exception in a worker", exc_info=True)
        finally:
            # Skip the supervisor's clean-up code.
            os._exit(code)

    async def _run_worker(self) -> None:
        await self._serve(self._runtime, alone=False)

    def watch(self) -> int:
        """Watches the workers until all have ended. Returns the exit status."""
        told = False
        while self._workers or self._later:
            time.sleep(POLL_SECONDS)
            if self._stopping and not told:  # not in the signal's handler, which may have interrupted the log
                log.info(STOPPING)
                told = True
            self._reap()
            self._start_again()
            if self._reload_asked and not self._stopping:
                self._reload()
            if self._stopping and time.monotonic() > self._patience:
                for pid in self._workers:
                    log.error("worker %d does not end and is killed", pid)
                self._exit_code = 1
                self._tell_all(signal.SIGKILL)
                self._patience = math.inf
            if self._keeper and self._keeper.due():
                self._keeper.start()
        log.info(STOPPED)
        return self._exit_code

    def _reap(self) -> None:
        for pid in list(self._workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            worker = self._workers.pop(pid)
            self._runtime.memory.leave(worker.number, died=not self._stopping)
            if self._stopping:
                continue
            log.error("worker %d ended with status %d", pid, os.waitstatus_to_exitcode(status))
            infant = time.monotonic() - worker.born < INFANCY_SECONDS
            self._infant_deaths = self._infant_deaths + 1 if infant else 0
            # While older workers serve, the cause of these deaths may pass.
            if self._infant_deaths >= INFANT_DEATHS and not self._any_grown():
                log.critical("workers keep dying at their start")
                self._exit_code = 1
                self._end_all()
            else:
                pause = (
                    min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._infant_deaths, INFANT_DEATHS)) if infant else 0.0
                )
                self._later.append((time.monotonic() + pause, worker.sockets))

    def _any_grown(self) -> bool:
        return any(time.monotonic() - worker.born >= INFANCY_SECONDS for worker in self._workers.values())

    def _start_again(self) -> None:
        now, waiting = time.monotonic(), self._later
        self._later = [one for one in waiting if one[0] > now]
        for due, sockets in waiting:
            if due <= now:
                self._fork(sockets)


def _all(sets: list[list[socket.socket]]) -> set[socket.socket]:
    return {one for sockets in sets for one in sockets}
