"""Fixtures of the whole suite: stores on every engine, the service over real sockets, a clock that can be moved."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import Resolver

from dev.lab.watchdog import watch
from handlers.core.application import Latchkey
from handlers.core.site import Site
from handlers.routes import make_application
from store.crypto.keyring import KeyFile, KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.engine.embedded import EmbeddedStore
from store.engine.replicas import Wait
from store.wiring import Store
from tests.support.data import quick_keys
from tests.support.http import http_servers
from tests.support.http.driver import Service, send_raw
from tests.support.http.local_resolver import LocalResolver
from tests.support.http.upstream import ScriptedUpstream
from tests.support.lists import reading
from tests.support.lists.reading import APART
from tests.support.processes.clusters import Cluster, Replicated
from tests.support.processes.engines import Engine, FakeClock, Ticking, redis_server, valkey
from tests.support.processes.operator_commands import Home
from tests.support.processes.store_owners import end_stores
from tests.support.store import quick_lua
from tests.support.store.ai_spender import models_on
from tests.support.store.lost_answers import OpenNew, store_on

# On a busy machine a second can pass between two inputs.
hypothesis.settings.register_profile("busy", suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")

HERE = Path(__file__).parent
STRICT = os.environ.get("LATCHKEY_TEST_STRICT") == "1"
ENGINES = tuple(os.environ.get("LATCHKEY_TEST_ENGINES", "memory,valkey,redis,cluster").split(","))
"""What the `store` fixture runs on, in turn; `cluster7` is a cluster of Redis 7. Without `memory` among them, the first
takes its place where time need not move."""

# What a shell starts in the background ignores Ctrl-C, and so would every process of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)
Resolver.configure(LocalResolver)
quick_keys.install()
quick_lua.install()

RAW = tuple(f"tests.support.http.{name}" for name in ("http_servers", "raw_http", "steady_clients"))

ENGINES_ALONE = ("redis", "cluster")
"""The engines on which `make test` runs the tests of tests/engine alone; `make test-engines` runs the others."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that have their own target, that speak HTTP with the server, that also run on Tornado's HTTP server
    because the two servers can differ there, or that are about one of the two."""
    for item in items:
        for marker, beginnings in APART.items():
            if item.path.name.startswith(beginnings):
                item.add_marker(marker)
        called = getattr(item, "callspec", None)
        elsewhere = runs_with_other_engines(item.path, called and called.params.get("engine_url"))
        if elsewhere and not any(map(item.get_closest_marker, (*APART, "slow"))):
            item.add_marker("engines")
        if reading.about_protocol(item.path):
            item.add_marker("protocol")
        known = vars(item.module).values() if isinstance(item, pytest.Function) else ()
        starts = any(getattr(one, "__module__", "") == "tests.support.processes.processes" for one in known)
        if starts or "http_server" in getattr(item, "fixturenames", ()):
            item.add_marker("http")
            raw = any(getattr(one, "__module__", "") in RAW or one is send_raw for one in known)
            if (raw or reading.about_wire(item.path)) and not elsewhere:
                item.add_marker("wire")
        for marker in reading.KNOWN:
            if item.get_closest_marker(marker) and not reading.reads(item.path, marker):
                raise pytest.UsageError(f"{item.nodeid}: a run of {marker} leaves the file out (`reading.reads`)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spares a run the reading of files in which it has no test."""
    name, markers = collection_path.name, config.option.markexpr
    if not name.startswith("test_") or collection_path.suffix != ".py":
        return None
    return None if reading.must_read(collection_path, markers) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Shares out the rewriting of assertions, where the processes of a run find nothing in the cache."""
    config, given = session.config, getattr(session.config, "workerinput", None)
    if given and [Path(one).resolve() for one in config.args] == [HERE]:
        reading.load_first(HERE, config.option.markexpr, int(given["workerid"][2:]), given["workercount"])


def runs_with_other_engines(path: Path, engine: str | None) -> bool:
    """Whether the test of a file is not about the store itself, and this is not its run on memory or Valkey."""
    return engine in ENGINES_ALONE and "LATCHKEY_TEST_ENGINES" not in os.environ and HERE / "engine" not in path.parents


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Where everything must run, a skip is a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # pluggy's result has no public type
    if STRICT and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where nothing may be: {call.excinfo and call.excinfo.value}"


@pytest.fixture(scope="session", autouse=True)
def outer_loop() -> Iterator[None]:
    """The loop that pytest-tornado finds and puts back around each of its own. Where there is none asyncio makes one
    that nobody closes, and a later `asyncio.run` drops it."""
    if os.environ.get("LATCHKEY_TEST_LOOP") == "uvloop":
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(scope="module", autouse=True)
def shared_objects() -> None:
    """Keeps the garbage collector away from modules and all that outlives a file of tests: to look through them takes a
    quarter of a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def valkey_engine() -> Iterator[Engine]:
    """One Valkey for the whole run; `engine_url` empties it for each test."""
    with valkey() as engine:
        yield engine


