"""The server: settings, store, application, listen, drain.

`python server.py --help` names every setting; `docs/settings.md` explains them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

import event_loop
import workers
from demo import Demo
from front import FrontServer
from front.files import room_for
from handlers import make_application
from handlers.base import Latchkey
from handlers.site import Site
from opening import open_keys, open_store
from outbound.config import ConfigError, load_models
from outbound.models import Models
from settings import Settings, SettingsError, load
from store.connect import unix_url
from store.embedded import EmbeddedStore
from store.errors import StartupError, StoreError
from store.keyring import KeyRingError, Keys
from store.opened import Store
from store.seed import seed

log = logging.getLogger("latchkey")

KEY_CHECK_SECONDS = 3600.0
KEY_FILE_SECONDS = 1.0
# What is larger than `max_body` is told so; what is larger than this many times it is cut off, since reading a form
# takes the event loop its time.
ABSURD_BODIES = 4
HOLD_MARGIN_SECONDS = 5.0
# A connection without a request, longer than proxies keep one (60 s is common); the head of a request; its body.
IDLE_SECONDS = 75.0
HEAD_SECONDS = 20.0
BODY_SECONDS = 60.0
# Files that are open beside connections of clients: connections of the store and of model servers, sockets, logs.
OTHER_FILES = 256


@dataclass
class Runtime:
    """What a process serves with: inherited by workers."""

    settings: Settings
    store_url: str
    keys: Keys
    sockets: list[socket.socket]
    bound: str
    base_url: str
    embedded: EmbeddedStore | None
    models: Models
    supervisor: int | None = None
    """Its process id, noted before there is a worker: one that asks for its parent may be an orphan already."""
    exit_code: int = 0

    async def prepare(self, store: Store) -> Demo | None:
        """Seeds what is missing; starts the demo app where it was asked for."""
        if self.settings.seed:
            await seed(store, self.settings.seed)
        if self.settings.demo:
            return await Demo.start(store, self.base_url)
        await Demo.put_away(store)
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT. Returns the exit status: 2 for settings, 1 for a start that failed."""
    try:
        settings = load(sys.argv[1:] if argv is None else argv, os.environ)
        settings.require_keys()
    except SettingsError as error:
        print(f"latchkey: {error}", file=sys.stderr)
        return 2
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    try:
        return run(settings)
    except (StartupError, StoreError, KeyRingError, ConfigError, OSError) as error:
        print(f"latchkey: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run(settings: Settings) -> int:
    """Binds, starts the store where it is ours, serves. Raises StartupError, KeyRingError, OSError."""
    # Until there is something to drain, SIGTERM ends the start as Ctrl-C does, and the store with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sockets = bind(settings.host, settings.port)
    embedded = EmbeddedStore.start(settings.data_dir, "server") if settings.redis_url == "embedded" else None
    try:
        store_url = unix_url(embedded.socket_path) if embedded else settings.redis_url
        bound = ", ".join("{} port {}".format(*one.getsockname()[:2]) for one in sockets)
        base_url = settings.origin(sockets[0].getsockname()[1])
        keys = Keys(open_keys(settings))
        runtime = Runtime(
            settings, store_url, keys, sockets, bound, base_url, embedded, load_models(settings.ai_config)
        )
        if settings.workers == 1:
            event_loop.run(serve(runtime, alone=True))
            return runtime.exit_code
        return workers.supervise(runtime, serve, announce)
    finally:
        if embedded:
            embedded.stop()


def bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets; `localhost` is both loopback addresses, whatever the resolver says. Raises StartupError."""
    try:
        return bind_loopback(port) if host == "localhost" else bind_sockets(port, host)
    except OSError as error:
        raise StartupError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def bind_loopback(port: int) -> list[socket.socket]:
    """One port on 127.0.0.1 and, where the host has it, on ::1. Raises OSError, also when only one of the two is free:
    whoever has the other one would get what browsers send to localhost."""
    sockets = bind_sockets(port, "127.0.0.1")
    try:
        return sockets + bind_sockets(sockets[0].getsockname()[1], "::1")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:  # a host without IPv6
            return sockets
        sockets[0].close()
        if port:
            raise
    return bind_loopback(0)


async def serve(runtime: Runtime, *, alone: bool) -> None:
    """Serves until a signal, then lets running requests finish. `alone`: no supervisor seeds and announces."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = runtime.settings
    async with open_store(runtime.settings, runtime.store_url, runtime.keys) as store, store.apps.following():
        demo = await runtime.prepare(store) if alone else None
        site = Site(
            store,
            runtime.base_url,
            signup=settings.signup,
            trusted_proxies=settings.trusted_proxies,
            max_body=settings.max_body,
            session_lifetime=settings.session_lifetime,
            max_ai_request=settings.ai_request_size,
            models=runtime.models,
            # A settlement may take two calls of the store, the second where the answer to the first was lost.
            hold_margin=2 * settings.redis_timeout + HOLD_MARGIN_SECONDS,
        )
        application = make_application(site)
        server = make_server(application, settings)
        server.add_sockets(runtime.sockets)
        watch = asyncio.ensure_future(watch_over(runtime, store, stop))
        if alone:
            announce(runtime, demo)
        try:
            await stop.wait()
            server.stop()
            await drain(application, settings.drain_timeout)
            await server.close_all_connections()
            # Streams that are cut now settle what they have delivered.
            await drain(application, settings.redis_timeout)
        finally:
            watch.cancel()
            await site.models.close()
            if demo:
                demo.stop()
            for number in (signal.SIGTERM, signal.SIGINT):  # a second one must not meet a loop that is closing
                asyncio.get_running_loop().remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)


