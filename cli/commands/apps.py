"""`app`: the operator's commands about apps, one function for each."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from cli.apps_parser import PURGED
from cli.commands.app_logos import given_logo
from cli.commands.context import OLDER_STAYS, ONLY_ONE, SHOWN_ONCE, SIGNING_ONCE, Context
from cli.terminal.outcome import CommandResult
from cli.terminal.progress import ProgressBar
from store.apps.client_keys import BY_KEY, BY_NOTHING, registered_keys
from store.apps.registration import Registration
from store.crypto.jose.jwk import LONGEST_SET
from store.moments import at, timestamp
from store.operators.app_acts import AppOrder
from store.refused import Refused
from store.wiring import Store

# The options of `app create` and `app update` have the names of the fields that they set. An omitted option is absent.
APP_OPTIONS = (
    *("name", "redirect_uris", "scopes", "public", "pkce_required", "hosted_storage", "homepage"),
    *(
        "refresh_retry_seconds",
        "refresh_lifetime_days",
        "iss_in_response",
        "status",
        "webhook_url",
        "webhook_events",
        "verified",
        "id_token_alg",
        "require_pushed",
        "post_logout_redirect_uris",
        "backchannel_logout_uri",
        "subject_type",
        "sector_uri",
        "dpop_required",
        "profile",
        "device_grant",
        "allowed_groups",
        "first_party",
        "second_step",
        "calls_per_minute",
        "introspections_per_minute",
        "spend_per_day",
        "suspended_reason",
    ),
)


async def create_app(context: Context, args: Namespace) -> CommandResult:
    """Registers an app. Raises Refused, ValueError."""
    order = await _order(context, args)
    made, secret, signing = await context.store.app_acts.create(
        order, context.settings.base_url, partial(_check_sector, context), args.client_id
    )
    shown = {name: value for name, value in (("client_secret", secret), ("webhook_secret", signing)) if value}
    notes = [f"The client_secret {SHOWN_ONCE}"] if secret else []
    notes += [f"The webhook_secret {SIGNING_ONCE}"] if signing else []
    return CommandResult({**_app(made), **shown}, note="\n".join(notes), words=_words(made))


async def list_apps(context: Context, args: Namespace) -> CommandResult:
    """Lists all apps, oldest first."""
    apps = [_app(registration) for registration in await context.store.apps.list()]
    return CommandResult({"apps": apps}, ("client_id", "name", "status", "scopes"))


async def show_app(context: Context, args: Namespace) -> CommandResult:
    """Shows one app with its figures: the approximate number of people connected, and its activity by day (UTC).
    `spent` is in micro-dollars. Raises Refused("not_found")."""
    registration = await find_app(context.store, args.client_id)
    figures = await context.store.app_stats.of(args.client_id)
    days = [
        {**asdict(day), "day": day.day.isoformat()}
        for day in figures.days
        if day.calls or day.spent or day.connected or day.disconnected
    ]
    columns = ("day", "calls", "limited", "spent", "connected", "disconnected")
    record = {**_app(registration), "people": figures.people, "days": days}
    return CommandResult(record, columns, words=_words(registration))


async def update_app(context: Context, args: Namespace) -> CommandResult:
    """Changes the given fields. Raises Refused, ValueError."""
    order = await _order(context, args)
    changed, _, signing = await context.store.app_acts.update(
        args.client_id, order, context.settings.base_url, partial(_check_sector, context)
    )
    if getattr(args, "status", None) == "disabled":
        await _tell_owners(context, changed)
    lacks_secret = changed.has_secret and not changed.secrets
    notes = ["It has no secret yet; `app rotate-secret` makes one."] if lacks_secret else []
    notes += [f"The webhook_secret {SIGNING_ONCE}"] if signing else []
    if order.owner and (stay := [one.user for one in changed.members if one.role == "owner"]):
        notes.append(f"Still owners too: {', '.join(stay)}. `app member remove` takes somebody out of the team.")
    record = {**_app(changed), **({"webhook_secret": signing} if signing else {})}
    return CommandResult(record, note="\n".join(notes), words=_words(changed))


async def rotate_secret(context: Context, args: Namespace) -> CommandResult:
    """Gives a confidential app a new secret. Raises Refused."""
    _, secret = await context.store.apps.rotate_secret(args.client_id, drop_old=args.drop_old)
    old = ONLY_ONE if args.drop_old else OLDER_STAYS
    record = {"client_id": args.client_id, "client_secret": secret}
    return CommandResult(record, note=f"The client_secret {SHOWN_ONCE} {old}")


async def delete_app(context: Context, args: Namespace) -> CommandResult:
    """Deletes an app. Its documents live 30 more days, or are deleted at once with `--purge`. Raises
    Refused("not_found")."""
    purge = args.documents == PURGED
    with ProgressBar(sys.stderr) as bar:
        bar.tell("waiting until every server has heard of it")
        await context.store.app_acts.delete(args.client_id, purge=purge, progress=bar.count)
    return CommandResult({"client_id": args.client_id, "deleted": True, "purged": purge})


async def find_app(store: Store, client_id: str) -> Registration:
    """The app with this client id. Raises Refused("not_found")."""
    found = await store.apps.find(client_id)
    if found is None:
        raise Refused("not_found", "No such app.")
    return found


async def _tell_owners(context: Context, app: Registration) -> None:
    """Mails the owners of an app that was disabled."""
    if app.owner:
        from cli.operator_mail import mailing  # what mails need takes longer to load than most commands run
        from handlers.admin import operator_mails

        async with mailing(context) as site:
            await operator_mails.app_suspended(site, app)


async def _order(context: Context, args: Namespace) -> AppOrder:
    """What the options say. Raises Refused, ValueError."""
    fields = {option: getattr(args, option) for option in APP_OPTIONS if hasattr(args, option)}
    fields |= _authentication(args)
    owner, logo = getattr(args, "owner", None), await given_logo(context.settings, args)
    return AppOrder(fields, owner, logo, args.any_name)


def _authentication(args: Namespace) -> dict[str, Any]:
    """How the app authenticates, and its keys. `--public` is short for `--auth-method none`. Raises ValueError."""
    fields: dict[str, Any] = {}
    method, public = getattr(args, "auth_method", None), getattr(args, "public", None)
    if method is not None:
        if public is not None and public != (method == BY_NOTHING):
            raise ValueError("--auth-method and --public contradict each other")
        fields |= {"public": method == BY_NOTHING, "private_key_jwt": method == BY_KEY}
    elif public:
        fields["private_key_jwt"] = False
    if hasattr(args, "jwks"):
        fields |= {"jwks": _read_keys(args.jwks) if args.jwks else "", "jwks_uri": ""}
    if hasattr(args, "jwks_uri"):
        fields |= {"jwks": "", "jwks_uri": args.jwks_uri}
    return fields


def _read_keys(file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            return registered_keys(opened.read(LONGEST_SET + 1))
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None


async def _check_sector(context: Context, uri: str, redirect_uris: tuple[str, ...]) -> None:
    """Checks that the list at the sector identifier URI has the app's redirect URIs. Raises ValueError."""
    from outbound.sector_files import check_sector  # aiohttp takes longer to load than most commands run
    from runtime.outbound_wiring import open_fetcher

    await check_sector(open_fetcher(context.settings), uri, redirect_uris)


def _app(registration: Registration) -> dict[str, Any]:
    return {**registration.record(), "createdAt": timestamp(at(registration.created_at))}


def _words(registration: Registration) -> dict[str, str]:
    """Shows no line for a list without members: it would look like a table without rows."""
    return {name: "" for name, value in registration.record().items() if value == []}
