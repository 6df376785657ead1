"""`audit --follow --server`: prints the security events of a server elsewhere as they come."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cli.commands.audit import BEFORE, filters_of, hung_up, moment, print_record
from cli.remote.client import RemoteServer, ServerUnreachable
from store.moments import at, timestamp
from store.refused import Refused, reason_of

POLL_SECONDS: Final = 1.0
"""The pause before the next question when there was no more."""
FIRST_PAUSE: Final = 1.0
"""The pause after a question that failed; it doubles up to:"""
LONGEST_PAUSE: Final = 30.0
LONGEST_ASKED: Final = 3600
"""The longest pause that a server may ask for."""
PASSING: Final = ("rate_limited", "temporarily_unavailable")
"""Refusals after which the same question may succeed."""
LOOK_SECONDS: Final = 0.1
"""The pause between two looks at the pipe meanwhile."""
SEEN: Final = 5_000
"""Remembered ids, to recognise events that come twice."""


def follow_events(server: RemoteServer, args: Namespace) -> None:
    """Prints events until the reader of the pipe is gone. Raises Refused, ValueError, and ServerUnreachable if the
    first question fails."""
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
        more = page.get("more", bool(page["items"]))  # a server of an earlier release doesn't say
        if not _waited(0 if more else POLL_SECONDS):
            return
        page = _answer(partial(server.get, "/audit", **filters, since=since, follow="true", cursor=page["nextCursor"]))
        if page is None:
            return


def _answer(ask: Callable[[], Any]) -> Any:
    """The server's answer, as soon as there is one; None if nobody reads any more. Raises Refused if the question is
    refused for good."""
    pause, said = FIRST_PAUSE, ""
    while True:
        try:
            answer = ask()
        except (Refused, ServerUnreachable) as error:
            if isinstance(error, Refused) and error.code not in PASSING:
                raise
            reason = reason_of(error)
            if reason != said:
                print(f"latchkey: {reason.rstrip('.')}. Retrying.", file=sys.stderr, flush=True)
                said = reason
            asked = min(error.retry_after or 0, LONGEST_ASKED)
            if not _waited(asked or pause):
                return None
            pause = min(2 * pause, LONGEST_PAUSE)
        else:
            if said:
                print("latchkey: the server answers again.", file=sys.stderr, flush=True)
            return answer


def _waited(seconds: float) -> bool:
    """Waits before the next question. Returns whether somebody still reads."""
    ends = time.monotonic() + seconds
    while not hung_up():
        left = ends - time.monotonic()
        if left <= 0:
            return True
        time.sleep(min(LOOK_SECONDS, left))
    return False
