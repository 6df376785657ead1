"""`app registration-token`: tokens with which apps may register themselves."""

from __future__ import annotations

import re
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

from cli.commands.context import SHOWN_ONCE, Context
from cli.terminal.outcome import CommandResult
from store.apps.self_registered.initial_tokens import InitialToken
from store.clock import wall
from store.moments import at, timestamp
from store.operations import LATEST

COLUMNS = ("id", "name", "uses", "expiresAt", "createdAt")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_LONGEST = timedelta(days=3650)


async def create_token(context: Context, args: Namespace) -> CommandResult:
    """Makes a token. Raises Refused, ValueError."""
    ends = ends_at(args.expires) if args.expires is not None else None
    made, token = await context.store.initial_tokens.create(
        args.uses, 0 if ends is None else round(ends.timestamp() * 1000), args.name
    )
    off = context.settings.dynamic_registration == "off"
    hint = " No app can use it yet: --dynamic-registration is off." if off else ""
    return CommandResult({**_record(made), "token": token}, note=f"The token {SHOWN_ONCE}{hint}")


async def list_tokens(context: Context, args: Namespace) -> CommandResult:
    """Lists the live tokens, oldest first. Raises StoreError."""
    return CommandResult({"tokens": [_record(one) for one in await context.store.initial_tokens.list()]}, COLUMNS)


async def revoke_token(context: Context, args: Namespace) -> CommandResult:
    """Ends a token. Apps that registered with it stay. Raises Refused("not_found")."""
    await context.store.initial_tokens.revoke(args.id)
    return CommandResult({"id": args.id, "revoked": True})


def ends_at(text: str) -> datetime:
    """The moment of a date, a time (UTC), or a while from now. Raises ValueError, also for one that has passed."""
    now = wall.utc()
    if found := re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text, re.ASCII):
        return now + min(timedelta(**{_UNITS[found[2]]: int(found[1])}), _LONGEST)
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if moment >= LATEST:
            raise ValueError(text)
    except ValueError:
        raise ValueError("--expires takes a date, a time, or a while such as 12h or 30d.") from None
    if moment <= now:
        raise ValueError("--expires has passed.")
    return moment


def _record(token: InitialToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "uses": token.uses,
        "expiresAt": timestamp(at(token.ends_at)) if token.ends_at else None,
        "createdAt": timestamp(at(token.made_at)),
    }
