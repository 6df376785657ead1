"""The environment of the peers: a store, a stub model server, cores, a directory."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from dev.bench.cores import Cores, pinned
from dev.bench.measure import HOST, ROOT, Unexpected
from dev.bench.parts.stores import DURABLE, running, valkey_binary
from dev.lab.processes import Process, started

STUB = "dev.bench.parts.stub_upstream"
_PORT = re.compile(r"\bport (\d+)")


@dataclass(frozen=True, slots=True)
class Stage:
    """`store` listens on its port and on the socket `socket_path`; `stub` is None if there is none."""

    stack: contextlib.ExitStack
    directory: Path
    cores: Cores
    store: Process
    socket_path: str
    stub: Process | None

    @classmethod
    def build(cls, stack: contextlib.ExitStack, directory: Path, cores: Cores) -> Stage:
        """Starts store and stub on the core of the load; both end with `stack`."""
        store = stack.enter_context(running(valkey_binary(), directory, DURABLE, cores.load))
        return cls(stack, directory, cores, store.process, store.socket_path, start_stub(stack, directory, cores.load))

    def start(self, command: Sequence[str | Path], name: str, folder: Path, port: int, **environment: str) -> Process:
        """A peer on the server's core; its log is `name`.log."""
        log = self.directory / f"{name}.log"
        # gunicorn and others write files to the home directory.
        given = {"HOME": str(self.directory), "PORT": str(port), **environment}
        words = [str(word) for word in command]
        return self.stack.enter_context(
            started(words, log, port=port, core=self.cores.server, cwd=folder, environment=given)
        )

    def tokens(self, name: str) -> dict[str, list[str]]:
        """The content of a setup's token file."""
        made: dict[str, list[str]] = json.loads(self.out(name).read_text())
        return made

    def out(self, name: str) -> Path:
        """The path of a setup's token file."""
        return self.directory / f"{name}.json"

    def file(self, name: str) -> Path:
        """The base URL for requests."""
        return self.directory / f"{name}.requests"


def start_stub(stack: contextlib.ExitStack, directory: Path, core: int) -> Process | None:
    """The stub model server, or None if this checkout has none. It prints its port on standard output."""
    if importlib.util.find_spec(STUB) is None:
        return None
    out = directory / "stub.out"
    with out.open("wb") as sink:
        popen = subprocess.Popen(pinned(core, [sys.executable, "-m", STUB]), cwd=ROOT, stdout=sink)
    stack.callback(popen.wait)
    stack.callback(popen.terminate)
    deadline = monotonic() + 30
    while (said := _PORT.search(out.read_text())) is None:
        if popen.poll() is not None or monotonic() > deadline:
            raise Unexpected(f"{STUB} does not listen at {HOST}")
        sleep(0.02)
    return Process(popen.pid, int(said[1]))
