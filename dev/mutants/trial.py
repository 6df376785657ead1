"""Plants mistakes in a copy of the tree and runs the tests that must catch them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dev.mutants.catalogue import Mutant, Unfit

SECONDS = 120.0
"""Time limit for the tests of one mistake. They take a few seconds."""
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "node_modules")
# Not part of the tree, though present in a working copy. The store in `data` has sockets.
_AT_THE_TOP = {"build", "data", ".env", "latchkey.toml"}
# pytest's exit statuses: all passed, some failed. Any other means that tests did not run.
_PASSED, _FAILED = 0, 1


class Trial:
    """A copy of the tree to plant mistakes in."""

    def __init__(self, copy: Path) -> None:
        self._copy = copy

    @classmethod
    @contextmanager
    def of(cls, root: Path) -> Iterator[Trial]:
        """Copies the tree at `root` and removes the copy at the end. The tree itself never changes."""
        with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
            copy = Path(folder) / "tree"

            def left_out(directory: str, names: list[str]) -> set[str]:
                return _LEFT_OUT(directory, names) | (_AT_THE_TOP if Path(directory) == root else set())

            shutil.copytree(root, copy, symlinks=True, ignore=left_out)
            yield cls(copy)

    def check(self, mutants: Sequence[Mutant]) -> None:
        """Runs the tests without a mistake: a test that fails anyway proves nothing. Raises Unfit."""
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        status, said = self._run(tests, SECONDS + 5 * len(tests))
        if status != _PASSED:
            raise Unfit(f"the tests fail without any mistake:\n{said}")

    def missed(self, mutant: Mutant) -> str:
        """Why the mistake counts as missed; empty if each of its tests failed."""
        file = self._copy / mutant.file
        sound = file.read_text("utf-8")
        try:
            _write(file, mutant.apply(sound))
            status, said = self._run(mutant.tests, SECONDS, *(["-x"] if len(mutant.tests) == 1 else []))
        finally:
            _write(file, sound)
        if status not in (_PASSED, _FAILED):
            return f"the tests did not run to their end:\n{said[-2000:]}"
        failed = [line.removeprefix("FAILED ") for line in said.splitlines() if line.startswith("FAILED ")]
        passed = [test for test in mutant.tests if not any(_is_of(one, test) for one in failed)]
        return f"not noticed by {', '.join(passed)}" if passed else ""

    def _run(self, tests: Sequence[str], seconds: float, *options: str) -> tuple[int, str]:
        """pytest's exit status (-1 after a timeout) and output."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--tb=short",
            "-rf",
            "-p",
            "no:cacheprovider",
            *options,
            *tests,
        ]
        process = subprocess.Popen(
            command,
            cwd=self._copy,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env={**os.environ, "COLUMNS": "500"},
        )
        try:
            said, _ = process.communicate(timeout=seconds)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            return -1, f"the time was up after {seconds:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _is_of(failed: str, test: str) -> bool:
    """Whether pytest's line on a failed test is about this test."""
    return failed == test or failed.startswith((f"{test}[", f"{test} - "))


def _write(file: Path, text: str) -> None:
    """Also removes compiled files: Python does not see a change within a second that keeps the size."""
    file.write_text(text, "utf-8")
    if file.suffix == ".py":
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
