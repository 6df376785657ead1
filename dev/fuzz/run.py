"""Fuzzers of a target: malformed bytes, and requests that end too soon."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dev.fuzz.corpus import corpus
from dev.fuzz.cost import LOOP, Scales
from dev.fuzz.documented import documented
from dev.fuzz.messages import Message
from dev.fuzz.mutate import mutated
from dev.fuzz.operating import operating
from dev.fuzz.target import Hung, Target
from dev.fuzz.tokens import Cast
from dev.fuzz.wire import BOUND, Heard, Wrong, check, converse

AT_ONCE = 64
"""Concurrent connections."""
MOST_AT_ONCE = 100
"""Concurrent connections that only wait; the queue of unaccepted connections has room for 128."""


@dataclass(frozen=True, slots=True)
class Case:
    """Bytes to send on one connection. Of `whole` requests, every answer is awaited, however busy the machine is."""

    name: str
    pieces: Sequence[bytes]
    busy: bool = False
    ops: bool = False
    whole: bool = False


class Wire:
    """Sends cases to a target and inspects the effects. `keep` is the folder for cases that fail."""

    def __init__(self, target: Target, cast: Cast, keep: Path | None = None) -> None:
        self.target, self.cast, self._keep = target, cast, keep
        self.messages = [*corpus(cast), *documented(cast), *operating(cast)]
        self.sent = self.answered = 0
        self.statuses: dict[int, int] = {}
        self._before = target.content()

    def case(self, seed: int, number: int) -> Case:
        """The mutant of this number: the same for a seed, except for its tokens."""
        rng = random.Random(f"{seed}:{number}")
        message = rng.choice(self.messages)
        return _case(message, mutated(message, rng), f"{seed}:{number}")

    def mutants(self, seed: int, numbers: Iterable[int]) -> None:
        """Sends the mutants of these numbers. Raises Wrong, Hung."""
        self.send([self.case(seed, number) for number in numbers])

    def prefixes(self, messages: Sequence[Message], step: int = 1) -> None:
        """Sends each request, cut at every byte. Raises Wrong, Hung."""
        for message in messages:
            raw = message.encoded()
            ends = range(0, len(raw), step)
            self.send([_case(message, [raw[:at]], f"cut at {at}") for at in ends], MOST_AT_ONCE)

    def valid(self) -> None:
        """Sends each request unchanged. Raises Wrong, Hung."""
        self.send([replace(_case(message, [message.encoded()]), whole=True) for message in self.messages])

    def send(self, cases: Sequence[Case], at_once: int = AT_ONCE) -> None:
        """Sends the cases and compares the store. Raises Wrong, Hung."""
        for begin in range(0, len(cases), at_once):
            batch = cases[begin : begin + at_once]
            try:
                self._weigh(batch)
                if self.target.log.heard:
                    raise Wrong(self._who_did(batch))
            except (Wrong, Hung) as error:
                self._write_down(batch, error)
                raise
        try:
            self.compare()
        except Wrong as error:
            self._write_down(cases, error)
            raise

    def _weigh(self, batch: Sequence[Case]) -> None:
        """Sends the cases concurrently. If that holds the event loop too long, sends each again, alone."""
        meter = self.target.meter
        before, meter.longest = meter.total, 0.0
        self.target.run(self._batch(batch))
        if meter.longest <= LOOP and meter.total - before <= len(batch) * LOOP:
            return
        with Scales(self.target) as scales:
            for case in batch:
                try:
                    scales.check(self._port(case), b"".join(case.pieces))
                except Wrong as error:
                    raise Wrong(f"{case.name}: {error}") from None

    def compare(self) -> None:
        """Raises Wrong if the store's content has changed, or if the server no longer serves."""
        now = self.target.content()
        changed = [key for key in {*now, *self._before} if now.get(key) != self._before.get(key)]
        if changed:
            shown = [(key, self._before.get(key), now.get(key)) for key in changed[:3]]
            raise Wrong(f"the store has changed: {shown!r}"[:3000])
        request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        healthy = Case("health", [request], whole=True)
        if [answer.status for answer in self.target.run(self._ask(healthy), 20).answers] != [200]:
            raise Wrong("the server serves no more")

    def _who_did(self, batch: Sequence[Case]) -> str:
        """The log's complaint and the case that caused it: each case is sent once more, alone."""
        heard = self.target.log.heard[:5]
        for case in batch:
            self.target.log.heard.clear()
            with suppress(Wrong):
                self.target.run(self._ask(case))
            if self.target.log.heard:
                return f"{case.name}: the log: {self.target.log.heard[0]}\n{b''.join(case.pieces)[:2000]!r}"
        return "the log: " + "\n".join(heard)

    async def _batch(self, batch: Sequence[Case]) -> None:
        done = await asyncio.gather(*map(self._one, batch), return_exceptions=True)
        for error in done:
            if error is not None:
                raise error
        # A client without an answer hangs up in the end, and that must not hide a request that never finishes.
        try:
            async with asyncio.timeout(BOUND):
                while self.target.at_work():
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise Wrong(f"a request is at work {BOUND:g} s after everybody has gone") from None

    async def _one(self, case: Case) -> None:
        heard = await self._ask(case)
        self.sent += 1
        self.answered += bool(heard.answers)
        for answer in heard.answers:
            self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1

    async def _ask(self, case: Case) -> Heard:
        try:
            heard = await converse(self._port(case), case.pieces, self.target.at_work, whole=case.whole)
            # An answer to HEAD looks cut off.
            check(heard, busy=case.busy, strict=b"HEAD" not in b"".join(case.pieces))
        except (Wrong, ValueError, LookupError, OSError) as error:
            raise Wrong(f"{case.name}: {error!r}\n{b''.join(case.pieces)[:2000]!r}") from None
        return heard

    def _port(self, case: Case) -> int:
        return self.target.ops_port if case.ops else self.target.port

    def _write_down(self, cases: Sequence[Case], error: Exception) -> None:
        if self._keep is None:
            return
        self._keep.mkdir(parents=True, exist_ok=True)
        for number, case in enumerate(cases):
            (self._keep / f"{number:04d}.bin").write_bytes(b"".join(case.pieces))
        text = [str(error), *(f"{number:04d} {case.name}" for number, case in enumerate(cases))]
        (self._keep / "finding.txt").write_text("\n".join(text))


def _case(message: Message, pieces: Sequence[bytes], what: str = "unchanged") -> Case:
    return Case(f"{message.name} {what}", pieces, message.busy, message.ops)
