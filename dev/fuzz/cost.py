"""The cost of a request: processor time of the event loop, of other threads and of the store, and the delay for other
clients.

Processor time, unlike elapsed time, hardly depends on the load of the machine. A request over a bound is sent again; it
is a finding if it is over the bound each time.
"""

from __future__ import annotations

import asyncio
import http.client
import re
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from dev.fuzz.messages import Message
from dev.fuzz.target import Target
from dev.fuzz.wire import BOUND, Heard, Wrong, check, converse

LOOP = 0.05
"""Seconds of processor time of the event loop for a request of up to `SIZE` bytes; the same for the store."""
MORE = 0.01
"""Seconds more for each further `SIZE` bytes: a larger request must not delay everybody for longer."""
THREADS = 0.25
"""`LOOP` for threads, and as much again for each further `SIZE` bytes: password hashes, pictures, passkey answers, long
bodies. Each pool has few threads and its own bounded queue, so these seconds delay only the users of the same pool."""
SIZE = 2**16
TRIES = 3
PAUSE = 0.005
"""Seconds between two requests to /healthz."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of processor time of the event loop, other threads and the store; the longest wait for /healthz in
    elapsed time."""

    loop: float
    threads: float = 0.0
    store: float = 0.0
    wait: float = 0.0

    def over(self, size: int) -> str:
        """The costs over their bound for a request of this size in bytes; "" if there are none."""
        further = size // SIZE
        held = LOOP + further * MORE
        parts = (
            ("loop", self.loop, held),
            ("threads", self.threads, (1 + further) * THREADS),
            ("store", self.store, held),
        )
        return ", ".join(f"{name} {1000 * spent:.0f} ms" for name, spent, bound in parts if spent > bound)


class Watch:
    """Requests /healthz continuously on a separate connection. `longest` is the longest wait in seconds since it was
    last set to 0; `spent` is the processor time of the requests. Use as a context manager."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="watch", daemon=True)
        self.longest = self.spent = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        self._thread.join(BOUND)

    def _ask(self) -> None:
        side = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._stop.wait(PAUSE):
            begun = time.monotonic()
            with suppress(OSError, http.client.HTTPException):
                side.request("GET", "/healthz")
                side.getresponse().read()
            self.longest = max(self.longest, time.monotonic() - begun)
            self.spent = time.thread_time()
        side.close()


class Scales:
    """Sends requests one at a time and measures what each costs. Use as a context manager."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._watch = Watch(target.port)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._watch.__enter__()
        self._runner.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._runner.__exit__(*raised)
        self._watch.__exit__(*raised)

    def weigh(self, port: int, raw: bytes) -> tuple[Heard, Cost]:
        """The answer and its cost. Raises Wrong if the connection stays open."""
        target, watch = self._target, self._watch
        watch.longest = 0.0
        re.purge()  # otherwise a sender's regular expression is compiled only once
        before = self._read()
        heard = self._runner.run(converse(port, [raw], target.at_work))
        ends = time.monotonic() + BOUND
        while target.at_work() and time.monotonic() < ends:
            time.sleep(PAUSE)
        loop, whole, own, store = (now - then for now, then in zip(self._read(), before, strict=True))
        return heard, Cost(loop, max(0.0, whole - own - loop), store, watch.longest)

    def check(self, port: int, raw: bytes) -> tuple[Heard, Cost]:
        """As `weigh`; raises Wrong where the request is over a bound each time it is sent."""
        heard, cost = self.weigh(port, raw)
        for _ in range(TRIES - 1):
            if not cost.over(len(raw)):
                break
            heard, again = self.weigh(port, raw)
            cost = Cost(*(min(one, other) for one, other in zip(_times(cost), _times(again), strict=True)))
        if over := cost.over(len(raw)):
            raise Wrong(f"{len(raw)} bytes cost {over} of processor\n{raw[:500]!r}")
        return heard, cost

    def _read(self) -> tuple[float, float, float, float]:
        """Seconds so far: of the loop, the whole process, the fuzzer itself, and the store."""
        used = self._target.client.info("cpu")
        store = used["used_cpu_user"] + used["used_cpu_sys"]
        own = time.thread_time() + self._watch.spent
        return self._target.meter.total, time.process_time(), own, store


def _times(cost: Cost) -> tuple[float, float, float, float]:
    return cost.loop, cost.threads, cost.store, cost.wait


def weigh_all(target: Target, messages: Iterable[Message]) -> Cost:
    """Sends each request alone and returns the highest costs. Raises Wrong with all findings: costs over a bound,
    answers that no request may get, and complaints in the log."""
    most, found = Cost(0.0), []
    with Scales(target) as scales:
        for one in messages:
            try:
                heard, cost = scales.check(target.port, one.encoded())
                most = Cost(*(max(pair) for pair in zip(_times(most), _times(cost), strict=True)))
                check(heard, busy=one.busy)
                if target.log.heard:
                    raise Wrong(f"the log: {target.log.heard[0]}")
            except (Wrong, ValueError, LookupError, OSError) as error:
                found.append(f"{one.name}: {error!r}")
                target.log.heard.clear()
    if found:
        raise Wrong("\n".join(found))
    return most
