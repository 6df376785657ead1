"""Runs the service in a separate process, which ends with this one."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import latchkey

CHILD = Path(__file__).with_name("child.py")
_LISTENING = re.compile(rb'Latchkey listening on (http://[^\s"]+).*\n')
"""In text, or within a line of JSON."""
OPTIONS = (
    *("--redis-url", "memory", "--host", "localhost", "--port", "0"),
    # Hash passwords as cheaply as possible.
    *("--password-memory", "8192", "--password-iterations", "1"),
    # When a test stops the service, nothing is worth waiting for.
    *("--drain-timeout", "0"),
)
UNWANTED = ("PYTHONWARNINGS", "PYTHONDEVMODE", "PYTHONPROFILEIMPORTTIME")
"""Variables that would change the output of the service, or slow its start."""


class LatchkeyProcess:
    """A server with all of its state in memory, on a free port of this machine. `options` are flags of `server.py`.
    Relative file names in them start at `folder`, by default the working directory."""

    def __init__(self, options: Sequence[str] = (), *, folder: Path | None = None, patience: float = 30.0) -> None:
        """Starts the service, and waits at most `patience` seconds until it listens. Raises RuntimeError with its
        log."""
        self._folder = Path(tempfile.mkdtemp(prefix="latchkey-"))
        self._log = self._folder / "log"
        self._logged: bytes | None = None
        command = [sys.executable, str(CHILD), str(os.getpid()), str(self._folder), str(latchkey.tree()), *OPTIONS]
        settings = ("LATCHKEY_", *UNWANTED)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--data-dir", str(self._folder / "data"), *options],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={name: value for name, value in os.environ.items() if not name.startswith(settings)},
                # Ctrl-C ends the tests, whose last steps may still need the service.
                start_new_session=True,
            )
        try:
            self.url = self._listening(time.monotonic() + patience)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> LatchkeyProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def log(self, start: int = 0) -> str:
        """The log from byte `start` on, also after the service has ended."""
        if self._logged is not None:
            return self._logged[start:].decode("utf-8", "replace")
        self._catch_up()
        with self._log.open("rb") as file:
            file.seek(start)
            return file.read().decode("utf-8", "replace")

    def logged(self) -> int:
        """The length of the log in bytes."""
        return self._log.stat().st_size if self._logged is None else len(self._logged)

    def _catch_up(self) -> None:
        """Waits for the log: a request is logged just after its answer, so before the next request is answered."""
        if hasattr(self, "url") and self.process.poll() is None:
            connection = HTTPConnection(urlsplit(self.url).netloc, timeout=1.0)
            with contextlib.closing(connection), contextlib.suppress(OSError, HTTPException):
                connection.request("GET", "/healthz")
                connection.getresponse().read()

    def stop(self) -> None:
        """Stops the service. Its data is lost."""
        if self._logged is None:
            self._catch_up()
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        if self._logged is None:
            # Later failures can still show the log.
            self._logged = self._log.read_bytes()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _listening(self, deadline: float) -> str:
        """The address in the line that says the service listens."""
        assert self.process.stdout is not None
        read = b""
        while not (found := _LISTENING.search(read)):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not piece:
                raise RuntimeError(f"Latchkey did not start:\n{self.log()}")
            read += piece
        return found[1].decode()
