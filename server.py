"""The server: settings, store, application, listen, drain.

`python server.py --help` names every setting; `docs/settings.md` explains them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import event_loop
import garbage
import workers
from demo import Demo
from handlers import make_application
from handlers.ops import make_ops_application
from handlers.places import Places
from handlers.site import DOWNLOADS_EACH, Site
from listening import Listening, bind, raise_open_files
from opening import open_keys, open_mailer, open_store
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
SCATTER_SECONDS = 2.0
LEAST_MAIL_SECONDS = 1.0


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
    ops_sockets: list[socket.socket] = field(default_factory=list)
    """Of the operations port; none where it is off."""

    async def prepare(self, store: Store) -> Demo | None:
        """Goes on with deletions that broke off; seeds what is missing; starts the demo app where it was asked for."""
        await store.people.finish_deletions()
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
    raise_open_files()
    # Until there is something to drain, SIGTERM ends the start as Ctrl-C does, and the store with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sockets = bind(settings.host, settings.port)
    ops_sockets = bind(settings.ops_host, settings.ops_port) if settings.ops_port is not None else []
    embedded = EmbeddedStore.start(settings.data_dir, "server") if settings.redis_url == "embedded" else None
    try:
        store_url = unix_url(embedded.socket_path) if embedded else settings.redis_url
        bound = ", ".join("{} port {}".format(*one.getsockname()[:2]) for one in sockets)
        base_url = settings.origin(sockets[0].getsockname()[1])
        keys = Keys(open_keys(settings))
        models = load_models(settings.ai_config)
        runtime = Runtime(
            settings, store_url, keys, sockets, bound, base_url, embedded, models, ops_sockets=ops_sockets
        )
        if settings.workers == 1:
            event_loop.run(serve(runtime, alone=True))
            return runtime.exit_code
        return workers.supervise(runtime, serve, announce)
    finally:
        if embedded:
            embedded.stop()


async def serve(runtime: Runtime, *, alone: bool) -> None:
    """Serves until a signal, then lets running requests finish. `alone`: no supervisor seeds and announces."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = runtime.settings
    opened = open_store(runtime.settings, runtime.store_url, runtime.keys)
    async with opened as store, store.apps.following(), store.numbers.flushing():
        demo = await runtime.prepare(store) if alone else None
        site = Site(
            store,
            runtime.base_url,
            signup=settings.signup,
            app_registration=settings.app_registration,
            apps_per_person=settings.apps_per_person,
            trusted_proxies=settings.trusted_proxies,
            max_body=settings.max_body,
            session_lifetime=settings.session_lifetime,
            max_ai_request=settings.ai_request_size,
            models=runtime.models,
            # A settlement may take two calls of the store, the second where the answer to the first was lost.
            hold_margin=2 * settings.call_seconds + HOLD_MARGIN_SECONDS,
            scatter=SCATTER_SECONDS,
            mail=open_mailer(settings, runtime.base_url),
            ai_calls=Places(settings.ai_calls),
            downloads=Places(settings.downloads, DOWNLOADS_EACH),
        )
        bodies = ABSURD_BODIES * settings.max_body
        largest = max(bodies, 2 * settings.document_size, 2 * settings.ai_request_size)
        listening = [Listening.start(make_application(site), runtime.sockets, settings, largest)]
        if runtime.ops_sockets:
            operations = make_ops_application(site, settings.operator_keys)
            listening.append(Listening.start(operations, runtime.ops_sockets, settings, bodies))
        watch = asyncio.ensure_future(watch_over(runtime, store, stop))
        garbage.settle()
        if alone:
            announce(runtime, demo)
        try:
            await stop.wait()
            for one in listening:
                one.server.stop()
            ends = asyncio.get_running_loop().time() + settings.drain_timeout
            await drain(listening, settings.drain_timeout)
            for one in listening:
                await one.server.close_all_connections()
            for end in tuple(site.endings):
                end()
            # Streams that are cut now settle what they have delivered.
            await drain(listening, settings.call_seconds)
            await site.mail.close(max(LEAST_MAIL_SECONDS, ends - asyncio.get_running_loop().time()))
        finally:
            watch.cancel()
            await site.models.close()
            if demo:
                demo.stop()
            for number in (signal.SIGTERM, signal.SIGINT):  # a second one must not meet a loop that is closing
                asyncio.get_running_loop().remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)


async def drain(listening: Sequence[Listening], seconds: float) -> None:
    """Waits until nothing is at work any more, at most so long."""
    deadline = asyncio.get_running_loop().time() + seconds
    while any(one.at_work() for one in listening) and asyncio.get_running_loop().time() < deadline:
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
    if runtime.ops_sockets:
        host, port = runtime.settings.ops_host, runtime.ops_sockets[0].getsockname()[1]
        log.info("operations on http://%s:%d", f"[{host}]" if ":" in host else host, port)
    # In one piece: who waits for the line finds the rest with it.
    said = f"Latchkey listening on {runtime.base_url}"
    print(f"{said}\n{demo.instructions()}" if demo else said, flush=True)


if __name__ == "__main__":
    sys.exit(main())
