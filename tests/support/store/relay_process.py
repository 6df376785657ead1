"""A process that relays events to apps, or claims deliveries, on its own store: for a test to kill.

    python -m tests.support.store.relay_process URL KEYS WHAT

WHAT is `relay` (until killed), `die:SCRIPT` (relays, and is killed when that script is about to be sent), or `claim`
(claims and settles until nothing is due, and prints each delivery's id and attempt number; after the first claim it
waits for a line).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from store.crypto.keyring import KeyRing, Keys
from store.engine.connect import connect
from store.engine.script_source import own_scripts
from tests.support.store.lost_answers import store_on

READY = "ready"


async def everybody(client: str, event: str) -> bool:
    """Lets every app receive every event."""
    return True


async def main(url: str, ring: str, what: str) -> None:
    client: Any = await connect(url)
    store = store_on(client, Keys(KeyRing.parse(ring)))
    store.outbox.idle = 0 if what == "relay" else store.outbox.idle
    print(READY, flush=True)
    sys.stdin.readline()
    if what == "claim":
        waited = ""
        while claimed := await store.deliveries.claim(3, 60):
            for one in claimed:
                print(one.id, one.attempts, flush=True)
                await store.deliveries.settle(one.id, one.attempts, delivered=True, status=200)
            if not waited:
                waited = sys.stdin.readline()
        return
    if what.startswith("die:"):
        sha, send = own_scripts()[what.removeprefix("die:")].sha, client.evalsha

        async def fatal(digest: str, *words: Any) -> Any:
            if digest == sha:
                os.kill(os.getpid(), signal.SIGKILL)
            return await send(digest, *words)

        client.evalsha = fatal
    while True:
        await store.outbox.sweep(everybody)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