@pytest.fixture(scope="session")
def redis_engine() -> Iterator[Engine]:
    """One Redis 7 for the whole run, where there is one."""
    try:
        engine = redis_server()
    except FileNotFoundError:
        pytest.skip("no redis-server on this machine")
    with engine:
        yield engine


@pytest.fixture(scope="module")
def watched() -> Iterator[Replicated]:
    """A primary, a replica and three sentinels."""
    with Replicated() as watched:
        yield watched


@pytest.fixture(scope="session")
def cluster_engine() -> Iterator[Cluster]:
    """Three primaries of Valkey for the whole run."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster7_engine() -> Iterator[Cluster]:
    """Three primaries of Redis 7 for the whole run, where there is one."""
    with Cluster(redis_server) as cluster:
        yield cluster


@pytest.fixture(params=[name for name in ENGINES if name.startswith("cluster")] or ["cluster"])
def any_cluster(request: pytest.FixtureRequest) -> Cluster:
    """The cluster of the run, or each of them in turn where several are named."""
    found: Cluster = request.getfixturevalue(f"{request.param}_engine")
    return found


def emptied(request: pytest.FixtureRequest, engine: str) -> str:
    """The URL of an empty store on an engine."""
    if engine == "memory":
        return engine
    server: Engine | Cluster = request.getfixturevalue(f"{engine}_engine")
    server.empty()
    return server.url


@pytest.fixture(params=ENGINES)
def engine_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, on each engine in turn."""
    return emptied(request, request.param)


@pytest.fixture
def keys() -> Keys:
    """A ring of one key."""
    return Keys(KeyRing.parse(KeyRing.generate(1)))


OpenStore = Callable[..., Store]


@pytest.fixture
def open_store(io_loop: IOLoop, keys: Keys) -> Iterator[OpenStore]:
    """Opens a store on a URL, with a time limit in seconds, which may wait for replicas; each is closed in the
    end."""
    opened: list[Store] = []

    def open_one(url: str, timeout: float = 5.0, wait: Wait | None = None) -> Store:
        async def make() -> Store:
            hasher = PasswordHasher(64, 1, workers=2, queue=200)
            client = await connect(url, socket_timeout=timeout)
            store = Store(client, keys, hasher, session_idle=14 * 86400, session_lifetime=30 * 86400, wait=wait)
            store.apps.settle = store.fsck.settle = 0
            return store

        opened.append(io_loop.run_sync(make))
        return opened[-1]

    yield open_one
    for store in opened:
        io_loop.run_sync(store.close)


@pytest.fixture
def open_new(keys: Keys) -> OpenNew:
    """Opens stores inside a test, as separate processes would."""

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Store]:
        store = store_on(await connect(url), keys)
        yield store
        await store.close()

    return opened


