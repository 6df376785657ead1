"""Twenty hostile bodies of 32 MiB at once, at a real server process: others are answered in time, memory is bounded."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tornado.ioloop import IOLoop

from dev.lab.engines import wait_until
from outbound.ai.echo import ECHO
from store.crypto.seal import new_id
from tests.ai.long.kit import bodies_of
from tests.support.http.driver import Service
from tests.support.http.http_servers import CHOSEN
from tests.support.processes.processes import QUICK, Pair, Server, children, driven, pair, shared
from tests.support.store.ai_spender import SDK, Spender

pytestmark = [pytest.mark.slow, pytest.mark.gen_test(timeout=240)]

SIZE = 32 * 2**20
HOSTILE_BODIES = 20
MOST_WAIT = 0.05
"""Seconds for `/healthz`, without the time that other processes took."""
ATTEMPTS = 2
"""Other work on the machine makes waits longer, never shorter."""


def padded(start: bytes, middle: bytes, end: bytes) -> bytes:
    """A body of SIZE bytes, with the middle as often as it fits."""
    return (start + middle * ((SIZE - len(start) - len(end)) // len(middle)) + end).ljust(SIZE)


CALL = b'{"model":"%b","max_tokens":5,"messages":[{"role":"user","content":"a"}],"x":' % ECHO.encode()
KINDS = (
    b"[" * SIZE,
    padded(CALL + b'"', b"\\u0001", b'"}'),
    padded(CALL + b'"\xf0\x9f\x98\x80', b"a", b'"}'),
    padded(CALL + b"[", b"1" * 4000 + b",", b"1]}"),
    padded(CALL + b"[", b'{"%b":"%b"},' % (b"a" * 150, b"b" * 180), b"1]}"),
    padded(CALL + b'"', b'\\"', b'"}'),
    padded(CALL + b"[", b"0," * 90_000 + b'"%b",' % (b"c" * 2**24), b"1]}"),
)


@pytest.fixture(scope="module")
def two() -> Iterator[Pair]:
    """Only their store is used."""
    with pair() as made:
        yield made


@pytest.fixture
def service(io_loop: IOLoop, two: Pair) -> Iterator[Service]:
    with driven(io_loop, two) as made:
        yield made


def started(two: Pair, *options: str) -> Server:
    """A server on the same store that takes bodies of 32 MiB."""
    options = ("--redis-url", two.engine.url, *QUICK, "--ai-request-size", str(SIZE), "--log-level", "info", *options)
    return shared(two.keys.ring.render(), *options)


def call(server: Server, token: str, body: bytes, pause: float = 0.0) -> int:
    """Sends one body; returns the status of the answer, 0 if the connection was cut."""
    head = f"POST {SDK} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(120)
        try:
            client.sendall(head.encode() + b"Content-Type: application/json\r\nConnection: close\r\n\r\n")
            client.sendall(body)
        except OSError:
            pass  # answered before it was read
        try:
            answer = client.recv(2**16)
        except OSError:
            return 0
    return int(answer.split(b" ", 2)[1]) if answer else 0


ASKING = """
import json, socket, sys, threading, time
from pathlib import Path
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set())).start()
waits = []
runs = [Path(f"/proc/{process}/schedstat") for process in (sys.argv[2], "thread-self")]
def kept_waiting():
    try:
        return sum(int(one.read_text().split()[1]) for one in runs) / 1e9
    except OSError:
        return 0.0
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as client:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while not over.is_set():
        machine, began = kept_waiting(), time.perf_counter()
        client.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        assert b" 200 " in client.recv(2**16)
        waits.append((time.perf_counter() - began, kept_waiting() - machine))
        time.sleep(0.002)
print(json.dumps(waits))
"""
"""Prints the seconds of each request, and how long the server's loop or this process was ready but had no processor."""


class Watch:
    """A process that asks for `/healthz` all the time, and a look at the memory of the server and its helper."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.waits: list[float] = []
        """Seconds for each request."""
        self.net: list[float] = []
        """The same without what other processes took of the processor."""
        self.peak = self.files = self.helper = 0
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        command = [sys.executable, "-c", ASKING, str(self._server.port), str(self._server.process.pid)]
        self._asking = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._looking.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._looking.join()
        asked = json.loads(self._asking.communicate()[0])
        self.waits, self.net = [wait for wait, _ in asked], [wait - machine for wait, machine in asked]

    def _look(self) -> None:
        pid = self._server.process.pid
        while not self._over.is_set():
            self.peak = max(self.peak, resident(pid))
            self.files = max(self.files, bodies_of(pid))
            self.helper = max([self.helper, *map(resident, children(pid))])
            self._over.wait(0.1)


def resident(pid: int) -> int:
    """The memory of a process in bytes, without files in memory."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return sum(int(size) * 1024 for size in re.findall(r"Rss(?:Anon|File):\s+(\d+)", text))


async def attack(
    service: Service, io_loop: IOLoop, server: Server, body: Callable[[int], bytes]
) -> tuple[list[int], Watch]:
    """Twenty bodies at once, each of another person. Returns their statuses."""
    tokens = []
    for _ in range(HOSTILE_BODIES):
        service.ada = await service.add_person(f"{new_id()}@example.com")
        tokens.append((await Spender.make(service)).token)

    def run() -> tuple[list[int], Watch]:
        with Watch(server) as watch, ThreadPoolExecutor(HOSTILE_BODIES) as threads:
            time.sleep(0.3)
            found = list(threads.map(lambda number: call(server, tokens[number], body(number)), range(HOSTILE_BODIES)))
        return found, watch

    return await io_loop.run_in_executor(None, run)


async def test_others_are_answered_while_hostile_bodies_arrive(
    service: Service, io_loop: IOLoop, two: Pair, record_property: Callable[[str, object], None]
) -> None:
    memory = SIZE * HOSTILE_BODIES
    with started(two, "--ai-body-memory", str(memory)).ready() as server:
        before = resident(server.process.pid)
        for attempt in range(ATTEMPTS):
            statuses, watch = await attack(service, io_loop, server, lambda number: KINDS[number % len(KINDS)])
            figures = {
                "http": CHOSEN,
                "worst wait, ms": round(max(watch.waits) * 1000, 1),
                "worst without others' work, ms": round(max(watch.net) * 1000, 1),
                "99th percentile, ms": round(sorted(watch.waits)[len(watch.waits) * 99 // 100] * 1000, 1),
                "server grew, MiB": (watch.peak - before) // 2**20,
                "bodies, MiB": watch.files // 2**20,
                "helper, MiB": watch.helper // 2**20,
                "statuses": {status: statuses.count(status) for status in sorted(set(statuses))},
            }
            print(json.dumps(figures))  # shown with -s
            record_property(f"attempt {attempt + 1}", figures)
            assert watch.files <= memory
            assert watch.peak - before < SIZE
            assert set(statuses) <= {400, 503}, "503 for those that waited too long for the helper"
            assert statuses.count(400) >= HOSTILE_BODIES // 4
            wait_until(lambda: bodies_of(server.process.pid) == 0)
            if max(watch.net) <= MOST_WAIT:
                break
        assert max(watch.net) <= MOST_WAIT
        helpers = children(server.process.pid)
        server.kill()
        for _ in range(100):
            if not any(Path(f"/proc/{helper}").exists() for helper in helpers):
                return
            time.sleep(0.05)
        raise AssertionError("the helper outlives its server")
