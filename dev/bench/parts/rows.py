"""Rows of a table: one endpoint of one server, its requests, and what its answers must contain."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import NamedTuple, Protocol

from dev.bench.measure import HOST, Unexpected
from dev.bench.parts.wrk import Burst, write_parts
from dev.lab.processes import Process

FORM = "application/x-www-form-urlencoded"


class Plan(NamedTuple):
    """The input of `load.lua`: its kind, its file, and how many items to skip."""

    kind: str
    file: Path
    first: int


class Source(Protocol):
    """The source of a row's requests."""

    def sample(self) -> bytes:
        """One request, to inspect the answer."""

    def plan(self, most: int) -> Plan:
        """Requests for a burst of at most `most`."""

    def sent(self, burst: Burst) -> None:
        """Notes what a burst has used."""


class Replayed:
    """The same requests repeatedly; each burst continues where the last one ended."""

    def __init__(self, file: Path, requests: Sequence[bytes]) -> None:
        self._file = file
        self._requests = requests
        self._first = 0
        write_parts(file, requests)

    def sample(self) -> bytes:
        """The next request."""
        self._first = (self._first + 1) % len(self._requests)
        return self._requests[self._first - 1]

    def plan(self, most: int) -> Plan:
        """The requests in turn."""
        return Plan("round", self._file, self._first)

    def sent(self, burst: Burst) -> None:
        """Notes the position."""
        self._first = burst.at % len(self._requests)


class Once:
    """Single-use requests, made by `make` before each burst."""

    def __init__(self, file: Path, make: Callable[[int], Sequence[bytes]]) -> None:
        self._file = file
        self._make = make

    def sample(self) -> bytes:
        """A new request."""
        return self._make(1)[0]

    def plan(self, most: int) -> Plan:
        """New requests."""
        write_parts(self._file, self._make(most))
        return Plan("once", self._file, 0)

    def sent(self, burst: Burst) -> None:
        """Does nothing: no request is reused."""


class Chained:
    """Refreshes: `make` returns the initial tokens of a burst, and each rotation returns the next. `request` has a slot
    for the token, whose length must not change, or the Content-Length would be wrong."""

    def __init__(
        self, file: Path, make: Callable[[int], Sequence[str]], request: Callable[[str], bytes], tokens: int = 1000
    ) -> None:
        self._file = file
        self._make = make
        self._request = request
        self._tokens = tokens

    def sample(self) -> bytes:
        """A request with a token that is not presented again."""
        return self._request(self._make(1)[0])

    def plan(self, most: int) -> Plan:
        """Requests with tokens that were not presented before."""
        tokens = self._make(self._tokens)
        length = len(tokens[0])
        if any(len(token) != length for token in tokens):
            raise Unexpected("the tokens are not of one length")
        before, after = self._request("\1" * length).split(b"\1" * length)
        write_parts(self._file, (before, after or b"-", *(token.encode() for token in tokens)))
        return Plan("chain", self._file, 0)

    def sent(self, burst: Burst) -> None:
        """Does nothing: no request is reused."""


class Pushed:
    """Pairs of requests: `push` sends an authorization request, and the next request arrives with the `request_uri` of
    its answer. `arrivals` have a slot for it, the text that `MARK` stands for; the text before the slot is the same in
    all of them. Each burst continues where the last one ended."""

    MARK = b"\1"

    def __init__(self, file: Path, push: bytes, arrivals: Sequence[bytes]) -> None:
        self._file = file
        self._push = push
        split = [arrival.partition(self.MARK) for arrival in arrivals]
        self._before, self._after = split[0][0], [after for _, _, after in split]
        self._first = 0
        if any(before != self._before for before, _, _ in split):
            raise Unexpected("the arrivals do not begin alike")
        write_parts(file, (push, self._before, *self._after))

    def sample(self) -> bytes:
        """The first request of a pair."""
        return self._push

    def arrival(self, answer: bytes) -> bytes:
        """The second request of a pair, after the answer to the first."""
        self._first = (self._first + 1) % len(self._after)
        request_uri: str = json.loads(answer)["request_uri"]
        return self._before + request_uri.encode() + self._after[self._first - 1]

    def plan(self, most: int) -> Plan:
        """Pushes, and an arrival after each."""
        return Plan("push", self._file, self._first)

    def sent(self, burst: Burst) -> None:
        """Notes the position."""
        self._first = burst.at % len(self._after)


class Answer(NamedTuple):
    """An answer: its status, its body, the address that it redirects to, and its bytes with the header."""

    status: int
    body: bytes
    location: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Row:
    """`endpoint` of `system`. Every answer contains `expected`; of a pair of requests (`Pushed`), the second one's
    address does. `store` is the process of its store, if any."""

    system: str
    endpoint: str
    process: Process
    source: Source
    expected: bytes
    store: Process | None = None

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.system}, {self.endpoint}"

    def look(self, request: bytes | None = None) -> int:
        """Sends one request, or one pair. Returns the bytes of an answer, on average. Raises Unexpected for a wrong
        answer."""
        first = self._ask(request or self.source.sample())
        if not isinstance(self.source, Pushed):
            self._check(first, (200, 201), self.expected, first.body)
            return first.size
        self._check(first, (201,), b"request_uri", first.body)
        second = self._ask(self.source.arrival(first.body))
        self._check(second, (302, 303), self.expected, second.location)
        return (first.size + second.size) // 2

    def _ask(self, request: bytes) -> Answer:
        with socket.create_connection((HOST, self.process.port), timeout=60) as connection:
            connection.sendall(request)
            answer = HTTPResponse(connection)
            answer.begin()
            body = answer.read()
        size = len(body) + sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
        return Answer(answer.status, body, (answer.getheader("Location") or "").encode(), size)

    def _check(self, answer: Answer, statuses: Sequence[int], expected: bytes, where: bytes) -> None:
        if answer.status not in statuses or expected not in where:
            raise Unexpected(f"{self.name}: answered {answer.status} {answer.location!r} {answer.body[:500]!r}")


def http(method: str, path: str, headers: Mapping[str, str], body: bytes | str = b"") -> bytes:
    """The bytes of an HTTP/1.1 request; a body is a form unless the headers say otherwise."""
    content = body.encode() if isinstance(body, str) else body
    sent = {"Host": HOST, **({"Content-Type": FORM} if content else {}), **headers}
    if content or method in ("POST", "PUT"):
        sent["Content-Length"] = str(len(content))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    return "\r\n".join(lines).encode() + content


def bearer(token: str) -> dict[str, str]:
    """The header that presents an access token."""
    return {"Authorization": f"Bearer {token}"}
