"""A process that relays into the index of people on its own store: for a test to kill.

    python -m tests.support.directory.relay_process URL KEYS WHAT

WHAT is `relay` (until killed), `before:SCRIPT` (killed when that script is about to be sent) or `after:SCRIPT` (killed
when it has run).
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
SMALL = 6
"""Entries in a bucket, so that few people fill several."""


async def main(url: str, ring: str, what: str) -> None:
    client: Any = await connect(url)
    store = store_on(client, Keys(KeyRing.parse(ring)))
    store.directory_relay.sections.most = SMALL
    print(READY, flush=True)
    sys.stdin.readline()
    when, _, script = what.partition(":")
    if script:
        sha, send = own_scripts()[script].sha, client.evalsha

        async def fatal(digest: str, *words: Any) -> Any:
            if digest == sha and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            answer = await send(digest, *words)
            if digest == sha:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        client.evalsha = fatal
    while True:
        await store.directory_relay.sweep()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
