"""A service that takes AI requests of up to 4 MiB, and long requests for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from handlers.core.long.bodies import LONG_REQUEST, LongBodies
from handlers.core.long.helper import Helper
from handlers.core.site import Site
from outbound.ai.echo import echo_model
from outbound.ai.models import Models
from tests.ai.openai.kit import CACHED, CLAUDE
from tests.support.http.http_servers import until
from tests.support.http.openai_upstream import openai_models
from tests.support.http.upstream import ScriptedUpstream
from tests.support.store.ai_spender import models_on, question

MOST = 4 * 2**20
LONG_TEXT = "All work and no play makes Jack a dull boy. " * (LONG_REQUEST // 40)


@pytest.fixture(scope="module")
def helper() -> Iterator[Helper]:
    """One helper process for a module's tests, because it takes a while to start."""
    made = Helper("handlers.ai.long_helper")
    yield made
    made.close()


@pytest.fixture
def site(io_loop: IOLoop, ai_site: Site, upstream: ScriptedUpstream, helper: Helper) -> Iterator[Site]:
    """Three models: the built-in one, one of a server of the Messages API, and one of an OpenAI server."""
    claude = replace(models_on(upstream.url, price=replace(CACHED, web_search=0)).all()[0], model_id=CLAUDE)
    gpt = openai_models(upstream.url, price=CACHED).all()[0]
    bodies = LongBodies(4 * MOST, helper)
    made = replace(ai_site, models=Models((echo_model(), claude, gpt)), max_ai_request=MOST, long_bodies=bodies)
    yield made
    io_loop.run_sync(made.models.close)

    async def free() -> None:
        """Every body gives its memory back."""
        await until(lambda: bodies.memory.taken == 0)

    io_loop.run_sync(free)


def long_question(**changes: Any) -> dict[str, Any]:
    """A long request of the Messages API, for the model on a server that speaks it."""
    return question(LONG_TEXT, model=CLAUDE, **changes)


def padded(request: dict[str, Any], length: int) -> bytes:
    """A request with white space up to `length` bytes."""
    return json.dumps(request).encode().ljust(length)


def bodies_of(pid: int) -> int:
    """The bytes of the bodies that a process has in files in memory."""
    found: dict[int, int] = {}
    for one in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            if "latchkey-body" in os.readlink(one):
                found[one.stat().st_ino] = one.stat().st_size
        except OSError:
            continue
    return sum(found.values())
