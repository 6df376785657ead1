"""The health of the server, for the management interface and the console."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import NamedTuple, cast

from tornado.web import Application

from handlers.core.application import Latchkey
from handlers.core.site import Site
from store.operators.health import KeyAges, StoreHealth
from store.operators.memory_sample import MemoryEstimate


class ServerHealth(NamedTuple):
    """`room`: whether documents may grow. `memory`: the last estimate of what fills the store, None before the first.
    `queues`: what waits in this process and in the store, by public names."""

    stopping: bool
    version: str
    python: str
    workers: int
    store: StoreHealth
    ages: KeyAges
    room: bool
    memory: MemoryEstimate | None
    queues: Mapping[str, int]


async def health_of(application: Application, site: Site) -> ServerHealth:
    """The health now. Begins a new estimate in the background if the last one is old. Raises StoreUnavailable."""
    served, store, facts = cast(Latchkey, application), site.store, site.facts()
    if store.health.sample.due():
        site.in_background(store.health.sample.take())
    found = await store.health.read()
    return ServerHealth(
        served.draining,
        facts.version,
        platform.python_version(),
        facts.workers,
        found,
        await store.health.ages(),
        not store.headroom.low,
        store.health.sample.last,
        {
            "storeCalls": store.queue,
            "securityEvents": store.security.waiting,
            "webhooks": found.webhooks_waiting,
            "requests": served.in_flight,
        },
    )
