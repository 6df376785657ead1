"""A server of several workers whose metrics are on, and the names of its samples."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from tornado.ioloop import IOLoop

from store.crypto.keyring import KeyRing
from tests.support.http.driver import Service
from tests.support.http.scraped_metrics import METRICS
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Pair, driven, shared

WORKERS = 4


MODELS = """
echo = true
[[upstream]]
name = "nobody"
url = "http://127.0.0.1:{port}"

[[upstream.models]]
id = "away"
display_name = "Away"
max_input = 1000
max_output = 1000

[[upstream.models.prices]]
version = "1"
from = 2026-01-01T00:00:00Z
input = 1000000
output = 1000000
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """One server of several workers on Valkey, with a model whose server is away."""
    models = tmp_path_factory.mktemp("models") / "models.toml"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        models.write_text(MODELS.format(port=closed.getsockname()[1]))
        ring = KeyRing.generate(1)
        # What relays ask of the store would mix with what the tests ask.
        flags = ("--no-webhooks", "--redis-timeout", "60", *METRICS, *QUICK)
        setup = ("--workers", str(WORKERS), "--ai-config", str(models), *flags)
        with valkey() as engine, shared(ring, "--redis-url", engine.url, *setup) as server:
            yield Pair(engine, ring, (server.ready(), server))


@pytest.fixture
def service(running: Pair, io_loop: IOLoop) -> Iterator[Service]:
    """A new person and a new app."""
    with driven(io_loop, running) as made:
        io_loop.run_sync(lambda: made.store.credits.grant(made.ada, 1_000_000))
        yield made


def answered(route: str, status: int, method: str = "GET") -> str:
    """The sample of a route's answers."""
    return f"latchkey_requests_total{{method={method},route={route},status={status}}}"
