"""Calls about the security log."""

from __future__ import annotations

from contextlib import aclosing

from store.accounts.audit.export_turn import Exported
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.audit.security_reading import SOURCES
from tests.support.calls.prepared import Call, call, drained
from tests.support.store.world import World


@call("activity_figures.count", "count_activity")
async def _(w: World) -> Call:
    return lambda: w.store.activity_figures.count(0, [AuditEvent("signed_in", "ok", "info", "person", "1")])


@call("security.flush", "append_trail", "count_activity")
async def _(w: World) -> Call:
    w.store.security.note("signed_in", person=w.user)
    return w.store.security.flush


@call("security_events.newest", "read_trail", "read_events")
async def _(w: World) -> Call:
    return lambda: w.store.security_events.newest(10)


@call("security_events.end", "read_trail", "read_events")
async def _(w: World) -> Call:
    return w.store.security_events.end


@call("security_events.follow", "read_trail", "read_events")
async def _(w: World) -> Call:
    async def first() -> AuditEvent | None:
        async with aclosing(w.store.security_events.follow("0-0")) as events:
            return await anext(events)

    return first


@call("security_events.after", "read_trail", "read_events")
async def _(w: World) -> Call:
    return lambda: w.store.security_events.after(("0-0",) * SOURCES)


@call("security_events.start", "read_trail", "read_events")
async def _(w: World) -> Call:
    return w.store.security_events.start


@call("security_events.came", "read_trail", "read_events")
async def _(w: World) -> Call:
    return lambda: w.store.security_events.came(("0-0",) * SOURCES)


@call("security_events.one", "read_trail", "read_events")
async def _(w: World) -> Call:
    return lambda: w.store.security_events.one("1-1")


@call("security_events.pieces", "read_trail", "read_events")
async def _(w: World) -> Call:
    return lambda: drained(w.store.security_events.pieces())


@call("recorded_events.drop")
async def _(w: World) -> Call:
    return lambda: w.store.recorded_events.drop([(w.user[:3], "a note")])


@call("recorded_events.sweep")
async def _(w: World) -> Call:
    return w.store.recorded_events.sweep


@call("activity_figures.days", "read_figures")
async def _(w: World) -> Call:
    return lambda: w.store.activity_figures.days(3)


@call("export_turns.hold", "hold_audit_export")
async def _(w: World) -> Call:
    return lambda: w.store.export_turns.hold(Exported(("0-0",) * SOURCES, 1))
