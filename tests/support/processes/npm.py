"""npm packages for tests, as a folder's lock file lists them."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

NODE = Path(__file__).resolve().parent.parent / "node"


def packages(folder: Path = NODE) -> Path:
    """The path of a folder's installed packages; one process installs while the others wait."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("no node and npm on this machine")
    wanted, installed = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    with wanted.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime <= wanted.stat().st_mtime:
            command = [npm, "ci", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    return folder / "node_modules"
