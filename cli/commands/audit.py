"""`audit`: shows, follows or exports the security log."""

from __future__ import annotations

import json
import re
import select
import sys
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any

from cli.commands.context import Context
from cli.commands.export import STANDARD_OUTPUT, target
from cli.terminal.outcome import CommandResult
from cli.terminal.parser import UsageError
from cli.terminal.tables import word
from settings.types import EMBEDDED
from store.accounts.audit.security_reading import EventFilter, TrailPosition
from store.clock import wall
from store.operators.event_filter import EVENT_FILTERS
from store.operators.records import event_record
from store.operators.trail_formats import exported
from store.refused import Refused
from store.security_events import EVENTS
from store.wiring import Store

SHOWN = 100
"""Events to show if the options give neither a number nor a time."""
MOST_SHOWN = 64
"""Characters of an unknown event's name in the refusal; no name is longer."""
BEFORE = 10
"""Earlier events to show before following."""
COLUMNS = ("at", "event", "result", "person", "by", "client_id", "address", "agent", "typed", "detail", "count")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


async def show_events(context: Context, args: Namespace) -> CommandResult:
    """Shows the newest events, oldest first. With `--follow`, prints new ones until interrupted. Raises Refused,
    ValueError."""
    if args.follow and context.settings.redis_url == EMBEDDED and not context.server_runs:
        # This command would lock the store, so that no server could start on it.
        raise Refused("invalid_request", "No server runs on this data directory, so nothing can follow.")
    wanted = await context.store.event_filters.of(**filters_of(args))
    since = None if args.since is None else moment(args.since)
    if args.follow:
        await _follow(context.store, args, since, wanted)
        return CommandResult({})
    most = args.limit or (SHOWN if since is None else None)
    found = await context.store.security_events.newest(most, since or 0, wanted)
    return CommandResult({"events": [event_record(event) for event in found]}, COLUMNS)


async def export_events(context: Context, args: Namespace) -> CommandResult:
    """Writes the events as a file, in bounded memory. Raises Refused, ValueError, OSError."""
    since, until = checked_bounds(args)
    wanted = await context.store.event_filters.of(**filters_of(args))
    size = 0
    with target(args.output) as file:
        async for piece in exported(context.store.security_events, args.format, since, until, wanted):
            file.write(piece)
            size += len(piece)
    return CommandResult({} if args.output == STANDARD_OUTPUT else {"bytes": size, "output": args.output})


def filters_of(args: Namespace) -> dict[str, str]:
    """The filters by the names that the management interface has for them, empty for any. Raises ValueError for an
    event of an unknown name."""
    given = [*args.events, *getattr(args, "more_events", ())]  # before the word `export`, and after it
    names = [name.strip() for some in given for name in some.split(",")]
    for name in names:
        if name not in EVENTS:
            near = get_close_matches(name[:MOST_SHOWN], EVENTS, 3)
            meant = f" Did you mean {' or '.join(near)}?" if near else " docs/operations.md lists them."
            raise ValueError(f"There is no event {name[:MOST_SHOWN]!r}.{meant}")
    filters = {name: getattr(args, name) or "" for name in EVENT_FILTERS if name != "event"}
    return {**filters, "event": ",".join(names)}


def checked_bounds(args: Namespace) -> tuple[int, int | None]:
    """Epoch milliseconds of `--since` and `--until` of an export. Raises UsageError for a flag that only `audit` has,
    Refused, ValueError."""
    if args.follow:
        raise UsageError("`audit export` ends with the newest event: for events as they come, `audit --follow --json`")
    if args.limit is not None:
        raise UsageError("`audit export` takes no --limit: bound it with --since and --until")
    if args.output == STANDARD_OUTPUT and getattr(args, "json", False):
        raise Refused("invalid_request", "--json and --output - both write to standard output; give a file.")
    return moment(args.since or "1970-01-01"), moment(args.until, "--until") if args.until else None


async def _follow(store: Store, args: Namespace, since: int | None, wanted: EventFilter) -> None:
    """Prints events until the reader of the pipe is gone."""
    events, as_json, shown = store.security_events, getattr(args, "json", False), set[str]()
    after: TrailPosition | str = f"{max(0, (since or 0) - 1)}-0"  # an entry is never older than its event
    if since is None:
        after = await events.end()
        for event in await events.newest(args.limit or BEFORE, wanted=wanted):
            shown.add(event.id)
            print_record(event_record(event), as_json=as_json)
    async for came in events.follow(after, since or 0, lambda event: event.id not in shown and wanted(event)):
        if came is not None:
            print_record(event_record(came), as_json=as_json)
        elif hung_up():
            return


def print_record(record: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints an event as a line at once."""
    known = (record[name] for name in COLUMNS if record[name] not in ("", 1))
    print(json.dumps(record) if as_json else "  ".join(map(word, known)), flush=True)


def moment(text: str, name: str = "--since") -> int:
    """Epoch milliseconds of a date, a time, or a duration ago: 2026-11-23, 2026-11-23T06:30, 15m. Raises ValueError."""
    if match := re.fullmatch(r"([0-9]{1,6})([smhd])", text, re.ASCII):
        found = wall.utc() - timedelta(**{_UNITS[match[2]]: int(match[1])})
    else:
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{name} takes a date, a time, or a while such as 15m, 2h or 7d.") from None
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
    return max(0, round(found.timestamp() * 1000))


def hung_up() -> bool:
    """Whether the reader of the pipe is gone. A write would find out only with the next event."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)  # poll always reports ends and errors
    except (OSError, ValueError):  # a test's stream, which is no file
        return False
    return any(state & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, state in poll.poll(0))