def make_server(application: Latchkey, settings: Settings) -> HTTPServer:
    """The HTTP server, not listening yet."""
    options = {
        "max_body_size": max(
            ABSURD_BODIES * settings.max_body, 2 * settings.document_size, 2 * settings.ai_request_size
        ),
        "body_timeout": BODY_SECONDS,
        "idle_connection_timeout": IDLE_SECONDS,
    }
    if settings.http == "tornado":
        return HTTPServer(application, **options)
    connections = room_for(settings.connections, OTHER_FILES + settings.redis_connections)
    if connections < settings.connections:
        log.warning("the limit of open files leaves room for %d connections", connections)
    return FrontServer(application, connections=connections, head_timeout=HEAD_SECONDS, **options)


async def drain(application: Latchkey, seconds: float) -> None:
    """Waits until nothing is at work any more, at most so long."""
    deadline = asyncio.get_running_loop().time() + seconds
    while (application.in_flight or application.site.tasks) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.02)


async def watch_over(runtime: Runtime, store: Store, stop: asyncio.Event) -> None:
    """Takes up a changed key file, tells the store hourly which key seals, ends with its store or its supervisor."""
    next_check = asyncio.get_running_loop().time() + KEY_CHECK_SECONDS
    while True:
        await asyncio.sleep(KEY_FILE_SECONDS)
        if runtime.supervisor is not None and os.getppid() != runtime.supervisor:
            stop.set()
        if runtime.supervisor is None and runtime.embedded and not runtime.embedded.alive():
            log.critical("the embedded store ended; see the log in the data directory")
            runtime.exit_code = 1
            stop.set()
        changed = False
        try:
            changed = runtime.keys.reload()
        except KeyRingError as error:
            log.error("secret keys: %s", error)
        # Noted in any case: a server that cannot read the new file goes on sealing with the old key.
        if changed or asyncio.get_running_loop().time() >= next_check:
            next_check = asyncio.get_running_loop().time() + KEY_CHECK_SECONDS
            try:
                await store.key_state.check(runtime.keys.ring)
            except (StartupError, StoreError) as error:
                log.error("secret keys: %s", error)


def announce(runtime: Runtime, demo: Demo | None) -> None:
    """The one line that says the server listens, and what to click in the demo."""
    log.info("bound to %s", runtime.bound)
    print(f"Latchkey listening on {runtime.base_url}", flush=True)
    if demo:
        print(demo.instructions(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
