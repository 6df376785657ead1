"""The server: settings, store, application, listen, drain.

`python server.py --help` names every setting; `docs/settings.md` explains them. What goes on between start and end
stands in `serving/process.py`.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import logs
from demo import Demo
from metrics.memory import Memory
from opening import open_keys
from outbound.config import ConfigError, load_models
from outbound.models import Models
from serving import event_loop, notify, workers
from serving.handover import Handover
from serving.listening import bind, raise_open_files
from serving.process import serve
from serving.reloading import Hangup
from settings import Settings, SettingsError, load
from store.connect import unix_url
from store.embedded import EmbeddedStore
from store.errors import StartupError, StoreError
from store.keyring import KeyRingError, Keys
from store.opened import Store
from store.room import default_memory, limit_of
from store.seed import seed
from terminal.progress import Bar
from terminal.streams import reopen

log = logging.getLogger("latchkey")


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
    metrics_sockets: list[socket.socket] = field(default_factory=list)
    """Of the metrics port; none where it is off."""
    memory: Memory = field(default_factory=Memory)
    """Where all workers count, each at the place of its number."""
    number: int = 0
    """Of this process among the workers."""
    reread: Callable[[], Settings] = Settings
    """Reads the settings anew, as they were read first. Raises SettingsError."""
    hangup: Hangup = field(default_factory=Hangup)
    handover: Handover = field(default_factory=Handover)
    """What a supervisor gives to its workers when it has read the settings anew."""

    async def prepare(self, store: Store) -> Demo | None:
        """Goes on with deletions that broke off; seeds what is missing; starts the demo app where it was asked for."""
        await store.people.finish_deletions()
        if self.settings.seed:
            with Bar(sys.stderr) as bar:
                await seed(store, self.settings.seed, told=bar.count)
        if self.settings.demo:
            return await Demo.start(store, self.base_url)
        await Demo.put_away(store)
        return None

    def announce(self, demo: Demo | None) -> None:
        """The one line that says the server listens, and what to click in the demo."""
        log.info("bound to %s", self.bound)
        if self.ops_sockets:
            log.info("operations on %s", _address(self.settings.ops_host, self.ops_sockets))
        if self.metrics_sockets:
            log.info("metrics on %s/metrics", _address(self.settings.metrics_host, self.metrics_sockets))
        logs.announce(logs.Listens(self.base_url, demo.instructions() if demo else ""))
        notify.notify_ready()


def main(argv: Sequence[str] | None = None, program: str = "server.py") -> int:
    """Runs until SIGTERM or SIGINT. Returns the exit status: 2 for settings, 1 for a start that failed. `program` is
    what was typed, for help and complaints."""
    argv = sys.argv[1:] if argv is None else argv
    reopen()
    reread = partial(load, argv, os.environ, program=program)
    try:
        settings = reread()
        settings.require_keys()
    except SettingsError as error:
        typed = program.removesuffix(" serve")  # `latchkey serve` has `latchkey keys generate` beside it
        said = str(error) if typed == program else str(error).replace("manage.py", typed)
        logs.configure("info", logs.wanted(argv, os.environ))
        logs.complain(SettingsError(said))
        return 2
    logs.configure(settings.log_level, settings.log_format)
    notify.keep_address()
    try:
        return run(settings, reread)
    except (StartupError, StoreError, KeyRingError, ConfigError, OSError) as error:
        logs.complain(error)
        return 1
    except KeyboardInterrupt:
        return 130


def run(settings: Settings, reread: Callable[[], Settings]) -> int:
    """Binds, starts the store where it is ours, serves. Raises StartupError, KeyRingError, OSError."""
    hangup = Hangup()
    raise_open_files()
    # Until there is something to drain, SIGTERM ends the start as Ctrl-C does, and the store with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, hangup.note)
    sockets, ops_sockets, metrics_sockets = (
        bind(host, port, shared=settings.reuse_port) if port is not None else []
        for host, port in (
            (settings.host, settings.port),
            (settings.ops_host, settings.ops_port),
            (settings.metrics_host, settings.metrics_port),
        )
    )
    embedded = start_embedded(settings) if settings.redis_url == "embedded" else None
    try:
        runtime = Runtime(
            settings,
            unix_url(embedded.socket_path) if embedded else settings.redis_url,
            Keys(open_keys(settings)),
            sockets,
            ", ".join("{} port {}".format(*one.getsockname()[:2]) for one in sockets),
            settings.origin(sockets[0].getsockname()[1]),
            embedded,
            load_models(settings.ai_config),
            ops_sockets=ops_sockets,
            metrics_sockets=metrics_sockets,
            memory=Memory(settings.workers),
            reread=reread,
            hangup=hangup,
        )
        if settings.workers == 1:
            event_loop.run(serve(runtime, alone=True))
            return runtime.exit_code
        return workers.supervise(runtime, serve)
    finally:
        if embedded:
            embedded.stop()


def start_embedded(settings: Settings) -> EmbeddedStore:
    """The private store, which takes no more memory than it may. Raises StartupError."""
    return EmbeddedStore.start(settings.data_dir, "server", limit=limit_of(settings.store_memory or default_memory()))


def _address(host: str, sockets: Sequence[socket.socket]) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{sockets[0].getsockname()[1]}"


if __name__ == "__main__":
    sys.exit(main())
