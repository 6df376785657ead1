"""What handlers know of the process that serves them, and the routes by which a path is looked up."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tornado.escape import url_unescape
from tornado.web import Application

from handlers.core.policy import NOWHERE
from handlers.core.site import Site
from observability.metrics.measures import Measures

log = logging.getLogger("latchkey.http")
overload_log = logging.getLogger("latchkey.overload")

MOST_PATH = 4096
"""Characters of a path, at most. The longest of ours has some 1,200, with every character as an escape."""


RESERVE = 4
"""The reserve is one in so many."""

RouteTarget = tuple[Any, dict[str, Any]]
"""A handler, and what it is initialized with."""


class ServerState(Application):
    """The Tornado application, as handlers see it. `site` is what they know of the server, `in_flight` the requests at
    work, of which there may be `bound`: `most`, and as many as stepped aside. What finishes something that was begun
    has `reserve` more. `literal` and `patterns` are its routes, those without and those with a pattern in them;
    `openapi` is the document that describes them. `draining`: the process is about to stop."""

    site: Site
    openapi: bytes = b""
    in_flight: int = 0
    bound: int = sys.maxsize
    most: int = sys.maxsize
    reserve: int = 0
    measures: Measures | None = None
    """Counts what is answered, where somebody reads it."""
    literal: Mapping[str, RouteTarget] = {}
    patterns: Sequence[tuple[re.Pattern[str], RouteTarget]] = ()
    files: frozenset[str] = frozenset()
    """The names of static files."""
    draining: bool = False
    proxy_warned: bool = False

    def warn_of_proxy(self) -> None:
        """Says once in a process that X-Forwarded-For came from a peer that is no trusted proxy: behind a proxy that is
        not named, all clients share the limits of one address. Whose address is said is not, as anybody can send it."""
        if not self.proxy_warned:
            self.proxy_warned = True
            log.warning(
                "ignored X-Forwarded-For from a peer that is no trusted proxy; if a proxy is in front of this server, "
                "name its address in trusted_proxies"
            )

    def admit(self, most: int) -> None:
        """From now on at most so many requests are at work at once; more are sent away."""
        # What has stepped aside made room, and takes it back when it ends.
        self.bound += most - self.most
        self.most, self.reserve = most, max(1, most // RESERVE)

    @cached_property
    def sent_away(self) -> SentAway:
        """Those who were sent away."""
        return SentAway()

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop. Asking for it costs a system call on Python 3.11."""
        return asyncio.get_running_loop()

    def target(self, path: str) -> tuple[RouteTarget | None, list[str | bytes]]:
        """The route of a path, and the parts of the path that its pattern names."""
        target = self.literal.get(path)
        if target is not None:
            return target, []
        if len(path) > MOST_PATH:
            return None, []
        for pattern, candidate in self.patterns:
            match = pattern.fullmatch(path)
            if match:
                return candidate, [_plain(part) for part in match.groups()]
        return None, []


class SentAway:
    """Counts those who were sent away, and logs their number once a second."""

    def __init__(self) -> None:
        self.total = 0
        self._told = 0
        self._waiting = False

    def count(self, application: ServerState, target: RouteTarget | None) -> None:
        """One more, who asked for a route or for nothing that there is."""
        self.total += 1
        application.site.measures.unavailable((target[1]["policy"] if target else NOWHERE).route, "requests")
        if not self._waiting:
            self._waiting = True
            application.loop.call_later(1.0, self._tell, application)

    def _tell(self, application: ServerState) -> None:
        overload_log.warning(
            "overloaded: %d requests were sent away within a second, %d are at work",
            self.total - self._told,
            application.in_flight,
        )
        self._told, self._waiting = self.total, False


def _plain(part: str) -> str | bytes:
    """A part of a path, without its percent signs. Tornado takes text as it is, and reads bytes as UTF-8."""
    return url_unescape(part, encoding=None, plus=False) if "%" in part else part
