"""What tests need of npm: the packages of `tests/node`, as its lock file has them."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

NODE = Path(__file__).parent / "node"


def packages() -> Path:
    """The folder they are installed in; one process installs while the others wait."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("no node and npm on this machine")
    wanted, installed = NODE / "package-lock.json", NODE / "node_modules" / ".package-lock.json"
    with wanted.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime <= wanted.stat().st_mtime:
            command = [npm, "ci", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=NODE, check=True, capture_output=True, timeout=300)
    return NODE / "node_modules"
