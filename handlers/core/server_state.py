"""The state that handlers share with the server process, and the look-up of routes."""

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
"""The longest path that is looked up, in characters. The longest of ours has some 1,200, fully escaped."""


RESERVE = 4
"""The reserve is the limit divided by this."""

RouteTarget = tuple[Any, dict[str, Any]]
"""A handler and its arguments of `initialize`."""


class ServerState(Application):
    """The Tornado application, as handlers see it. `site` has the server's settings and services. `in_flight` counts
    requests in progress, and `bound` limits them: `most` plus those that have stepped aside. Requests that finish a
    flow have `reserve` more. `literal` and `patterns` are the routes without and with a pattern; `openapi` is the
    document that describes them. `draining`: the process is stopping."""

    site: Site
    openapi: bytes = b""
    in_flight: int = 0
    bound: int = sys.maxsize
    most: int = sys.maxsize
    reserve: int = 0
    measures: Measures | None = None
    """Counts answers, if metrics are on."""
    literal: Mapping[str, RouteTarget] = {}
    patterns: Sequence[tuple[re.Pattern[str], RouteTarget]] = ()
    files: frozenset[str] = frozenset()
    """The names of static files."""
    draining: bool = False
    proxy_warned: bool = False

    def warn_of_proxy(self) -> None:
        """Warns once in a process that X-Forwarded-For came from a peer that is no trusted proxy: behind an unnamed
        proxy, all clients share the limits of one address. The warning omits the address, because anybody can send the
        header."""
        if not self.proxy_warned:
            self.proxy_warned = True
            log.warning(
                "ignored X-Forwarded-For from a peer that is no trusted proxy; if a proxy is in front of this server, "
                "name its address in trusted_proxies"
            )

    def admit(self, most: int) -> None:
        """Limits requests in progress to `most`; further requests are refused."""
        # Requests that have stepped aside made room, and take the room back when they end.
        self.bound += most - self.most
        self.most, self.reserve = most, max(1, most // RESERVE)

    @cached_property
    def sent_away(self) -> SentAway:
        """The counter of refused requests."""
        return SentAway()

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, cached: asking for it costs a system call on Python 3.11."""
        return asyncio.get_running_loop()

    def target(self, path: str) -> tuple[RouteTarget | None, list[str | bytes]]:
        """The route of a path, and the parts that its pattern captures."""
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
    """Counts refused requests, and logs their number once a second."""

    def __init__(self) -> None:
        self.total = 0
        self._logged = 0
        self._waiting = False

    def count(self, application: ServerState, target: RouteTarget | None) -> None:
        """Counts one more, for a route or an unknown path."""
        self.total += 1
        application.site.measures.unavailable((target[1]["policy"] if target else NOWHERE).route, "requests")
        if not self._waiting:
            self._waiting = True
            application.loop.call_later(1.0, self._tell, application)

    def _tell(self, application: ServerState) -> None:
        overload_log.warning(
            "overloaded: %d requests were sent away within a second, %d are at work",
            self.total - self._logged,
            application.in_flight,
        )
        self._logged, self._waiting = self.total, False


def _plain(part: str) -> str | bytes:
    """A part of a path, with its escapes decoded. Tornado passes text through, and decodes bytes as UTF-8."""
    return url_unescape(part, encoding=None, plus=False) if "%" in part else part