@pytest.fixture
def store(open_store: OpenStore, engine_url: str) -> Store:
    """A store on each engine in turn: what is tested with it holds on all of them."""
    return open_store(engine_url)


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    """Moves the time of fakeredis."""
    with FakeClock() as moved:
        yield moved


@pytest.fixture
def ticking() -> Ticking:
    """Moves the time of a cache or a window of this process."""
    return Ticking()


@pytest.fixture
def memory_store(request: pytest.FixtureRequest, open_store: OpenStore) -> Store:
    """A store on fakeredis alone, for tests that move time or are about HTTP."""
    stays = "memory" in ENGINES or "clock" in request.fixturenames
    return open_store("memory" if stays else emptied(request, ENGINES[0]))


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    """The server's facts; a test module may override it."""
    return Site(memory_store, base_url)


@pytest.fixture
def app(site: Site) -> Latchkey:
    """The application that pytest-tornado serves on a real socket."""
    return make_application(site)


@pytest.fixture
def http_server(
    request: pytest.FixtureRequest, io_loop: IOLoop, app: Latchkey, _unused_port: tuple[Any, int]
) -> Iterator[HTTPServer]:
    """pytest-tornado's, on the HTTP server that this run is about: LATCHKEY_TEST_HTTP is fast or tornado."""
    server = http_servers.chosen(app)
    server.add_socket(_unused_port[0])
    yield server
    server.stop()
    io_loop.run_sync(server.close_all_connections, timeout=request.config.option.async_test_timeout)


@pytest.fixture
def service(io_loop: IOLoop, http_server: Any, site: Site) -> Iterator[Service]:
    """The running service with a person (Ada) and a confidential app, and what drives them over HTTP."""
    made = Service(site.base_url, site.store)
    io_loop.run_sync(made.populate)
    yield made

    async def finish() -> None:
        while site.tasks:  # what no request waits for, but the drain does
            await asyncio.wait(site.tasks)

    io_loop.run_sync(finish)


@pytest.fixture
def upstream(io_loop: IOLoop) -> Iterator[ScriptedUpstream]:
    """A scripted server of the Messages API."""

    async def listen() -> ScriptedUpstream:
        return ScriptedUpstream()

    made = io_loop.run_sync(listen)
    yield made
    io_loop.run_sync(made.close)


@pytest.fixture
def ai_store(memory_store: Store) -> Store:
    """The store of `ai_site`; a test module may override it."""
    return memory_store


@pytest.fixture
def ai_site(
    io_loop: IOLoop, ai_store: Store, base_url: str, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> Iterator[Site]:
    """A site whose one model runs on the scripted upstream. Modules about AI calls override `site` with it. Whatever a
    test does to a call, the log must have no traceback and no complaint of a library."""
    made = Site(ai_store, base_url, models=models_on(upstream.url))
    yield made
    io_loop.run_sync(made.models.close)
    gc.collect()  # complaints about futures that nobody asked come when they are thrown away
    loud = [record for record in caplog.get_records("call") if record.levelno >= logging.WARNING]
    assert [one for one in loud if one.levelno >= logging.ERROR or not one.name.startswith("latchkey.")] == []


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data directory that nothing runs on yet."""
    watch(tmp_path)
    yield tmp_path / "data"
    end_stores(tmp_path)


@pytest.fixture(scope="session")
def owned_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, EmbeddedStore]]:
    """An embedded store with its key file, owned by a server, as far as anybody can tell; `home` empties it."""
    data_dir = tmp_path_factory.mktemp("home") / "data"
    watch(data_dir)
    store = EmbeddedStore.start(data_dir, "server")
    KeyFile.open_or_create(data_dir / "keys")
    yield data_dir, store
    store.stop()


@pytest.fixture
def home(owned_store: tuple[Path, EmbeddedStore], capsys: pytest.CaptureFixture[str]) -> Home:
    """A data directory for operators' commands while a server runs."""
    data_dir, store = owned_store
    return Home(data_dir, store.socket_path, capsys)
