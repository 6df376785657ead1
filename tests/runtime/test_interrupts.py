"""Signals that end a command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes.operator_commands import clean_environment
from tests.support.processes.processes import ROOT


def ended(program: str) -> subprocess.CompletedProcess[str]:
    """How a Python program ended, and what it printed."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


INTERRUPTED = """
import asyncio, os, signal, manage

async def one(number):
    await asyncio.sleep(0)
    if number == 0:
        os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(60)

async def all_of_them():
    try:
        await asyncio.gather(*(asyncio.gather(one(number), one(number)) for number in range(4)))
    finally:
        print("closed", flush=True)

{first}
signal.signal(signal.SIGTERM, manage._end)
try:
    asyncio.run(all_of_them())
except KeyboardInterrupt:
    raise SystemExit(130)
"""


@pytest.mark.parametrize("first", ["", "signal.signal(signal.SIGINT, signal.SIG_IGN)"], ids=["shell", "nohup"])
def test_sigterm_between_concurrent_reads_lets_a_command_close_its_store(first: str) -> None:
    done = ended(INTERRUPTED.format(first=first))
    assert done.returncode == 130
    assert done.stdout == "closed\n"
    if not first:
        assert done.stderr == ""


SWALLOWED = """
import asyncio, os, signal, manage

manage.PATIENCE = {patience}

async def connect():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        os.kill(os.getpid(), signal.SIGTERM)
    print("goes on", flush=True)

signal.signal(signal.SIGTERM, manage._end)
try:
    asyncio.run(connect())
except KeyboardInterrupt:
    raise SystemExit(130)
"""


@pytest.mark.parametrize(("patience", "status", "out"), [(0, 130, ""), (600, 0, "goes on\n")], ids=["late", "soon"])
def test_a_later_sigterm_ends_a_command_that_did_not_hear_the_first(patience: int, status: int, out: str) -> None:
    done = ended(SWALLOWED.format(patience=patience))
    assert (done.returncode, done.stdout) == (status, out), done.stderr
