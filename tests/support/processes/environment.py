"""Virtual environments for tests with packages that `make test` need not install."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

ENVIRONMENTS = Path(__file__).resolve().parents[3] / ".venv"
HASHED = ["--require-hashes", "--no-deps", "--no-compile"]


def python_with(requirements: Path, name: str) -> Path:
    """The Python of an environment with a lock file's packages, in the checkout's own environment, which tools pass
    over. One process installs while the others wait."""
    environment = ENVIRONMENTS / name
    python, stamp = environment / "bin" / "python", environment / "installed"
    with requirements.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != requirements.read_text():
            make = [sys.executable, "-m", "venv", "--clear", str(environment)]
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *HASHED]
            for command in (make, [*install, "-r", str(requirements)]):
                done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
                assert done.returncode == 0, done.stderr
            stamp.write_text(requirements.read_text())
    return python
