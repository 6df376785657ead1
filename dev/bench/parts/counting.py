"""`server.py` with a metrics port; SIGUSR1 turns its counting off, SIGUSR2 on. Two processes of one program would
differ by as much as counting costs.

    python -m dev.bench.parts.counting [the flags of server.py]
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import server
from handlers.core.site import Site
from outbound.webhooks.poster import WebhookSender
from runtime import measuring, processes
from runtime.listening import Listening
from runtime.process_state import Runtime

OFF, ON = signal.SIGUSR1, signal.SIGUSR2


def measured(
    runtime: Runtime, site: Site, webhooks: WebhookSender, listening: list[Listening], *rest: Any, **named: Any
) -> asyncio.Future[None]:
    """As in runtime/measuring.py, with the signals."""
    applications = [one.application for one in listening]

    def count(on: bool) -> None:
        for application in applications:
            application.measures = site.measures if on else None
        site.store.observed_by(site.measures.took if on else None)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(OFF, count, False)
    loop.add_signal_handler(ON, count, True)
    return measuring.measured(runtime, site, webhooks, listening, *rest, **named)


if __name__ == "__main__":
    processes.measured = measured  # type: ignore[attr-defined]  # in its place, not offered to anybody else
    sys.exit(server.main())
