"""The server: settings, store, application, listen, drain.

`python server.py --help` lists the settings; `docs/settings.md` explains them. `runtime/processes.py` has what happens
between start and end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial

from cli.terminal.streams import reopen
from handlers.core.brand.brand import Brand
from handlers.core.brand.reading import BrandError, load_brand
from handlers.core.words.languages import shipped
from observability import logs
from observability.metrics.memory import MetricsMemory
from outbound.ai.config import ConfigError, load_models
from outbound.assertion_issuers import IssuersError, load_issuers
from outbound.identity.config import ProvidersError, load_providers
from runtime import event_loop, notify, workers
from runtime.arguments import load
from runtime.early_stop import EarlyStop
from runtime.hangup import Hangup
from runtime.listening import bind, raise_open_files
from runtime.mcp_wiring import load_sdk
from runtime.process_state import Runtime
from runtime.processes import serve
from runtime.socket_activation import check_passed, passed_sockets
from runtime.wiring import open_keys
from settings.declared import Settings
from settings.types import SettingsError
from store.crypto.keyring import KeyRingError, Keys
from store.engine.connect import unix_url
from store.engine.embedded import EmbeddedStore
from store.engine.memory import default_memory, limit_of
from store.errors import StartupError, StoreError
from store.oauth.assertions.issuers import TrustedIssuers


def main(argv: Sequence[str] | None = None, program: str = "server.py") -> int:
    """Runs until SIGTERM or SIGINT. Returns the exit status: 2 for bad settings, 1 for a failed start. `program` is the
    command as typed, for help and errors."""
    argv = sys.argv[1:] if argv is None else argv
    reopen()
    reread = partial(load, argv, os.environ, program=program)
    try:
        settings = reread()
        settings.require_keys()
        brand, issuers = load_brand(settings.brand), load_issuers(settings.assertion_issuers)
    except (SettingsError, BrandError, IssuersError) as error:
        typed = program.removesuffix(" serve")  # `latchkey serve` suggests `latchkey keys generate`
        said = str(error) if typed == program else str(error).replace("manage.py", typed)
        logs.configure("info", logs.wanted(argv, os.environ))
        logs.complain(SettingsError(said))
        return 2
    logs.configure(settings.log_level, settings.log_format)
    notify.keep_address()
    try:
        return run(settings, brand, issuers, reread)
    except (StartupError, StoreError, KeyRingError, ConfigError, ProvidersError, OSError) as error:
        logs.complain(error)
        return 1
    except KeyboardInterrupt:
        return 130


def run(settings: Settings, brand: Brand, issuers: TrustedIssuers, reread: Callable[[], Settings]) -> int:
    """Loads the words of pages, binds the sockets or takes those that systemd passes, starts an embedded store, serves.
    Raises StartupError, KeyRingError, OSError."""
    shipped()
    load_sdk(settings)
    early = EarlyStop()
    hangup = Hangup(early)
    raise_open_files()
    early.take()
    signal.signal(signal.SIGHUP, hangup.note)
    passed = passed_sockets(os.environ)
    check_passed(passed, settings)
    sockets = passed or bind(settings.host, settings.port, shared=settings.reuse_port)
    ops_sockets, metrics_sockets = (
        bind(host, port, shared=settings.reuse_port, option=option) if port is not None else []
        for host, port, option in (
            (settings.ops_host, settings.ops_port, "--ops-port"),
            (settings.metrics_host, settings.metrics_port, "--metrics-port"),
        )
    )
    embedded = start_embedded(settings, early) if settings.redis_url == "embedded" else None
    try:
        early.check()
        runtime = Runtime(
            settings,
            unix_url(embedded.socket_path) if embedded else settings.redis_url,
            Keys(open_keys(settings)),
            sockets,
            ", ".join("{} port {}".format(*one.getsockname()[:2]) for one in sockets),
            settings.origin(sockets[0].getsockname()[1]),
            embedded,
            load_models(settings.ai_config),
            brand,
            issuers,
            ops_sockets=ops_sockets,
            metrics_sockets=metrics_sockets,
            memory=MetricsMemory(settings.workers),
            passed=bool(passed),
            reread=reread,
            providers=load_providers(settings.identity_config),
            early=early,
            hangup=hangup,
        )
        if settings.workers == 1:
            event_loop.run(serve(runtime, alone=True))
            return 0
        return workers.supervise(runtime, serve)
    finally:
        if embedded:
            # A closed event loop has given its signals back: their default would end the process before the store.
            early.take()
            embedded.stop()


def start_embedded(settings: Settings, early: EarlyStop) -> EmbeddedStore:
    """The embedded store, with its memory limit. Raises StartupError, KeyboardInterrupt."""
    limit = limit_of(settings.store_memory or default_memory())
    return EmbeddedStore.start(settings.data_dir, "server", limit=limit, check=early.check)


if __name__ == "__main__":
    sys.exit(main())
