"""The two ways to the stub upstream: directly, and through Latchkey."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from dev.bench.measure import Burst, Client, Served, percentile, request, running, serving
from dev.bench.parts.filling import FilledStore, Pair
from dev.bench.parts.stub_upstream import FRAME, model_name
from store import keys
from store.lifetimes import AI

CREDITS = 10**9  # micro-dollars
MAX_TOKENS = 4_096

_LISTENING = re.compile(r"Stub listening on port (\d+)\n")
_UPSTREAM = """
echo = false
[[upstream]]
name = "stub"
url = "http://127.0.0.1:{port}"
key = "none"
connections = 10000
"""
_MODEL = """
[[upstream.models]]
id = "{name}"
prices = [{{ version = "1", input = 3000000, output = 15000000 }}]
"""


class Reply(NamedTuple):
    """A reply to request from the stub: the number of text events, the milliseconds between them, plain or streamed.
    `asked` is the length of the question in bytes."""

    events: int
    pause: int | str
    stream: bool
    asked: int

    @property
    def model(self) -> str:
        """The stub's model for this reply."""
        return model_name(self.events, self.pause)

    @property
    def all_events(self) -> int:
        """The events of a stream, including those without text."""
        return self.events + FRAME


class Load(NamedTuple):
    """The requests of one burst, and the number of connections."""

    reply: Reply
    connections: int


@dataclass
class Samples:
    """The bursts of one load on one way, with total seconds: processor time of the answering process, and script time
    at the store."""

    bursts: list[Burst] = field(default_factory=list)
    cpu: float = 0.0
    script: float = 0.0

    @property
    def rates(self) -> list[float]:
        """Requests per second of each burst."""
        return [len(burst.latencies) / burst.seconds for burst in self.bursts]

    def percentiles(self, measured: str, percent: float) -> list[float]:
        """A percentile of each burst in milliseconds; `measured` is a field of Burst."""
        return [1000 * percentile(getattr(burst, measured), percent) for burst in self.bursts]

    @property
    def cpu_each(self) -> float:
        """Seconds of processor time per request. The system counts in steps of 0.01 s: a very short run may show none,
        and counts as one step."""
        return max(self.cpu, 0.01) / self._requests

    @property
    def script_each(self) -> float:
        """Seconds per request that scripts held the store."""
        return self.script / self._requests

    @property
    def _requests(self) -> int:
        return sum(len(burst.latencies) for burst in self.bursts)


class Direct:
    """Directly to the stub."""

    name = "the stub"
    path = "/v1/messages"

    def __init__(self, served: Served) -> None:
        self.served = served
        self.samples: dict[Load, Samples] = {}
        self._clients: dict[int, Client] = {}

    async def measure(self, load: Load, seconds: float) -> None:
        """Sends requests for the given seconds; those in progress at the end still count."""
        client = self._clients.get(load.connections)
        if client is None:
            client = self._clients[load.connections] = await Client.connect(self.served.port, load.connections)
        samples = self.samples.setdefault(load, Samples())
        requests = self.requests(load)
        held = self.script_time()
        cpu = self.served.cpu()
        burst = await client.burst(_until(perf_counter() + seconds, requests), self.expected(load.reply))
        samples.cpu += self.served.cpu() - cpu
        samples.script += self.script_time() - held
        samples.bursts.append(burst)

    def requests(self, load: Load) -> Iterator[bytes]:
        """The most requests of one burst."""
        return cycle([self.request(load.reply, "none")])

    def request(self, reply: Reply, token: str) -> bytes:
        """One request."""
        return request("POST", self.path, token, _body(reply))

    def expected(self, reply: Reply) -> bytes:
        """Bytes that a complete answer contains."""
        return b"event: message_stop\n" if reply.stream else b'"output_tokens": %d' % reply.events

    def script_time(self) -> float:
        """Seconds that scripts have held the store so far: none here."""
        return 0.0

    def forget(self) -> None:
        """Drops the samples."""
        self.samples.clear()

    def close(self) -> None:
        """Closes the connections."""
        for client in self._clients.values():
            client.close()


class Through(Direct):
    """To the stub through Latchkey: for many people in turn, since each has a window of 20 calls a minute."""

    name = "Latchkey"
    path = "/api/v1/ai/messages"

    def __init__(self, served: Served, store: FilledStore, pairs: Sequence[Pair]) -> None:
        super().__init__(served)
        self._store = store
        self._pairs = pairs
        self._turn = cycle(pairs)

    def requests(self, load: Load) -> Iterator[bytes]:
        """Requests for all people in turn, as many as their windows allow; the windows are emptied first (SPEC 8.1)."""
        self._store.client.unlink(*(keys.limit(pair.caller.user, AI.name) for pair in self._pairs))
        most = len(self._pairs) * AI.limit
        return (self.request(load.reply, pair.token) for pair in islice(self._turn, most))

    def expected(self, reply: Reply) -> bytes:
        """The charge."""
        return b'"credits":{"charged":'

    def script_time(self) -> float:
        """Seconds, by the store's own count."""
        return self._store.script_time()[1] / 1e6


@lru_cache(maxsize=64)
def _body(reply: Reply) -> bytes:
    message = {"role": "user", "content": "Why? " * (reply.asked // 5)}
    question = {"model": reply.model, "max_tokens": MAX_TOKENS, "messages": [message], "stream": reply.stream}
    return json.dumps(question).encode()


def _until(deadline: float, requests: Iterator[bytes]) -> Iterator[bytes]:
    """The requests until the deadline; always at least one."""
    for one in requests:
        yield one
        if perf_counter() >= deadline:
            return


@contextlib.contextmanager
def stub(directory: Path) -> Iterator[Served]:
    """The stub as a process."""
    with running(["-m", "dev.bench.parts.stub_upstream"], _LISTENING, directory / "stub.log") as served:
        yield served


@contextlib.contextmanager
def latchkey(store: FilledStore, upstream: Served, replies: Sequence[Reply], directory: Path) -> Iterator[Served]:
    """A server with the stub as its upstream, and a model for each reply."""
    directory.mkdir(exist_ok=True)
    config = directory / "ai.toml"
    models = dict.fromkeys(reply.model for reply in replies)
    config.write_text(_UPSTREAM.format(port=upstream.port) + "".join(_MODEL.format(name=name) for name in models))
    with serving(store.url, store.ring, directory, "--ai-config", str(config), "--log-level", "warning") as served:
        yield served
