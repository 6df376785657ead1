"""A site whose one model has three scripted servers."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from outbound.ai.config import load_models
from store.wiring import Store
from tests.ai.upstreams.several import NAMES, Several, file_of
from tests.support.http.upstream import ScriptedUpstream


@pytest.fixture
def several(
    io_loop: IOLoop, memory_store: Store, base_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> Iterator[Several]:
    """The servers, and the site; as `ai_site`, the log must have no traceback."""

    async def listen() -> dict[str, ScriptedUpstream]:
        return {name: ScriptedUpstream() for name in NAMES}

    servers = io_loop.run_sync(listen)
    file = tmp_path / "models.toml"
    file.write_text(file_of({name: server.url for name, server in servers.items()}))
    made = Several(servers, Site(memory_store, base_url, models=load_models(file)))
    yield made
    for server in servers.values():
        io_loop.run_sync(server.close)
    io_loop.run_sync(made.site.models.close)
    gc.collect()
    assert [one for one in caplog.get_records("call") if one.levelno >= logging.ERROR] == []


@pytest.fixture
def site(several: Several) -> Site:
    """The site."""
    return several.site
