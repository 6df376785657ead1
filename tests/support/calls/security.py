"""Calls about the security log."""

from __future__ import annotations

from contextlib import aclosing

from store.accounts.audit.logged_event import AuditEvent
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World


@call("security.flush", "append_events")
async def _(w: World) -> Call:
    w.store.security.note("signed_in", person=w.user)
    return w.store.security.flush


@call("security_events.newest", "read_events")
async def _(w: World) -> Call:
    return lambda: w.store.security_events.newest(10)


@call("security_events.end", "read_events")
async def _(w: World) -> Call:
    return w.store.security_events.end


@call("security_events.follow", "read_events")
async def _(w: World) -> Call:
    async def first() -> AuditEvent | None:
        async with aclosing(w.store.security_events.follow("0-0")) as events:  # type: ignore[type-var]
            return await anext(events)

    return first
