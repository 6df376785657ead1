"""Attempts at webhook deliveries: what was posted, and what the receiver answered.

One stream for each app has its last attempts. The script that settles an attempt also records it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from store.engine.scripts import Value

log = logging.getLogger("latchkey.deliveries")

KEPT = 100
"""The attempts kept for an app. The longest one takes 11 KB, so an app takes at most 1.2 MB; most take 1 KB."""
SHOWN = 20
"""The attempts of one delivery that are read: its last ones."""
HEADERS_ROOM, SENT_ROOM, ANSWER_ROOM = 2048, 2048, 4096
"""The bytes kept of the headers of a request or an answer, of what was posted, and of an answer's body."""
VALUE_LENGTH = 500
NEVER_KEPT = frozenset({"set-cookie", "set-cookie2"})
"""Headers of an answer that could let somebody else in."""
LEFT_OUT = ("…", "")
"""The last of the kept headers, if some were left out."""

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """The answer of a receiver at a public address: its headers, and the beginning of its body."""

    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class WebhookExchange:
    """What an attempt sent, and the answer: None if there was none or it may not be shown. `milliseconds`: from the
    look-up of the host to the end of the answer. An empty `url`: nothing was sent."""

    url: str = ""
    headers: Headers = ()
    body: bytes = b""
    answer: WebhookResponse | None = None
    milliseconds: int = 0

    def args(self) -> dict[str, Value]:
        """The arguments of the script that records it."""
        answer = self.answer
        return {
            "url": self.url,
            "sent": json.dumps(kept_headers(self.headers), ensure_ascii=False),
            "body": self.body[:SENT_ROOM],
            "received": json.dumps(kept_headers(answer.headers), ensure_ascii=False) if answer else "",
            "answer": answer.body[:ANSWER_ROOM] if answer else b"",
            "took": self.milliseconds,
        }


NO_EXCHANGE = WebhookExchange()


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a delivery: its number, when it began (epoch ms), what was exchanged, the HTTP status or None, and
    what went wrong in words."""

    number: int
    at: int
    exchange: WebhookExchange
    status: int | None
    error: str

    @property
    def cut(self) -> bool:
        """Whether the answer's body may be longer than what is kept."""
        return self.exchange.answer is not None and len(self.exchange.answer.body) >= ANSWER_ROOM


Attempts = list[Attempt]


def kept_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Headers as they are kept: without cookies, with long values cut, and no more than there is room for."""
    kept: list[tuple[str, str]] = []
    left = HEADERS_ROOM
    for name, value in headers:
        if name.lower() in NEVER_KEPT:
            continue
        cut = value if len(value) <= VALUE_LENGTH else value[:VALUE_LENGTH] + "…"
        left -= len(json.dumps((name, cut), ensure_ascii=False).encode("utf-8", "replace"))
        if left < 0:
            return (*kept, LEFT_OUT)
        kept.append((name, cut))
    return tuple(kept)


def attempts_of(rows: Iterable[list[bytes]]) -> Attempts:
    """The readable attempts among the entries of a stream."""
    found = []
    for flat in rows:
        try:
            found.append(_attempt(dict(zip(flat[::2], flat[1::2], strict=True))))
        except (LookupError, ValueError, TypeError, RecursionError):
            log.error("an attempt at a delivery cannot be read")
    return found


def _attempt(row: Mapping[bytes, bytes]) -> Attempt:
    answer = WebhookResponse(_headers(row[b"received"]), row[b"answer"]) if row[b"received"] else None
    exchange = WebhookExchange(
        row[b"url"].decode(), _headers(row[b"sent"]), row[b"body"], answer, _number(row[b"took"])
    )
    status = _number(row[b"status"]) if row[b"status"] else None
    return Attempt(_number(row[b"attempt"]), _number(row[b"at"]), exchange, status, row[b"error"].decode())


def _headers(packed: bytes) -> Headers:
    return tuple((str(name), str(value)) for name, value in json.loads(packed))


def _number(text: bytes) -> int:
    number = int(text)
    if not 0 <= number <= 10**15:
        raise ValueError("a number")
    return number
