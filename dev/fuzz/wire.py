"""The wire: sends bytes unchanged, reads the answer, and reports what must not happen."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from handlers.core.errors import CATALOGUE, PUBLIC_NAME

QUIET = 0.05
"""Seconds without a byte after which the client ends its side: a server that waits for more learns that none comes."""
LONGEST_WORK = 0.5
"""Seconds to wait for a server that is working, perhaps on a body that never ends."""
BOUND = 10.0
"""Seconds after that until the connection must be closed."""
ENDLESS = 2**24
"""Bytes after which an answer counts as endless."""

CODES = {PUBLIC_NAME.get(code, code) for code in CATALOGUE}
STATUSES = {entry.status for entry in CATALOGUE.values()} | {200, 201, 202, 204, 206, 303, 400, 414, 416, 431}
_STATUS = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) [^\r\n]*")


class Wrong(AssertionError):
    """The server did something it must not do."""


@dataclass(frozen=True, slots=True)
class Response:
    """One answer. The names of `fields` are in lower case; `whole` says that its body is complete."""

    status: int
    fields: dict[str, str]
    body: bytes
    whole: bool


@dataclass(slots=True)
class Heard:
    """What arrived on a connection until it closed."""

    received: bytes
    hung_up: bool
    """Whether the client ended its side before the server did."""
    answers: list[Response] = field(default_factory=list)


async def converse(port: int, pieces: Sequence[bytes], at_work: Callable[[], bool], *, whole: bool = False) -> Heard:
    """Sends the pieces one after another and reads until the server closes. A server `at_work` gets more time, and the
    client of a `whole` request never ends its side first. Raises Wrong if the connection stays open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received, hung_up, waited = bytearray(), False, 0
    try:
        async with asyncio.timeout(BOUND):
            for piece in pieces:
                writer.write(piece)
                with suppress(ConnectionError):
                    await writer.drain()
                if len(pieces) > 1:
                    await asyncio.sleep(0)
            while True:
                try:
                    async with asyncio.timeout(None if hung_up or whole else QUIET):
                        data = await reader.read(2**16)
                except TimeoutError:
                    waited += 1
                    if at_work() and waited * QUIET < LONGEST_WORK:
                        continue
                    hung_up = True
                    with suppress(OSError):
                        writer.write_eof()
                    continue
                except ConnectionError:  # a reset closes the connection too
                    break
                if not data:
                    break
                received += data
                if len(received) > ENDLESS:
                    raise Wrong("an answer without an end")
    except TimeoutError:
        raise Wrong(f"the connection is open after {BOUND:g} s; {bytes(received[:500])!r} came") from None
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return Heard(bytes(received), hung_up)


def check(heard: Heard, *, busy: bool = False, strict: bool = True) -> None:
    """Raises Wrong for an answer that no request may get. `busy` allows 503. Unless `strict`, only headers are checked,
    because the end of an answer is unknown."""
    if b"Traceback (most recent call last)" in heard.received:
        raise Wrong("a traceback in an answer")
    heard.answers = list(answers_in(heard.received) if strict else heads_in(heard.received))
    for number, answer in enumerate(heard.answers):
        last = number == len(heard.answers) - 1
        if answer.status >= 500 and not (answer.status == 503 and busy):
            raise Wrong(f"status {answer.status}: {answer.body[:500]!r}")
        if answer.status not in STATUSES and answer.status != 100:
            raise Wrong(f"status {answer.status}, which nobody documents")
        if not answer.whole and not (last and heard.hung_up):
            raise Wrong(f"half an answer of status {answer.status}: {heard.received[-500:]!r}")
        if answer.whole and answer.status >= 400 and "x-request-id" in answer.fields:
            _check_error(answer)


def _check_error(answer: Response) -> None:
    """An error of the application has a code of the catalogue."""
    if answer.fields.get("content-type") == "application/json" and answer.body:
        value = json.loads(answer.body)
        # The APIs of models have envelopes of their own.
        envelope = isinstance(value["error"], dict) and isinstance(value["error"]["message"], str)
        if not envelope and value["error"] not in CODES:
            raise Wrong(f"the error {value!r}")


def heads_in(received: bytes) -> Iterator[Response]:
    """Candidates for the head of an answer."""
    for found in _STATUS.finditer(received):
        yield Response(int(found[1]), {}, b"", True)


def answers_in(received: bytes) -> Iterator[Response]:
    """The answers in the received bytes, parsed strictly. Raises Wrong for anything but HTTP."""
    at = 0
    while at < len(received):
        end = received.find(b"\r\n\r\n", at)
        if end < 0:
            yield Response(*_head(received[at:].split(b"\r\n")), b"", False)
            return
        status, fields = _head(received[at:end].split(b"\r\n"))
        at = end + 4
        if status == 100:
            yield Response(status, fields, b"", True)
            continue
        body, at, whole = _body(received, at, status, fields)
        yield Response(status, fields, body, whole)
        if not whole:
            return


def _head(lines: list[bytes]) -> tuple[int, dict[str, str]]:
    found = _STATUS.fullmatch(lines[0])
    if not found:
        raise Wrong(f"no status line: {lines[0][:200]!r}")
    fields = {}
    for line in lines[1:]:
        name, colon, value = line.decode("latin-1").partition(": ")
        if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name) or "\r" in value or "\n" in value:
            raise Wrong(f"no header: {line[:200]!r}")
        fields[name.lower()] = value
    return int(found[1]), fields


def _body(received: bytes, at: int, status: int, fields: dict[str, str]) -> tuple[bytes, int, bool]:
    """The body, its end, and whether it is complete."""
    if status in (204, 304):
        return b"", at, True
    if fields.get("transfer-encoding") == "chunked":
        body = bytearray()
        while True:
            end = received.find(b"\r\n", at)
            if end < 0:
                return bytes(body), len(received), False
            size = int(received[at:end], 16)
            piece = received[end + 2 : end + 2 + size]
            body += piece
            at = end + 2 + size + 2
            if len(piece) < size or at > len(received):
                return bytes(body), len(received), False
            if not size:
                return bytes(body), at, True
    if "content-length" in fields:
        end = at + int(fields["content-length"])
        return received[at:end], min(end, len(received)), end <= len(received)
    if at < len(received) or status < 400:
        raise Wrong(f"an answer of status {status} whose end nobody can know")
    return b"", at, True  # the bare answer to something that is no HTTP
