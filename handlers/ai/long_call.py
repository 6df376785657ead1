"""AI calls with long bodies: a helper process reads the body, and the request goes on from its file."""

from __future__ import annotations

import asyncio
import io
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from handlers.ai.asked import find_model
from handlers.ai.long_jobs import CountJob, ReadJob
from handlers.core.long.memory import LongBody
from handlers.core.site import Site
from outbound.ai.exchange.base import ModelExchange
from outbound.ai.long_request import LONG, LongRequest
from outbound.ai.models import Model, Models
from store.refused import Refused

COUNT_SECONDS = 3.0
"""Seconds for a count of tokens, which a settlement waits for: its hold must not end meanwhile."""
_OURS = ("outbound.ai.exchange.", "outbound.ai.dialects.")


@dataclass(frozen=True, slots=True)
class LongCall:
    """A long request that was read: `bound` is an upper bound of its input tokens."""

    exchange: ModelExchange
    model: Model
    bound: int
    digest: str


async def read_long(site: Site, person: str, job: ReadJob, body: LongBody, gone: Callable[[], bool]) -> LongCall:
    """Reads a person's request in the helper process. From then on the body's file has the request for the server.
    Raises Refused."""
    found = _load(await site.long_bodies.ask(person, pickle.dumps(job), body, gone))
    if found[0] == "refused":
        raise Refused(found[1], found[2], param=found[3])
    _, exchange, model_id, bound, digest, size = found
    body.now_has(size or 0)
    if size is not None:
        exchange.request = {LONG: LongRequest(body.file, size, lambda enough: _count(site, person, body, size, enough))}
    return LongCall(exchange, find_model(Models(job.models), model_id), bound, digest)


async def _count(site: Site, person: str, body: LongBody, size: int, enough: int) -> int | None:
    with suppress(Refused, TimeoutError):
        async with asyncio.timeout(COUNT_SECONDS):
            answer = await site.long_bodies.ask(person, pickle.dumps(CountJob(size, enough)), body)
        found: int = _load(answer)
        return found
    return None


class _Unpickler(pickle.Unpickler):
    """The helper reads what strangers send, so nothing but exchanges is taken from it."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_OURS):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def _load(answer: bytes) -> Any:
    return _Unpickler(io.BytesIO(answer)).load()
