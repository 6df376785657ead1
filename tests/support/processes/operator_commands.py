"""Operators' commands in tests: as separate processes, or faster in this process."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import redis

import manage
from store.crypto.keyring import KeyFile, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect, unix_url
from store.wiring import Store
from tests.support.processes.forked import Forked
from tests.support.processes.store_owners import ROOT

URI = "https://web.example/cb"
PASSWORD = "correct horse battery"
NEW_APP = ("--name", "Web", "--redirect-uri", URI)
T = TypeVar("T")

# To make the parser takes 50 ms, and a command only reads it.
manage.build_parser = functools.cache(manage.build_parser)


@dataclass
class CommandOutput:
    """The result of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object it printed."""
        assert self.status == 0, self.err
        assert self.err == ""
        return json.loads(self.out)

    @property
    def error(self) -> tuple[int, str, str]:
        """Exit status, code and description of a command that failed with --json."""
        assert self.out == ""
        error = json.loads(self.err)
        return self.status, error.pop("error"), error.pop("error_description")


def child(data_dir: Path, *words: str, stdin: str | int = "", fresh: bool = False, **environ: str) -> CommandOutput:
    """A command as the operator runs it: a separate process, forked from one that has loaded `manage.py`; `fresh`
    starts Python instead."""
    arguments = ["--data-dir", str(data_dir), *words]
    env = {**clean_environment(), **environ}
    with tempfile.TemporaryFile() as typed, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if isinstance(stdin, str):
            typed.write(stdin.encode())
            typed.seek(0)
        streams: dict[str, Any] = {
            "stdin": typed.fileno() if isinstance(stdin, str) else stdin,
            "stdout": out.fileno(),
            "stderr": err.fileno(),
        }
        process: subprocess.Popen[bytes] | Forked
        if fresh:
            process = subprocess.Popen([sys.executable, str(ROOT / "manage.py"), *arguments], env=env, **streams)
        else:
            process = Forked("manage.py", arguments, env=env, **streams)
        try:
            status = process.wait(60)
        finally:
            process.kill()
        said = []
        for written in (out, err):
            written.seek(0)
            said.append(written.read().decode())
    assert "Traceback" not in said[1]
    return CommandOutput(status, *said)


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}


class Home:
    """A data directory that looks to a command as if a server runs on it, and quick commands in this process."""

    def __init__(self, data_dir: Path, socket_path: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.data_dir = data_dir
        self.capsys = capsys
        self.url = unix_url(socket_path)
        with self.client() as client:
            client.flushall()
        shutil.rmtree(data_dir / "mail", ignore_errors=True)  # of earlier tests

    def words(self, *words: str, **environ: str) -> CommandOutput:
        status = manage.main(["--data-dir", str(self.data_dir), *words], environ)
        return CommandOutput(status, *self.capsys.readouterr())

    def json(self, *words: str, **environ: str) -> Any:
        return self.words(*words, "--json", **environ).json

    def error(self, *words: str, **environ: str) -> tuple[int, str, str]:
        return self.words("--json", *words, **environ).error

    def app(self, client_id: str, *options: str) -> Any:
        return self.json("app", "create", "--client-id", client_id, *NEW_APP, "--scopes", "profile data:read", *options)

    def user(self, email: str) -> Any:
        return self.json("user", "create", "--email", email, "--name", "Ada", LATCHKEY_PASSWORD_MEMORY="8192")

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, protocol=2)

    def with_store(self, use: Callable[[Store], Awaitable[T]]) -> T:
        async def run() -> T:
            ring = Keys(KeyFile(self.data_dir / "keys"))
            hasher = PasswordHasher(8192, 1, workers=1, queue=5)
            store = Store(await connect(self.url), ring, hasher, session_idle=60, session_lifetime=60)
            try:
                return await use(store)
            finally:
                await store.close()

        return asyncio.run(run())


def everything(client: Any) -> bytes:
    """All keys and values of the store."""
    readers: dict[bytes, Callable[[bytes], Iterable[bytes]]] = {
        b"string": lambda key: [client.get(key)],
        b"hash": lambda key: [part for pair in client.hgetall(key).items() for part in pair],
        b"set": lambda key: client.smembers(key),
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"list": lambda key: client.lrange(key, 0, -1),
        b"stream": lambda key: [part for _, entry in client.xrange(key) for pair in entry.items() for part in pair],
    }
    found: list[bytes] = []
    for key in client.scan_iter():
        found += [key, *readers[client.type(key)](key)]
    return b"\n".join(found)


@dataclass
class Seen:
    """What a person saw of a command in a terminal."""

    status: int
    raw: str

    @property
    def text(self) -> str:
        """The text without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.raw)

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def at_terminal(*command: str | Path, columns: int = 80, typed: Sequence[tuple[str, str]] = (), **environ: str) -> Seen:
    """A command in a terminal with `columns` columns: the path of `manage.py` with arguments, which is forked, or
    arguments for Python. `typed` has the input to type after some output was shown; ^C interrupts."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    plain = {name: value for name, value in clean_environment().items() if name not in ("NO_COLOR", "COLUMNS")}
    env = {**plain, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environ}
    streams: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process: subprocess.Popen[bytes] | Forked
    if Path(command[0]) == ROOT / "manage.py":
        process = Forked("manage.py", [str(word) for word in command[1:]], env=env, **streams)
    else:
        process = subprocess.Popen([sys.executable, *command], env=env, start_new_session=True, **streams)
    os.close(theirs)
    raw, waiting = b"", list(typed)
    try:
        while select.select([ours], [], [], 60)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # on Linux: the other end is closed
                break
            if not piece:
                break
            raw += piece
            while waiting and waiting[0][0].encode() in raw:
                answer = waiting.pop(0)[1]
                if answer == "^C":
                    process.send_signal(signal.SIGINT)
                else:
                    os.write(ours, answer.encode())
        return Seen(process.wait(10), raw.decode().replace("\r\n", "\n"))
    finally:
        process.kill()
        process.wait()
        os.close(ours)
