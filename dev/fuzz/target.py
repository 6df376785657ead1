"""The server under test: the whole application on a real socket and a real store, in its own thread. Its rate limits
are raised, its log is watched and its store inspected."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import sys
import threading
from collections.abc import Coroutine, Iterator
from ipaddress import ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

import redis
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from dev.fuzz.meter import Meter
from handlers.core.site import Site
from handlers.ops.credits import make_ops_application
from handlers.routes import make_application
from outbound.address_policy import AddressPolicy
from outbound.payments.stripe_checkout import StripeAccount, StripeCheckout
from runtime.mcp_wiring import open_mcp
from settings.declared import Settings
from store import lifetimes
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.wiring import Store
from tests.support.http.documented_app import URL, Publisher
from tests.support.http.http_servers import HTTP_SERVERS
from tests.support.processes.engines import Engine, valkey

T = TypeVar("T")
PLENTY = 10**6
"""Requests that a rate limit window allows during a run."""
PATIENCE = 120.0
"""Seconds after which the event loop, or a task on it, counts as hung."""
OPERATOR_KEY = "operator-key_0123456789-abcdefgh"
STRIPE_KEY, STRIPE_SECRET = "sk_test_" + "a" * 24, "whsec_" + "b" * 32
LARGEST_BODY = 2 * 2**20
"""Body size in bytes beyond which a connection is closed, as with the default settings of `server.py`."""

PROXIES = (ip_network("127.0.0.1"), ip_network("::1"))
"""Every client counts as a proxy, so forwarded headers are read."""

# Fields that may change although nothing was done: the time somebody was last seen.
SEEN = {b"seen_at", b"last_used_at", b"used_at", b"used_from"}
# Keys of windows, counters, pending requests and dry runs, which need no change to appear.
PASSING = (b":limit:", b"{window:", b":request:", b":par:", b":pars", b":guesses", b":fetch", b"{operators}:job")


class Target:
    """Use as a context manager. `http` is the HTTP server: fast or tornado."""

    def __init__(self, http: str = "fast", *, signup: str = "off") -> None:
        self.http, self._signup = http, signup
        self.log = Listener()
        self.loop = asyncio.new_event_loop()
        self.meter = Meter(self.loop)
        self._thread = threading.Thread(target=self._run, name="fuzzed", daemon=True)

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        self._folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="fuzz-", dir="/tmp")))
        self.engine: Engine = self._stack.enter_context(valkey())
        self.client: redis.Redis = self._stack.enter_context(self.engine.client())
        self._stack.enter_context(plenty())
        self._stack.enter_context(self.log)
        self._stack.enter_context(self.meter)
        self._thread.start()
        self._stack.callback(self._end)
        self.run(self._begin())
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def run(self, work: Coroutine[Any, Any, T], seconds: float = PATIENCE) -> T:
        """The result of a coroutine on the server's loop. Raises Hung if it takes too long."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():
                raise
            faulthandler.dump_traceback(file=sys.stderr)
            raise Hung(f"nothing after {seconds:g} s") from None

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        asyncio.set_event_loop(None)
        self.loop.close()

    async def _begin(self) -> None:
        # The sockets of the store's connections belong to this loop.
        hasher = PasswordHasher(8192, 1, workers=2, queue=200)
        client = await connect(self.engine.url, socket_timeout=10)
        keys = Keys(KeyRing.parse(KeyRing.generate(1)))
        self.store = Store(client, keys, hasher, session_idle=14 * 86400, session_lifetime=30 * 86400)
        self.store.apps.settle = 0
        socket, self.port = bind_unused_port()
        self.base_url = f"http://localhost:{self.port}"
        self.store.apis.mcp = True
        # Nobody listens at Stripe's address.
        account = StripeAccount(STRIPE_KEY, (STRIPE_SECRET,), self.base_url, "http://localhost:9", "http://localhost:9")
        payments = StripeCheckout(account)
        self.store.apps.documents = True
        self.publisher = await Publisher.make(self._folder, AddressPolicy(loopback=True))
        self.publisher.publishes("Cache-Control: max-age=86400")
        self.site = Site(
            self.store,
            self.base_url,
            signup=self._signup,
            trusted_proxies=PROXIES,
            # A registration needs a token, which no request has.
            dynamic_registration="token",
            payments=payments,
            client_documents=self.publisher.documents,
            mcp=open_mcp(Settings(mcp="on"), self.base_url, "Latchkey"),
        )
        # It is fresh for a day, so no request stores it again.
        await self.site.client_documents.current(self.store, URL, self.site.asker("127.0.0.1"))
        self.application = make_application(self.site)
        options: dict[str, Any] = {"max_body_size": LARGEST_BODY, "body_timeout": 60.0, "idle_connection_timeout": 75.0}
        operations, self.ops_port = bind_unused_port()
        self._applications = (self.application, make_ops_application(self.site, (OPERATOR_KEY,)))
        self._servers: list[HTTPServer] = []
        for application, listening in zip(self._applications, (socket, operations), strict=True):
            self._servers.append(HTTP_SERVERS[self.http](application, **options))
            self._servers[-1].add_socket(listening)

    def at_work(self) -> bool:
        """Whether the application is handling a request."""
        return any(application.in_flight for application in self._applications)

    def _end(self) -> None:
        async def close() -> None:
            for server in self._servers:
                server.stop()
                await server.close_all_connections()
            while self.site.tasks:
                await asyncio.wait(self.site.tasks)
            await self.publisher.domain.receiver.close()
            await self.site.models.close()
            await self.store.close()
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        with contextlib.suppress(Hung):
            self.run(close(), 30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)

    def commands(self) -> dict[str, int]:
        """The number of store calls of each kind, without this module's own."""
        found: dict[str, dict[str, Any]] = self.client.info("commandstats")
        counted = {name.removeprefix("cmdstat_"): int(row["calls"]) for name, row in found.items()}
        return {name: calls for name, calls in counted.items() if name not in ("info", "ping")}

    def content(self) -> dict[bytes, Any]:
        """The store's content, without windows, requests in progress, lifetimes and last-seen times."""
        found: dict[bytes, Any] = {}
        for key in sorted(self.client.scan_iter(count=1000)):
            if not any(part in key for part in PASSING):
                found[key] = self._value(key)
        return found

    def _value(self, key: bytes) -> Any:
        kind = self.client.type(key)
        if kind == b"hash":
            row: dict[Any, Any] = self.client.hgetall(key)
            return {name: value for name, value in row.items() if name not in SEEN}
        if kind == b"zset":
            return self.client.zrange(key, 0, -1, withscores=True)
        if kind == b"set":
            return sorted(self.client.smembers(key))
        if kind == b"stream":
            return self.client.xrange(key)
        assert kind == b"string", (key, kind)
        return self.client.get(key)


