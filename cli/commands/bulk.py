"""`user bulk`: one act on many people, after a dry run."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from store.operators.bulk_acts import MOST_PEOPLE, BulkOrder
from store.operators.records import bulk_record, plan_record
from store.operators.roles import OperatorActor

COLUMNS = ("id", "reason")
MOST_FILE = 64 * MOST_PEOPLE
STANDARD_INPUT = "-"
BY_COMMAND = OperatorActor("command", "here", "admin")
"""Whoever may run commands on the server's machine may do everything."""


async def bulk_users(context: Context, args: Namespace) -> CommandResult:
    """Says what an act would do, or with `--token` does it. Raises Refused, ValueError, OSError."""
    acts = context.store.bulk_acts
    suspension = args.reason, args.note, args.until
    order = BulkOrder(args.act, users_in(args.file), args.query, args.status, *suspension, args.wait)
    if not args.token:
        return told(plan_record(await acts.plan(BY_COMMAND, order)))
    acts.check_same((await acts.show(args.token)).order, order)
    job = await acts.begin(BY_COMMAND, args.token)
    if job:
        from cli.operator_mail import mailing  # what mails need takes longer to load than most commands run
        from handlers.admin import operator_mails

        async with mailing(context) as site:
            await acts.run(BY_COMMAND, job, operator_mails.telling(site))
    return told(bulk_record(await acts.show(args.token)))


def told(record: dict[str, Any]) -> CommandResult:
    """The result of a dry run or of the act."""
    notes = [f"Nobody was changed. Repeat the command with --token {record['token']}."] if record["dryRun"] else []
    if notes and record["act"] == "delete" and not record["waitDays"]:
        notes.append("They are deleted at once. A dry run with --wait 7 leaves days in which you can cancel.")
    return CommandResult(record, COLUMNS, note="\n".join(notes))


def users_in(file: str | None) -> list[str]:
    """The user ids in a file, one a line; none without a file. Raises OSError, ValueError."""
    if file is None:
        return []
    if file == STANDARD_INPUT:
        text = sys.stdin.read(MOST_FILE)
    else:
        with Path(file).open(encoding="utf-8") as opened:
            text = opened.read(MOST_FILE)
    found = text.split()
    if not found:
        raise ValueError("The file names nobody: it has a user id (`sub`) on each line.")
    return found
