"""`audit --follow --server`: prints the security events of a server elsewhere as they come."""

from __future__ import annotations

import time
from argparse import Namespace
from collections import deque
from typing import Any, Final

from cli.commands.audit import BEFORE, filters_of, hung_up, moment, print_record
from cli.remote.client import RemoteServer
from store.moments import at, timestamp

POLL_SECONDS: Final = 1.0
"""The pause before the next question when nothing came."""
LOOK_SECONDS: Final = 0.1
"""The pause between two looks at the pipe meanwhile."""
SEEN: Final = 5_000
"""Remembered ids, to recognise events that come twice."""


def follow_events(server: RemoteServer, args: Namespace) -> None:
    """Prints events until the reader of the pipe is gone. Raises Refused, ServerUnreachable, ValueError."""
    filters, as_json = filters_of(args), getattr(args, "json", False)
    seen: deque[str] = deque(maxlen=SEEN)
    since = None if args.since is None else timestamp(at(moment(args.since)))

    def show(events: list[dict[str, Any]]) -> None:
        for event in events:
            if event["id"] not in seen:
                seen.append(event["id"])
                print_record(event, as_json=as_json)

    page = server.get("/audit", **filters, since=since, follow="true")
    if since is None:  # what came before the first position, and after it, is there twice
        show([*server.items("/audit", args.limit or BEFORE, **filters)][::-1])
    while True:
        show(page["items"])
        if not page["items"] and not _waited():
            return
        page = server.get("/audit", **filters, since=since, follow="true", cursor=page["nextCursor"])


def _waited() -> bool:
    """Waits before the next question. Returns whether somebody still reads."""
    ends = time.monotonic() + POLL_SECONDS
    while time.monotonic() < ends:
        if hung_up():
            return False
        time.sleep(LOOK_SECONDS)
    return True
