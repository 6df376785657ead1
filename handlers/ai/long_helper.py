"""The helper process for long AI requests: `python -m handlers.ai.long_helper NUMBER`, the number of a socket.

It checks a body within bounds, translates it if need be, and writes the request for the model's server over the body in
its file. Its answer is an exchange without the request, which is small.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import sys
from io import FileIO

from handlers.ai.asked import read_exchange
from handlers.ai.long_jobs import MOST_VALUES, CountJob, ReadJob
from handlers.core.long.helper import READY, receive, send
from outbound.ai.dialects.messages_same import COUNTED
from outbound.ai.echo import EchoUpstream
from outbound.ai.events import compact
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.models import Models
from outbound.ai.tokens import count_request
from store.credits.request_digests import request_digest
from store.refused import Refused

NICE = 10
"""The server's own work comes first."""
MOST_JOB = 16 * 2**20
SHORT = 2**16
"""Bytes of a request that goes back as an object: much of its body was white space."""
MOST_KEPT = 2**18
"""Bytes of an exchange without its request: what its answer repeats."""


def main(number: int) -> None:
    """Answers jobs until the socket closes."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the server ends its helper
        signal.signal(one, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    connection = socket.socket(fileno=number)
    send(connection, READY, [])
    with contextlib.suppress(EOFError, OSError):
        while True:
            message, files = receive(connection, MOST_JOB)
            with FileIO(files[0], "r+b") as file:
                answer = _answer(pickle.loads(message), file)  # noqa: S301  # from the server itself
            send(connection, answer, [])
    os._exit(0)  # at once: there is nothing to finish


def _answer(job: ReadJob | CountJob, file: FileIO) -> bytes:
    try:
        return pickle.dumps(_count(job, file)) if isinstance(job, CountJob) else _read(job, file)
    except Refused as refusal:
        return pickle.dumps(("refused", refusal.code, str(refusal.description), refusal.param))


def _count(job: CountJob, file: FileIO) -> int:
    return count_request(json.loads(b"{%b}" % os.pread(file.fileno(), job.size, 0)), job.enough)


def _read(job: ReadJob, file: FileIO) -> bytes:
    """Pickled: the exchange, the name of its model, the bound of its input, the digest of the body, and the length of
    the request in the file; None if the exchange has the request. Raises Refused."""
    sent = job.sent
    body = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
    digest = request_digest(job.dialect, body) if job.keyed else ""
    sent = type(sent)(sent.reader, sent.kind, body, sent.version, sent.betas)
    written = _Written(file, counting=sent.reader == "count")
    exchange, model, bound = read_exchange(sent, Models(job.models), written.write, MOST_VALUES)
    size: int | None = written.size
    if written.size <= SHORT:
        size = None
    elif any(isinstance(one.upstream, EchoUpstream) for one in model.candidates):
        raise Refused("invalid_request", "The built-in model takes shorter requests.")
    else:
        exchange.request = {}
    answer = pickle.dumps(("read", exchange, model.model_id, bound, digest, size))
    if len(answer) > MOST_KEPT:
        words = "In a request of more than 1 MiB, what its answer repeats, such as instructions and tools, is at most"
        raise Refused("invalid_request", f"{words} {MOST_KEPT // 1024} KiB.")
    return answer


class _Written:
    """Writes the members of a request into the file, one value or item at a time: the whole text would take the memory
    of the request once more. `counting`: only what a count of tokens takes."""

    def __init__(self, file: FileIO, *, counting: bool) -> None:
        self._file, self._counting = file, counting
        self.size = 0

    def write(self, exchange: ModelExchange) -> int:
        """Writes them, but for those that are added later. Returns the length of the whole request in bytes. Raises
        UnicodeEncodeError for half a character, RecursionError."""
        self._file.seek(0)
        self._file.truncate()
        request, added = exchange.request, exchange.added
        only = COUNTED if self._counting and exchange.asks == "messages" else request
        for name, value in request.items():
            if name in added or name not in only:
                continue
            self._put(("," if self.size else "") + compact(name) + ":")
            if isinstance(value, list):
                self._put("[")
                for place, item in enumerate(value):
                    self._put(("," if place else "") + compact(item))
                self._put("]")
            else:
                self._put(compact(value))
        return self.size + len(compact(dict.fromkeys(added, exchange.model_id)))

    def _put(self, text: str) -> None:
        left = memoryview(text.encode())
        self.size += len(left)
        while left:
            left = left[self._file.write(left) or 0 :]


if __name__ == "__main__":
    main(int(sys.argv[1]))
