"""What a server does once at start, whatever the number of its processes."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Sequence

from cli.terminal.progress import ProgressBar
from observability import logs
from runtime import notify
from runtime.demo import Demo
from runtime.process_state import Runtime
from store.accounts.signin import passkey_thread
from store.seed.seeding import seed
from store.wiring import Store

log = logging.getLogger("latchkey")

STOPPING = "stopping: requests in progress are still answered"
STOPPED = "stopped"


async def prepare(runtime: Runtime, store: Store) -> Demo | None:
    """Loads what requests need, resumes interrupted deletions, seeds missing records, and starts the demo app if
    requested."""
    store.wire_all()
    tell_of_missing_keys(store)
    passkey_thread.load()
    await store.people.finish_deletions()
    if runtime.settings.seed:
        with ProgressBar(sys.stderr) as bar:
            await seed(store, runtime.settings.seed, base_url=runtime.base_url, progress=bar.count)
    if runtime.settings.demo:
        return await Demo.start(store, runtime.base_url)
    await Demo.put_away(store)
    return None


def tell_of_missing_keys(store: Store) -> None:
    """Logs an error for the keys that the last check of the keys missed: what they sealed can't be opened."""
    for key_id in store.key_state.missing:
        log.error(
            "secret keys: this store holds things that key %d sealed, and this server doesn't have that key: these "
            "authenticator apps, documents and tokens don't work. Give the server the keys that have it",
            key_id,
        )


def announce(runtime: Runtime, demo: Demo | None) -> None:
    """Logs the one line that says the server listens, and the demo's instructions."""
    log.info("bound to %s", runtime.bound)
    if runtime.ops_sockets:
        log.info("operations on %s", _address(runtime.settings.ops_host, runtime.ops_sockets))
    if runtime.metrics_sockets:
        log.info("metrics on %s/metrics", _address(runtime.settings.metrics_host, runtime.metrics_sockets))
    logs.announce(logs.Listens(runtime.base_url, demo.instructions() if demo else ""))
    notify.notify_ready()


def _address(host: str, sockets: Sequence[socket.socket]) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{sockets[0].getsockname()[1]}"
