"""`manage.py webhook`: an app's signing secret and deliveries."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from cli.commands.context import SIGNING_ONCE, Context
from cli.terminal.outcome import CommandResult
from store.moments import at, timestamp
from store.refused import Refused
from store.webhooks.deliveries import Delivery


async def rotate_secret(context: Context, args: Namespace) -> CommandResult:
    """Makes a new signing secret for an app's events. Raises Refused."""
    _, secret = await context.store.webhooks.rotate(args.client_id)
    record = {"client_id": args.client_id, "webhook_secret": secret}
    return CommandResult(record, note=f"The webhook_secret {SIGNING_ONCE} The one before it signs too, for 24 hours.")


async def list_deliveries(context: Context, args: Namespace) -> CommandResult:
    """Lists the newest events for an app, posted or waiting. Raises Refused("not_found")."""
    await _known(context, args.client_id)
    found = await context.store.deliveries.list(args.client_id, most=args.limit)
    columns = ("id", "type", "state", "attempts", "occurredAt", "lastStatus", "lastError")
    return CommandResult({"client_id": args.client_id, "deliveries": [_delivery(one) for one in found]}, columns)


async def replay(context: Context, args: Namespace) -> CommandResult:
    """Makes an event due again. A running server posts it. Raises Refused("not_found")."""
    await _known(context, args.client_id)
    if not await context.store.deliveries.replay(args.client_id, args.id):
        raise Refused("not_found", "There is no such delivery of this app, or it is being posted just now.")
    found = await context.store.deliveries.read(args.client_id, args.id)
    return CommandResult(_delivery(found) if found else {"id": args.id}, note="A server that runs posts it at once.")


async def _known(context: Context, client_id: str) -> None:
    if await context.store.apps.find(client_id) is None:
        raise Refused("not_found", "No such app.")


def _delivery(one: Delivery) -> dict[str, Any]:
    return {
        "id": one.id,
        "type": one.type,
        "sub": one.sub,
        "state": one.state,
        "attempts": one.attempts,
        "occurredAt": timestamp(at(one.occurred_at)),
        "lastStatus": "" if one.last_status is None else one.last_status,
        "lastError": one.last_error,
    }
