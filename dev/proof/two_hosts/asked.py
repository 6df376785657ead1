"""The log of requests: what every client asked, when, in which phase, and what came back."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dev.bench.measure import table
from dev.proof.calling import Clients, Response


@dataclass(frozen=True)
class Asked:
    """One request. `at` and `took` are in seconds; `status` is 0 if there was no answer, and `error` says why."""

    phase: str
    at: float
    took: float
    method: str
    path: str
    status: int
    error: str
    retry_after: str

    @property
    def failed(self) -> bool:
        """Whether a client got no answer, or one that says the server could not answer."""
        return self.status == 0 or bool(self.error) or self.status >= 500

    @property
    def put_off(self) -> bool:
        """Whether the answer is a 503 that says when to come back."""
        return self.status == 503 and bool(self.retry_after) and not self.error


class LoggedClients(Clients):
    """Clients that note every request they send."""

    def __init__(self, servers: Sequence[str], dice: random.Random, log: Path) -> None:
        super().__init__(servers, dice)
        self.phase = "before"
        self.asked: list[Asked] = []
        self._log = log.open("w", encoding="utf-8")
        self._began = time.monotonic()

    async def send(self, method: str, path: str, **options: Any) -> Response:
        """As a client does; notes the phase in which the answer came."""
        at = time.monotonic()
        answer = await super().send(method, path, **options)
        took = time.monotonic() - at
        after = answer.headers.get("Retry-After", "")
        route = urlsplit(path).path
        one = Asked(self.phase, at - self._began, took, method, route, answer.status, answer.error, after)
        self.asked.append(one)
        self._log.write(json.dumps(asdict(one)) + "\n")
        return answer

    async def close(self) -> None:
        """Closes connections and log."""
        await super().close()
        self._log.close()


def by_phase(asked: Sequence[Asked]) -> str:
    """How many requests each phase had, and how they ended, as a table."""
    rows = []
    for phase in dict.fromkeys(one.phase for one in asked):
        some = [one for one in asked if one.phase == phase]
        put_off = sum(one.put_off for one in some)
        failed = sum(one.failed for one in some) - put_off
        seconds = max(one.at for one in some) - min(one.at for one in some)
        longest = max(one.took for one in some)
        rows.append([phase, f"{seconds:.0f}", f"{len(some):,}", str(put_off), str(failed), f"{longest:.2f}"])
    header = ["phase", "seconds", "requests", "503 with Retry-After", "failed", "longest, s"]
    return table(header, rows, words=1)


def failures(asked: Sequence[Asked], most: int = 20) -> list[str]:
    """Lines about the requests that failed, the same ones counted together."""
    kinds = Counter(
        f"{one.phase}: {one.method} {one.path} {one.status} {one.error}"
        for one in asked
        if one.failed and not one.put_off
    )
    return [f"{number} x {line}" for line, number in kinds.most_common(most)]
