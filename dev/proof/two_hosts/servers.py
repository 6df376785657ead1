"""The two hosts' servers, of an earlier release or of this one."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.bench.measure import ROOT, Unexpected
from dev.proof.two_hosts.network import Host

PORT = 8080
DRAIN_DELAY, DRAIN_TIMEOUT = 5, 10
"""Seconds."""
_START_SECONDS = 60


def release(commit: str, directory: Path) -> Path:
    """The files of an earlier release, from the repository. Raises Unexpected."""
    target = directory / "before"
    target.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise Unexpected(f"there is no {commit} in this repository: {archive.stderr.decode()[:500]}")
    subprocess.run(["tar", "--extract", "--directory", str(target)], input=archive.stdout, check=True)
    return target


def flags(files: Path) -> set[str]:
    """The settings of a release. Earlier ones have fewer."""
    said = subprocess.run(
        [sys.executable, "server.py", "--help"], cwd=files, capture_output=True, text=True, check=True
    )
    return set(re.findall(r"--[a-z-]+", said.stdout))


class HostServer:
    """`server.py` on one host, replaced as an operator would."""

    def __init__(self, host: Host, options: Sequence[str], environment: Mapping[str, str], directory: Path) -> None:
        self.host, self._environment = host, environment
        self._options = [
            *("--host", host.address, "--port", str(PORT), "--data-dir", str(directory / host.name)),
            *("--drain-delay", str(DRAIN_DELAY), "--drain-timeout", str(DRAIN_TIMEOUT)),
            *("--ops-host", host.address, *options),
        ]
        self.log = directory / f"{host.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, files: Path, *more: str) -> None:
        """Starts the server of a release, and waits until it is ready. Raises Unexpected."""
        known = flags(files)
        pairs = zip(self._options[::2], self._options[1::2], strict=True)
        options = [word for pair in pairs if pair[0] in known for word in pair]
        with self.log.open("ab") as sink:
            command = [sys.executable, "server.py", *options, *more]
            self._process = self.host.start(command, sink, files, self._environment)
        deadline = time.monotonic() + _START_SECONDS
        while not self.ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Unexpected(f"the server on {self.host.name} does not start: {self.said()[-3000:]}")
            time.sleep(0.05)

    def ready(self) -> bool:
        """Whether `/readyz` says 200."""
        connection = http.client.HTTPConnection(self.host.address, PORT, timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> float:
        """SIGTERM; returns how long the server took, in seconds. Raises Unexpected if it did not end well."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(DRAIN_DELAY + DRAIN_TIMEOUT + 20)
        if status:
            raise Unexpected(f"the server on {self.host.name} ended with {status}: {self.said()[-3000:]}")
        return time.monotonic() - began

    def said(self) -> str:
        """Its log."""
        return self.log.read_text("utf-8", "replace")

    def defects(self) -> list[str]:
        """Lines that a server should never write."""
        return [line for line in self.said().splitlines() if '"level":"critical"' in line or "traceback" in line]

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def managed(url: str, environment: Mapping[str, str], *command: str) -> str:
    """The output of a command of this release's `manage.py`. Raises Unexpected."""
    words = [sys.executable, "manage.py", "--json", *command, "--redis-url", url]
    done = subprocess.run(
        words, cwd=ROOT, env={**dict(environment), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unexpected(f"{' '.join(command)}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def found_by_search(url: str, environment: Mapping[str, str], beginning: str) -> str:
    """What a search by the beginning of an address says."""
    return managed(url, environment, "user", "list", "--query", beginning)
