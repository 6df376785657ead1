"""Rows of a table: one endpoint of one server, its requests, and what its answers must contain."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Row:
    """`endpoint` of `system`. Every answer contains `expected`; `store` is the process of its store, if any."""

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
        """Sends one request. Returns the bytes of the answer. Raises Unexpected for a wrong answer."""
        sent = request or self.source.sample()
        with socket.create_connection((HOST, self.process.port), timeout=60) as connection:
            connection.sendall(sent)
            answer = HTTPResponse(connection)
            answer.begin()
            body = answer.read()
        if answer.status not in (200, 201) or self.expected not in body:
            raise Unexpected(f"{self.name}: answered {answer.status} {body[:500]!r}")
        return len(body) + sum(len(name) + len(value) + 4 for name, value in answer.getheaders())


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
