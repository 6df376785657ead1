"""Processes of `server.py` and `manage.py` without the second of loading: forks of a process that has loaded both.
Tests of loading or command lines start Python instead."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent


class Forked:
    """One such process, in its own session. It has the parts of `subprocess.Popen` that tests use."""

    def __init__(
        self, program: str, arguments: Sequence[str], *, stdin: int, stdout: int, stderr: int, env: Mapping[str, str]
    ) -> None:
        self._command = [program, *arguments]
        self._reports, theirs = os.pipe()
        try:
            request = json.dumps([program, list(arguments), dict(env)]).encode()
            control = _loaded()
            sent = socket.send_fds(control, [len(request).to_bytes(4, "big")], [stdin, stdout, stderr, theirs])
            assert sent == 4
            control.sendall(request)
        finally:
            os.close(theirs)
        self.pid = int(self._line(30.0))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status of an ended process."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status; a negative number is the signal that ended the process."""
        if self.returncode is None:
            self.returncode = int(self._line(timeout))
            os.close(self._reports)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _line(self, timeout: float | None) -> bytes:
        """A number from the forking process: the process id, and later the exit status."""
        if not select.select([self._reports], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self._command, timeout or 0.0)
        line = b""
        while not line.endswith(b"\n"):
            piece = os.read(self._reports, 1)
            assert piece, "the process that forks has ended"
            line += piece
        return line


@functools.cache
def _loaded() -> socket.socket:
    """Starts the forking process, once per test process. It ends when its socket closes."""
    ours, theirs = socket.socketpair()
    with theirs:
        given = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.processes.forked", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            env=given,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    atexit.register(process.wait, 30)
    atexit.register(ours.close)
    return ours


def main(control: socket.socket) -> int:
    """Forks on request until nobody asks any more. Returns, in a forked process, its exit status."""
    import gc

    import cli.run  # noqa: F401  # what `manage.py` loads for a command
    import manage
    import server
    from cli.commands_parser import PROGRAM

    manage.build_parser = functools.cache(manage.build_parser)
    manage.build_parser(PROGRAM)  # once for all forks
    gc.collect()
    gc.freeze()  # garbage collection then copies no loaded memory
    living: dict[int, tuple[int, int]] = {}
    watched = select.poll()
    watched.register(control, select.POLLIN)
    while True:
        for ready, _ in watched.poll():
            if ready != control.fileno():
                watched.unregister(ready)
                pid, report = living.pop(ready)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                os.close(ready)
                with contextlib.suppress(BrokenPipeError):  # nobody waits for it
                    os.write(report, b"%d\n" % status)
                os.close(report)
                continue
            size, given, _, _ = socket.recv_fds(control, 4, 4)
            if not size:
                for pid, _ in living.values():  # the tests were stopped before they ended these
                    os.kill(pid, signal.SIGTERM)
                return 0
            program, arguments, env = json.loads(_exactly(control, int.from_bytes(size, "big")))
            pid = os.fork()
            if pid:
                for one in given[:3]:
                    os.close(one)
                watch = os.pidfd_open(pid)
                living[watch] = pid, given[3]
                watched.register(watch, select.POLLIN)
            else:
                gc.unfreeze()
                control.detach()
                _become(given, env, [program, *arguments])
                return {"server.py": server.main, "manage.py": lambda: manage.start(sys.argv[1:])}[program]()


def _exactly(control: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        piece = control.recv(size - len(got))
        assert piece
        got += piece
    return got


def _become(given: Sequence[int], env: Mapping[str, str], command: list[str]) -> None:
    """Sets up a new process: its session, its streams, its environment and its command."""
    os.setsid()
    *streams, report = given
    for number, one in enumerate(streams):
        os.dup2(one, number)
    os.dup2(report, 3)
    os.closerange(4, 1024)
    os.write(3, b"%d\n" % os.getpid())
    os.close(3)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = command
    # The streams of the forking process describe its own: no terminal, and no pipe.
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115  # as long as it lives
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115  # as above
    sys.stderr = sys.__stderr__ = open(  # type: ignore[misc]  # noqa: SIM115  # as above
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


if __name__ == "__main__":
    sys.exit(main(socket.socket(fileno=int(sys.argv[1]))))
