"""`api`: the operator's commands about APIs, one function for each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cli.commands.context import OLDER_STAYS, ONLY_ONE, SHOWN_ONCE, Context
from cli.terminal.outcome import CommandResult
from store.apps.api_record import ApiRegistration, ApiScope, check_foreign
from store.apps.lookalikes import check_honest_name
from store.moments import at, timestamp
from store.names import check_app_name
from store.operations import person_named
from store.refused import Refused

OPTIONS = ("name", "scopes", "token_format", "signing_alg", "token_lifetime", "status")
COLUMNS = ("client_id", "identifier", "name", "status", "tokenFormat")
SCOPE_COLUMNS = ("name", "title", "care", "secondStep", "detail")


async def create_api(context: Context, args: Namespace) -> CommandResult:
    """Registers an API. Raises Refused, ValueError."""
    check_foreign(args.identifier, context.settings.base_url)
    fields = _fields(args) | await _owner(context, args)
    made, secret = await context.store.apis.create(ApiRegistration(args.identifier, **fields))
    await _tell_owner(context, made, "")
    return CommandResult({**_record(made), "client_secret": secret}, SCOPE_COLUMNS, f"The client_secret {SHOWN_ONCE}")


async def list_apis(context: Context, args: Namespace) -> CommandResult:
    """Lists all APIs, oldest first."""
    return CommandResult({"apis": [_record(api) for api in await context.store.apis.list()]}, COLUMNS)


async def show_api(context: Context, args: Namespace) -> CommandResult:
    """Shows one API. Raises Refused("not_found")."""
    return CommandResult(_record(await _found(context, args)), SCOPE_COLUMNS)


async def update_api(context: Context, args: Namespace) -> CommandResult:
    """Changes the given fields. Raises Refused, ValueError."""
    present = await _found(context, args)
    fields = _fields(args, present.scopes) | await _owner(context, args)
    if not fields:
        raise Refused("invalid_request", "Nothing to change is given.")
    changed = await context.store.apis.update(present.client_id, **fields)
    await _tell_owner(context, changed, present.owner)
    return CommandResult(_record(changed), SCOPE_COLUMNS)


async def rotate_secret(context: Context, args: Namespace) -> CommandResult:
    """Gives an API a new secret. Raises Refused("not_found")."""
    present = await _found(context, args)
    changed, secret = await context.store.apis.rotate_secret(present.client_id, drop_old=args.drop_old)
    old = ONLY_ONE if args.drop_old else OLDER_STAYS
    record = {"client_id": changed.client_id, "client_secret": secret}
    return CommandResult(record, note=f"The client_secret {SHOWN_ONCE} {old}")


async def delete_api(context: Context, args: Namespace) -> CommandResult:
    """Deletes an API. Raises Refused("not_found")."""
    client_id = (await _found(context, args)).client_id
    await context.store.apis.delete(client_id)
    return CommandResult({"client_id": client_id, "deleted": True})


async def _found(context: Context, args: Namespace) -> ApiRegistration:
    apis = context.store.apis
    api = await apis.at(args.api) if "://" in args.api else await apis.find(args.api)
    if api is None:
        raise Refused("not_found", "No such API.")
    return api


async def _owner(context: Context, args: Namespace) -> dict[str, Any]:
    """The owner in the options. Raises Refused("not_found"), ValueError."""
    if not hasattr(args, "owner"):
        return {}
    return {"owner": (await context.store.operator.find(person_named(args.owner), 1)).user if args.owner else ""}


async def _tell_owner(context: Context, api: ApiRegistration, before: str) -> None:
    if api.owner not in ("", before):
        await context.store.operator.note(api.owner, "api_given_by_operator", api.client_id)


def _fields(args: Namespace, present: Iterable[ApiScope] = ()) -> dict[str, Any]:
    fields = {option: getattr(args, option) for option in OPTIONS if hasattr(args, option)}
    if "name" in fields:
        fields["name"] = check_app_name(fields["name"])
        check_honest_name(fields["name"])
    if "scopes" in fields:
        pairs = (text.partition("=") for text in fields["scopes"])
        # The detail and the warning of a scope stay with its name.
        known = {scope.name: scope for scope in present}
        titled = (ApiScope(name, title.strip() or name) for name, _, title in pairs)
        present = [replace(known.get(scope.name, scope), title=scope.title) for scope in titled]
        fields["scopes"] = tuple(present)
    if any(hasattr(args, name) for name in ("detail", "care", "second_step")):
        fields["scopes"] = _described(args, present)
    return fields


def _described(args: Namespace, scopes: Iterable[ApiScope]) -> tuple[ApiScope, ...]:
    """The scopes with their details, warnings and demands. Raises ValueError for a name that no scope has."""
    details = {name: text.strip() for name, _, text in (given.partition("=") for given in getattr(args, "detail", ()))}
    care = frozenset(getattr(args, "care", ()))
    scopes = tuple(scopes)
    stepped = frozenset(filter(None, getattr(args, "second_step", ())))
    unknown = {*details, *care, *stepped} - {scope.name for scope in scopes}
    if unknown:
        raise ValueError(f"This API has no scope {min(unknown)[:64]}.")
    return tuple(
        replace(
            scope,
            detail=details.get(scope.name, scope.detail),
            care=scope.care or scope.name in care,
            second_step=scope.name in stepped if hasattr(args, "second_step") else scope.second_step,
        )
        for scope in scopes
    )


def _record(api: ApiRegistration) -> dict[str, Any]:
    return {**api.record(), "createdAt": timestamp(at(api.created_at))}
