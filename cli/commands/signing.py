"""`manage.py keys signing`: the keys that sign tokens for others."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from store.crypto.jose.private import OURS
from store.crypto.signing_store import ListedKey
from store.moments import at, timestamp
from store.refused import Refused

COLUMNS = ("kid", "alg", "state", "signsFrom", "until")


async def list_keys(context: Context, args: Namespace) -> CommandResult:
    """Lists the signing keys, oldest first. Raises StoreError."""
    return CommandResult({"keys": [_record(one) for one in await context.store.signing_store.listed()]}, COLUMNS)


async def rotate_keys(context: Context, args: Namespace) -> CommandResult:
    """Publishes successors of the keys that sign. Raises Refused, StoreError."""
    kept = context.store.signing_store
    used = {one.row.algorithm for one in await kept.listed() if one.row.private}
    rotated = [
        await kept.rotate(one, at_once=args.now) for one in OURS if one == args.alg or (not args.alg and one in used)
    ]
    if not rotated:
        raise Refused("invalid_request", "No key has been needed yet. With --alg one is made now.")
    made = [_record(one) for one, changed in rotated if changed]
    if not made:
        raise Refused("invalid_request", "Successors are published already and wait. With --now they sign at once.")
    if args.now:
        note = "Whoever has cached the old set reads it again on meeting a new name, if their library does that."
    else:
        note = "A new key is published now and signs in a day."
    return CommandResult({"keys": made}, COLUMNS, note=note)


async def revoke_key(context: Context, args: Namespace) -> CommandResult:
    """Ends a key. Raises Refused, StoreError."""
    if not await context.store.signing_store.revoke(args.kid):
        raise Refused("not_found", f"There is no signing key {args.kid}.")
    note = (
        "No token that it signed is verified here any more. Others may have cached the key for some minutes. If no "
        "other key signs with its algorithm, the next need makes one."
    )
    return CommandResult({"kid": args.kid, "revoked": True}, note=note)


def _record(listed: ListedKey) -> dict[str, Any]:
    return {
        "kid": listed.row.kid,
        "alg": listed.row.algorithm,
        "state": listed.phase.value,
        "signsFrom": timestamp(at(listed.row.first_use)),
        "until": timestamp(at(listed.until)) if listed.until else None,
    }
