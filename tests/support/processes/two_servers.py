"""Fixtures for tests against two server processes on one store.

A module takes them by assignment. One whose servers need options has a fixture `two` of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from store import keys
from store.crypto.keyring import KeyRing
from tests.support.http.driver import Service
from tests.support.processes.clusters import Cluster
from tests.support.processes.processes import QUICK, Pair, driven, pair, shared

STORES = ("valkey", pytest.param("cluster", marks=pytest.mark.engines))
"""Parameters of a fixture: one store, and a cluster, which `make test` leaves out."""


class OnCluster(Pair):
    """The two servers on a cluster."""

    def forget_addresses(self) -> None:
        """Empties the windows of addresses on every node."""
        cluster: Any = self.engine
        for node in cluster.primaries:
            with node.engine.client() as client:
                for key in client.scan_iter(keys.window("*", "*") + "*"):
                    client.delete(key)


@contextlib.contextmanager
def pair_on(request: pytest.FixtureRequest, *options: str) -> Iterator[Pair]:
    """Two running servers on what a fixture with the parameters `STORES` asks for."""
    if request.param == "valkey":
        with pair(*options) as made:
            yield made
        return
    ring, cluster = KeyRing.generate(1), request.getfixturevalue("cluster_engine")
    assert isinstance(cluster, Cluster)
    cluster.empty()
    words = ("--redis-url", cluster.url, "--password-queue", "200", *QUICK, *options)
    with shared(ring, *words) as first, shared(ring, *words) as second:
        engine: Any = cluster
        yield OnCluster(engine, ring, (first.ready(), second.ready()))


@pytest.fixture(scope="module")
def two() -> Iterator[Pair]:
    """The two servers of this module."""
    with pair() as made:
        yield made


@pytest.fixture(scope="module", params=STORES)
def two_on_each(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The two servers of this module, on one store and then on a cluster."""
    with pair_on(request) as made:
        yield made


@pytest.fixture
def service(io_loop: IOLoop, two: Pair) -> Iterator[Service]:
    """A new person and a new app on both servers."""
    with driven(io_loop, two) as made:
        yield made
