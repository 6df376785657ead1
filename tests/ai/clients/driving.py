"""Has client libraries of AI APIs, as an app installs them, call the server: two programs, one in Node and one in
Python, take a line of JSON for each call."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.http.upstream import Data
from tests.support.processes.environment import python_with
from tests.support.processes.npm import packages

HERE = Path(__file__).parent
NODE, PYTHON = HERE / "node", HERE / "python"
MESSAGES, CHAT, RESPONSES = "messages", "chat", "responses"


@dataclass(frozen=True)
class Client:
    """A library in one of the programs. `door` is the dialect that it speaks; `official`: its author made it."""

    program: str
    name: str
    door: str
    official: bool = False

    def __str__(self) -> str:
        return f"{self.program}, {self.name}"


CLIENTS = [
    *(
        Client(program, name, door, official=True)
        for program in ("node", "python")
        for name, door in (("anthropic", MESSAGES), ("openai chat", CHAT), ("openai responses", RESPONSES))
    ),
    Client("node", "ai-sdk anthropic", MESSAGES),
    Client("node", "ai-sdk chat", CHAT),
    Client("node", "ai-sdk responses", RESPONSES),
    Client("node", "ai-sdk compatible", CHAT),
    Client("python", "litellm anthropic", MESSAGES),
    Client("python", "litellm chat", CHAT),
    Client("python", "langchain anthropic", MESSAGES),
    Client("python", "langchain chat", CHAT),
    Client("python", "langchain responses", RESPONSES),
]


class Failed(Exception):
    """A call failed: `kind` is the name of the library's exception, `status` the status that it shows."""

    def __init__(self, kind: str, status: int | None, said: str) -> None:
        super().__init__(f"{kind} {status}: {said}")
        self.kind, self.status, self.said = kind, status, said


class Program:
    """One of the two programs, at work."""

    def __init__(self, command: list[str | Path], folder: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout
        self.clients = json.loads(self._process.stdout.readline())
        """Their names, once all libraries are loaded."""

    async def call(self, job: Data) -> Any:
        """The value of a call. Raises Failed."""
        return await asyncio.to_thread(self._call, job)

    def _call(self, job: Data) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise Failed(answer["error"], answer["status"], answer["said"])
        return answer["value"]

    def end(self) -> None:
        """Ends the program."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def programs() -> Iterator[Callable[[str], Program]]:
    """Starts a program when it is first asked for, which may take minutes the first time, and ends all."""
    started: dict[str, Program] = {}

    def program(name: str) -> Program:
        if name not in started:
            if name == "node":
                packages(NODE)
                started[name] = Program([shutil.which("node") or "node", "serve.mjs"], NODE)
            else:
                python = python_with(PYTHON / "requirements.txt", "ai-clients")
                started[name] = Program([python, "serve.py"], PYTHON)
        return started[name]

    try:
        yield program
    finally:
        for one in started.values():
            one.end()
