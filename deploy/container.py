"""A container engine's commands, and one container of the image as an operator runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp")
"""As in deploy/compose.yaml and in the chart."""


def say(text: str) -> None:
    """One line about what was seen."""
    print(text, file=sys.stderr, flush=True)


def ran(*command: str) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


class Engine:
    """Podman or Docker."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)

    def __call__(self, *arguments: str) -> str:
        return ran(*self.command, *arguments)

    def described(self, image: str) -> dict[str, Any]:
        """What `inspect` says of an image."""
        found: dict[str, Any] = json.loads(self("image", "inspect", image))[0]
        return found

    def size(self, image: str) -> int:
        """Bytes."""
        return int(self.described(image)["Size"])


class Container:
    """A container of the image with the usual hardening. Remove it with `close`."""

    def __init__(self, engine: Engine, image: str, *flags: str) -> None:
        self._engine, self._image = engine, image
        self.id = engine("run", "--detach", *HARDENED, *flags, image).splitlines()[-1]

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command in the container, with its outcome."""
        whole = [*self._engine.command, "exec", self.id, *command]
        return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=60)

    def healthy(self) -> bool:
        """Whether the check that the image declares finds the server well."""
        found = self._engine.described(self._image)
        check = found.get("Healthcheck") or found["Config"]["Healthcheck"]
        assert check["Test"][0] == "CMD"
        return self.inside(*check["Test"][1:]).returncode == 0

    def wait_until_healthy(self, seconds: float = 60.0) -> float:
        """Returns how long it took, in seconds."""
        began = time.monotonic()
        while not self.healthy():
            assert time.monotonic() < began + seconds, f"never healthy:\n{self.log}"
        return time.monotonic() - began

    @property
    def log(self) -> str:
        """Both streams."""
        command = [*self._engine.command, "logs", self.id]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout

    @property
    def status(self) -> dict[str, str]:
        """The fields of /proc/PID/status of the server on the host."""
        pid = self._engine("inspect", "--format", "{{.State.Pid}}", self.id)
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return {name: rest.strip() for name, _, rest in (line.partition(":") for line in lines)}

    def changed(self) -> set[str]:
        """The paths of the root file system that differ from the image."""
        return {line.split(" ", 1)[1] for line in self._engine("diff", self.id).splitlines()}

    def stop(self, seconds: int = 30) -> tuple[float, int]:
        """Stops it as an engine does; returns how long that took, in seconds, and the exit status."""
        began = time.monotonic()
        self._engine("stop", "--time", str(seconds), self.id)
        took = time.monotonic() - began
        return took, int(self._engine("inspect", "--format", "{{.State.ExitCode}}", self.id))

    def start(self) -> None:
        """Starts it again."""
        self._engine("start", self.id)

    def close(self) -> None:
        """Removes it with its volumes."""
        self._engine("rm", "--force", "--volumes", self.id)
