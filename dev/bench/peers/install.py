"""Installs the peers next to their setups: a virtual environment for Python, node_modules for JavaScript."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from dev.bench.measure import progress

HERE = Path(__file__).resolve().parent
STAMP = "installed"


class NotInstalled(Exception):
    """This machine cannot install a peer; the message says why."""


def python(folder: str) -> Path:
    """The `bin` directory of a folder's environment, created if needed. Raises NotInstalled."""
    wanted = HERE / folder / "requirements.txt"
    environment = HERE / f".venv-{folder}"
    programs = environment / "bin"
    if not _stamped(environment, wanted):
        progress(f"installing {folder}")
        _run([sys.executable, "-m", "venv", str(environment)], HERE)
        _run([str(programs / "python"), "-m", "pip", "install", "--quiet", "-r", str(wanted)], HERE)
        _stamp(environment, wanted)
    return programs


def node() -> Path:
    """The folder of the JavaScript setups, with their packages. Raises NotInstalled."""
    folder = HERE / "node"
    wanted = folder / "package.json"
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotInstalled(f"there is no {program} here")
    if not _stamped(folder / "node_modules", wanted):
        progress("installing the packages of node")
        _run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"], folder)
        _stamp(folder / "node_modules", wanted)
    return folder


def _stamped(environment: Path, wanted: Path) -> bool:
    stamp = environment / STAMP
    return stamp.exists() and stamp.read_text() == wanted.read_text()


def _stamp(environment: Path, wanted: Path) -> None:
    (environment / STAMP).write_text(wanted.read_text())


def _run(command: list[str], folder: Path) -> None:
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NotInstalled(f"{command[0]}: {error.strerror}") from None
    if ran.returncode:
        said = (ran.stderr.strip() or ran.stdout.strip() or "no reason given").splitlines()
        raise NotInstalled(said[-1][:200])