class Hung(Exception):
    """The expected answer did not come."""


class Listener(logging.Handler):
    """Collects log entries that a healthy server never writes: tracebacks, asyncio complaints, errors."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if record.levelno >= logging.ERROR or record.exc_info or "Traceback" in text or record.name == "asyncio":
            self.heard.append(f"{record.name}: {text}")

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        self._hooks = sys.unraisablehook, threading.excepthook
        sys.unraisablehook = lambda one: self.heard.append(f"unraisable: {one.exc_value!r} in {one.object!r}")
        threading.excepthook = lambda one: self.heard.append(f"thread: {one.exc_value!r}")
        return self

    def __exit__(self, *raised: object) -> None:
        sys.unraisablehook, threading.excepthook = self._hooks
        logging.getLogger().removeHandler(self)


@contextlib.contextmanager
def plenty() -> Iterator[None]:
    """Raises the limit of every window so that none fills: 429s would end each run after a second."""
    groups = [group for group in vars(lifetimes).values() if isinstance(group, lifetimes.Group)]
    before = [group.limit for group in groups]
    for group in groups:
        object.__setattr__(group, "limit", PLENTY)
    try:
        yield
    finally:
        for group, limit in zip(groups, before, strict=True):
            object.__setattr__(group, "limit", limit)
