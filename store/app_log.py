"""The log of an app's refused requests, for its owners.

A refusal is counted in the process by app, cause and value, and added to the store within a second or two, so no
request waits for it. A killed process loses what it has not sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

import orjson

from store import keys
from store.engine.background import background
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.lifetimes import DAY
from store.moments import at
from store.phrases import Phrase, packed, unpacked

log = logging.getLogger("latchkey.app_log")

FLUSH_SECONDS = 1.0
"""How long counts are collected before they are sent. So an app's log is written at most once a second."""
KEPT_MS = 30 * DAY
"""How long a refusal is kept after the last time it happened, in ms."""
MOST = 200
"""Distinct refusals of an app that are kept."""
MOST_VALUES = 20
"""Values of one cause that are told apart: anybody can send an app's id with values of their own, and must not push
everything else out of its log."""
MOST_APPS = 1_000
"""Apps counted between two flushes; further apps are not counted."""
LONGEST = 200
"""Bytes of a value, and of a description in plain English."""
LONGEST_MESSAGE = 600
"""Bytes of a description that pages translate, with its values, in JSON. A longer one is kept in English."""

Door = Literal["authorize", "token", "call"]
"""Where an app was refused: at the authorization endpoint, at the token endpoint and its neighbours, or at a call."""


class Cause(NamedTuple):
    """Why an app was refused: where, the error code, the description it got, and the value it had sent; empty where the
    value says nothing, or could be a secret. Pages show a `Phrase` as description in the language of their reader."""

    door: Door
    code: str
    description: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class LoggedRefusal:
    """A refusal of an app: how often it happened in the time that is kept, first and last."""

    cause: Cause
    times: int
    first: datetime
    last: datetime


class AppLog:
    """Counts in memory; `flush` makes one store call for each app with new refusals."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._counted: dict[str, Counter[Cause]] = {}
        self._something = asyncio.Event()

    def refused(self, client: str, cause: Cause) -> None:
        """Counts a refusal of a registered app."""
        counted = self._counted.get(client)
        if counted is None:
            if len(self._counted) >= MOST_APPS:
                return
            counted = self._counted[client] = Counter()
        cause = cause._replace(description=_bounded(cause.description), value=_cut(cause.value))
        if cause not in counted and (len(counted) >= MOST or _values(counted, cause) >= MOST_VALUES):
            cause = cause._replace(value="")
        if cause in counted or len(counted) < MOST:
            counted[cause] += 1
            self._something.set()

    async def flush(self) -> None:
        """Adds the counted refusals to the stored ones. Raises StoreUnavailable; what was not sent is lost."""
        counted, self._counted = self._counted, {}
        self._something.clear()
        for client, causes in counted.items():
            batch = orjson.dumps([[*_parts(cause), times] for cause, times in causes.items()])
            bounds = {"most": MOST, "most_values": MOST_VALUES, "keep": KEPT_MS}
            await self._scripts.run("add_refusals", keys.app_stats(client), batch=batch, **bounds)

    async def of(self, client: str) -> tuple[LoggedRefusal, ...]:
        """The refusals of an app that have been flushed, the latest first."""
        reply = await self._scripts.run("read_refusals", keys.app_stats(client), keep=KEPT_MS)
        fields = reply.rows("rows")
        found = [_refusal(name, value) for name, value in zip(fields[::2], fields[1::2], strict=True)]
        return tuple(sorted(found, key=lambda one: one.last, reverse=True))

    async def _keep_flushing(self) -> None:
        while True:
            await self._something.wait()
            await asyncio.sleep(FLUSH_SECONDS)
            await self._flush_quietly()

    async def _flush_quietly(self) -> None:
        try:
            await self.flush()
        except StoreError as error:
            log.warning("refusals of apps lost: %s", error)

    @contextlib.asynccontextmanager
    async def flushing(self) -> AsyncIterator[None]:
        """Flushes in the background while the block runs, and once more after it."""
        try:
            async with background(self._keep_flushing()):
                yield
        finally:
            await self._flush_quietly()


def _parts(cause: Cause) -> tuple[str, str]:
    """The cause without its value, and the value, as the script tells them apart."""
    return orjson.dumps([cause.door, cause.code, packed(cause.description)]).decode(), cause.value


def _values(counted: Mapping[Cause, int], cause: Cause) -> int:
    return sum(1 for other in counted if other[:3] == cause[:3])


def _bounded(description: str) -> str:
    """The description, or what is kept of it."""
    if type(description) is not Phrase or not description.isprintable():
        return _cut(description)
    return description if len(orjson.dumps(packed(description))) <= LONGEST_MESSAGE else _cut(description)


def _cut(text: str) -> str:
    """Text of at most `LONGEST` bytes that shows what it is: control characters become spaces."""
    text = "".join(letter if letter.isprintable() else " " for letter in text[:LONGEST])
    return text.encode("utf-8", "replace")[:LONGEST].decode("utf-8", "ignore")


def _refusal(name: bytes, value: bytes) -> LoggedRefusal:
    about, _, sent = name.partition(b"\t")
    times, first, last = map(int, value.split(b" "))
    door, code, description = orjson.loads(about)
    return LoggedRefusal(Cause(door, code, unpacked(description), sent.decode()), times, at(first), at(last))
