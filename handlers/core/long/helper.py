"""A helper process: does what would hold the interpreter's lock for long. It gets jobs over a socket, one at a time."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time

START_SECONDS = 20.0
"""Seconds that the process may take to start. Usually half a second."""
MOST_ANSWER = 2**20
"""Bytes of an answer: more would take long to read here."""
READY = b"ready"
_LENGTH = struct.Struct("!Q")
# The helper needs no secrets, so it gets none.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "COVERAGE_PROCESS_START")


class HelperFailed(Exception):
    """The helper gave no answer: it took too long, or ended."""


class Helper:
    """One process that runs the Python module `program`, started with the first job. Its methods block, so they belong
    into a thread; several threads take turns."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return self._process.pid if self._process is not None else None

    def ask(self, job: bytes, file: int, seconds: float) -> bytes:
        """The answer to a job about an open file. After `seconds` without one, the process is killed. Raises
        HelperFailed."""
        with self._turn:
            if self._closed:
                raise HelperFailed("closed")
            try:
                connection = self._socket or self._start()
                until = time.monotonic() + seconds
                send(connection, job, [file], until)
                return receive(connection, MOST_ANSWER, until)[0]
            except (OSError, EOFError, ValueError) as error:
                self._end()
                raise HelperFailed(f"{type(error).__name__}: {error}") from None

    def rest(self) -> None:
        """Ends the process, unless it has a job. The next job starts another."""
        if self._turn.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._turn.release()

    def close(self) -> None:
        """Kills the process, also in the middle of a job. Later jobs fail."""
        self._closed = True
        process = self._process
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()
        with self._turn:
            self._end()

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        with theirs:
            self._socket = ours
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", self._program, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=environment,
                start_new_session=True,  # a terminal's Ctrl-C is for the server, which ends its helper itself
            )
        if receive(ours, len(READY), time.monotonic() + START_SECONDS)[0] != READY:
            raise EOFError("no greeting")
        return ours

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None


def send(connection: socket.socket, message: bytes, files: list[int], until: float | None = None) -> None:
    """Sends a message, with open files. `until`, on the monotonic clock, is when it must be sent. Raises OSError."""
    _limit(connection, until)
    sent = socket.send_fds(connection, [_LENGTH.pack(len(message))], files)
    connection.sendall((_LENGTH.pack(len(message)) + message)[sent:])


def receive(connection: socket.socket, most: int, until: float | None = None) -> tuple[bytes, list[int]]:
    """A message of at most `most` bytes, with the open files that came with it. Raises OSError, EOFError at the end,
    and ValueError for a longer message."""
    _limit(connection, until)
    head, files, _, _ = socket.recv_fds(connection, _LENGTH.size, 1)
    head += _exactly(connection, _LENGTH.size - len(head), until) if head else b""
    if not head:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    if length > most:
        raise ValueError("too long")
    return _exactly(connection, length, until), files


def _exactly(connection: socket.socket, length: int, until: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        _limit(connection, until)
        part = connection.recv(length - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _limit(connection: socket.socket, until: float | None) -> None:
    if until is not None:
        connection.settimeout(max(0.001, until - time.monotonic()))
