"""The operator's keys for models' servers: fixed, or read from a file or from a command's output, and read again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

log = logging.getLogger("latchkey.upstream")

MAX_BYTES = 16_384
"""The longest key, and the longest output of a command."""
RUN_SECONDS = 10.0
"""Seconds that a command may take."""
END_SECONDS = 1.0
"""Seconds for the rest of the output of a command that was ended."""
LEAST_AGE = 5.0
"""Seconds between two readings: a server that refuses every key must not start a process for each call."""
_PRIVATE = "LATCHKEY_"


class KeyUnreadable(Exception):
    """There is no key. The message says why and contains no part of a key."""


class ServerKey(Protocol):
    """The key of one server."""

    async def get(self) -> str:
        """The key for a call; empty if the server wants none. Raises KeyUnreadable."""

    async def renew(self, refused: str) -> str | None:
        """Another key, after the server has refused this one; None if there is no other."""

    async def close(self) -> None:
        """Ends what it has begun."""


class FixedKey:
    """A key from the file of models or the environment."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def get(self) -> str:
        """The key."""
        return self._key

    async def renew(self, refused: str) -> str | None:
        """There is no other."""
        return None

    async def close(self) -> None:
        """Does nothing."""


class ReadKey:
    """A key that `read` returns. It is read on first use, after `lifetime` seconds, and after a refusal; calls that
    come meanwhile wait for the same reading. `clock` counts seconds."""

    def __init__(
        self, read: Callable[[], Awaitable[str]], lifetime: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._lifetime = lifetime
        self._clock = clock
        self._key = ""
        self._read_at = self._tried_at = float("-inf")
        self._error = KeyUnreadable("was not read")
        self._reading: asyncio.Task[None] | None = None

    async def get(self) -> str:
        """The key. If it can't be read again, the old one stays in use. Raises KeyUnreadable."""
        if self._clock() >= self._read_at + self._lifetime:
            await self._again()
        if not self._key:
            raise self._error
        return self._key

    async def renew(self, refused: str) -> str | None:
        """Reads again, unless a newer key is there. None if the key is still the same."""
        if self._key == refused:
            await self._again()
        return None if self._key == refused else self._key

    async def _again(self) -> None:
        """Waits for the reading in progress, or for a new one. It outlives a call that gives up."""
        if self._reading is None:
            if self._clock() < self._tried_at + LEAST_AGE:
                return
            self._tried_at = self._clock()
            self._reading = asyncio.ensure_future(self._read_once())
        await asyncio.shield(self._reading)

    async def _read_once(self) -> None:
        try:
            key = await self._read()
            if not key.isascii() or not key.isprintable() or not key:
                raise KeyUnreadable("is not a line of printable ASCII")
            self._key, self._read_at = key, self._clock()
        except KeyUnreadable as error:
            self._error = error
            log.warning("the key of a model's server was not read: %s", error)
        finally:
            self._reading = None

    async def close(self) -> None:
        """Ends a reading in progress."""
        if reading := self._reading:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def key_in(path: Path) -> str:
    """The key in a file, without space around it. Raises KeyUnreadable."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise KeyUnreadable(f"{path} cannot be read: {error.strerror}") from None
    return _text(content, str(path))


def file_reader(path: Path) -> Callable[[], Awaitable[str]]:
    """Reads a file in a thread."""
    return lambda: asyncio.to_thread(key_in, path)


def command_reader(words: Sequence[str], seconds: float = RUN_SECONDS) -> Callable[[], Awaitable[str]]:
    """Runs a command, without a shell, and returns its output."""
    return lambda: _output_of(words, seconds)


async def _output_of(words: Sequence[str], seconds: float) -> str:
    """Raises KeyUnreadable if the command fails, takes too long or prints too much."""
    name = words[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # may contain secrets
            env=_environment(os.environ),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise KeyUnreadable(f"{name} cannot be run: {type(error).__name__}") from None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(seconds):
            output = b""
            while len(output) <= MAX_BYTES and (piece := await process.stdout.read(MAX_BYTES)):
                output += piece
            status = await process.wait() if len(output) <= MAX_BYTES else 0
    except TimeoutError:
        raise KeyUnreadable(f"{name} took more than {seconds:g} s") from None
    finally:
        await _end(process)
    if status:
        raise KeyUnreadable(f"{name} ended with status {status}")
    return _text(output, f"the output of {name}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends the command and what it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    # Its pipe closes once it was read to the end.
    output = process.stdout
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            while output is not None and await output.read(MAX_BYTES):
                pass


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without our own settings: the command needs no keys of ours."""
    return {name: value for name, value in environ.items() if not name.startswith(_PRIVATE)}


def _text(content: bytes, where: str) -> str:
    if len(content) > MAX_BYTES:
        raise KeyUnreadable(f"{where} is longer than {MAX_BYTES} bytes")
    try:
        return content.decode("ascii").strip()
    except ValueError:
        raise KeyUnreadable(f"{where} is not ASCII") from None
