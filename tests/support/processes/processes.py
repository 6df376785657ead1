"""`server.py` as a separate process, alone or as two on one store."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tornado.httpclient import AsyncHTTPClient
from tornado.ioloop import IOLoop

from dev.lab.engines import wait_until
from dev.lab.watchdog import watch
from store import keys
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.wiring import Store
from tests.support.http import http_servers
from tests.support.http.driver import App, Service
from tests.support.processes.engines import Engine, valkey
from tests.support.processes.forked import Forked
from tests.support.processes.store_owners import end_stores

ROOT = Path(__file__).resolve().parent.parent.parent.parent
QUICK = ("--password-memory", "8192", "--password-iterations", "1")
T = TypeVar("T")


class Server:
    """A `server.py` in its own process group, on a free port, as a context manager.

    It starts at once; `ready` waits until it listens. `directory` holds its files: the data directory `data` (the
    caller may give another) and the output. The end of the block kills every process left in the group. The server is
    forked from a process that has loaded `server.py`; `fresh` starts Python instead.
    """

    process: subprocess.Popen[bytes] | Forked

    def __init__(
        self,
        *options: str,
        port: int = 0,
        data_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="server-", dir="/tmp"))
        watch(self.directory, remove=True)
        self.data_dir = data_dir or self.directory / "data"
        self._out, self._log = self.directory / "out", self.directory / "log"
        given = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
        env = {**given, "LATCHKEY_HTTP": http_servers.CHOSEN, **(environment or {})}
        arguments = ["--port", str(port), "--data-dir", str(self.data_dir), *options]
        with self._out.open("wb") as out, self._log.open("wb") as log, Path(os.devnull).open("rb") as nothing:
            streams: dict[str, Any] = {"stdin": nothing.fileno(), "stdout": out.fileno(), "stderr": log.fileno()}
            if fresh:
                command = [sys.executable, "server.py", *arguments]
                self.process = subprocess.Popen(command, cwd=ROOT, env=env, start_new_session=True, **streams)
            else:
                self.process = Forked("server.py", arguments, env=env, **streams)

    def ready(self, seconds: float = 30.0) -> Self:
        """Waits for the line that says that the server listens."""
        wait_until(lambda: self._address() is not None or self.process.poll() is not None, seconds)
        assert self._address(), f"the server does not listen: {self.out}{self.log}"
        return self

    @property
    def url(self) -> str:
        """The base URL as printed."""
        address = self._address()
        assert address, "not ready"
        return address

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def here(self) -> str:
        """The URL with a numeric address: a hundred connections at once need no resolver."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def out(self) -> str:
        """Its standard output."""
        return self._out.read_text()

    @property
    def log(self) -> str:
        """Its standard error."""
        return self._log.read_text()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal and returns the exit status."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self, seconds: float = 30.0) -> int:
        """The exit status."""
        return self.process.wait(seconds)

    def kill(self) -> None:
        """kill -9 of this process alone."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        end_stores(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _address(self) -> str | None:
        found = re.search(r'^Latchkey listening on (\S+)$|,"url":"([^"]+)"', self.out, re.MULTILINE)
        return found[1] or found[2] if found else None


def refused(*options: str, environment: Mapping[str, str] | None = None, **given: object) -> tuple[int, str]:
    """The exit status and the standard error of a server that must not start."""
    with Server(*options, environment=environment, **given) as server:  # type: ignore[arg-type]  # options by name
        status = server.wait()
        assert server.out == ""
        return status, server.log


def refused_port(port: int, option: str = "--port") -> str:
    """What a server logs if its port is taken. `option` is the flag that sets the port."""
    return f"latchkey: cannot listen on localhost:{port}: Address already in use. Choose another port with {option}\n"


class Pair:
    """Two servers on one Valkey with the same keys; the store is also open in this process."""

    def __init__(self, engine: Engine, ring: str, servers: tuple[Server, Server]) -> None:
        self.engine, self.servers = engine, servers
        self.keys = Keys(KeyRing.parse(ring))
        self._made = 0

    async def service(self, store: Store) -> Service:
        """A service with a new person and a new confidential app: `ada` is the user id, `email` the address."""
        self.forget_addresses()
        self._made += 1
        service = Service(self.servers[0].here, store)
        service.ada = await service.add_person(self.email)
        service.web = await service.add_app(f"web-{self._made}")
        return service

    @property
    def email(self) -> str:
        """The address of the newest person."""
        return f"ada-{self._made}@example.com"

    def forget_addresses(self) -> None:
        """Empties the windows of addresses: all tests share one address."""
        with self.engine.client() as client:
            for key in client.scan_iter(keys.window("*", "*") + "*"):
                client.delete(key)

    def split(self, app: App) -> tuple[App, App]:
        """The app, calling each of the two servers."""
        first, second = (dataclasses.replace(app, base_url=server.here) for server in self.servers)
        return first, second


@contextlib.contextmanager
def pair(*options: str, store: tuple[str, ...] = ()) -> Iterator[Pair]:
    """Two running servers; `store` are options of their Valkey."""
    ring = KeyRing.generate(1)
    with valkey(options=store) as engine:
        options = ("--redis-url", engine.url, "--password-queue", "200", *QUICK, *options)
        with shared(ring, *options) as first, shared(ring, *options) as second:
            yield Pair(engine, ring, (first.ready(), second.ready()))


def shared(ring: str, *options: str) -> Server:
    """A server with these keys, as on a store that several hosts share."""
    return Server(*options, environment={"LATCHKEY_SECRET_KEYS": ring})


@contextlib.asynccontextmanager
async def opened(url: str, ring: Keys) -> AsyncIterator[Store]:
    """The store as a server opens it."""
    store = await Store.open(
        url,
        ring,
        PasswordHasher(8192, 1, queue=200),
        timeout=10,
        connections=64,
        session_idle=14 * 86400,
        session_lifetime=30 * 86400,
    )
    try:
        yield store
    finally:
        await store.close()


@contextlib.contextmanager
def driven(io_loop: IOLoop, two: Pair) -> Iterator[Service]:
    """A service with a new person and a new app, and an HTTP client with up to 200 connections."""

    async def enter() -> Service:
        one: Any = AsyncHTTPClient(max_clients=200)  # the loop's one client
        assert one.max_clients == 200
        return await two.service(await opening.__aenter__())

    opening = opened(two.engine.url, two.keys)
    yield io_loop.run_sync(enter)
    io_loop.run_sync(lambda: opening.__aexit__(None, None, None))


async def at_once(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Runs all at the same time."""
    return await asyncio.gather(*calls)


def processes() -> dict[int, tuple[int, str]]:
    """Every live process: its parent and its command line. Zombies do not count."""
    found = {}
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                state, parent = (one / "stat").read_bytes().rpartition(b") ")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    words = (one / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(one.name)] = int(parent), words.strip()
    return found


def children(pid: int) -> list[int]:
    """The live children of a process."""
    return [child for child, (parent, _) in processes().items() if parent == pid]
