"""`app`: the operator's commands about apps, one function for each."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cli.apps_parser import PURGED
from cli.commands.app_logos import given_logo
from cli.commands.context import SHOWN_ONCE, SIGNING_ONCE, Context
from cli.terminal.outcome import CommandResult
from cli.terminal.progress import ProgressBar
from store.apps.api_apps import apis_of
from store.apps.apis import check_signed, resolve_scopes
from store.apps.client_ids import new_client_id
from store.apps.client_keys import BY_KEY, BY_NOTHING, check_jwks_uri, registered_keys
from store.apps.lookalikes import check_honest_name
from store.apps.owners.members import given_to
from store.apps.profiles import NONE, PROFILES
from store.apps.redirect_uris import InvalidRedirectURI, check_redirect_uri
from store.apps.registration import Registration
from store.apps.sectors import check_sector_uri
from store.crypto.jose.jwk import LONGEST_SET
from store.crypto.jose.private import OURS
from store.moments import at, timestamp
from store.names import check_app_name
from store.operations import person_named
from store.refused import Refused
from store.webhooks.event_types import chosen_types
from store.webhooks.urls import LOGOUT_URL, check_webhook_url, is_loopback_url
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
    ),
)


async def create_app(context: Context, args: Namespace) -> CommandResult:
    """Registers an app. Raises Refused, ValueError."""
    fields = _app_fields(context, args) | await _scopes(context, args) | _authentication(context, args)
    fields = {"device_grant": True} | _of_profile(fields, None) | fields
    uris = (*fields["redirect_uris"], *fields.get("post_logout_redirect_uris", ()))
    _check_redirect_uris(context, uris, fields.get("public", False))
    client_id = args.client_id if args.client_id is not None else new_client_id()
    if args.client_id is not None:
        await context.store.apps.check_free(client_id)
    checked = Registration(client_id, **fields)  # checked before the owner: nobody can own an invalid app
    await _check_apis(context.store, checked)
    await _check_sector(context, checked)
    logo = await given_logo(context.settings, args)
    fields |= await _given(context.store, client_id, args)
    begun, signing = context.store.webhooks.begun(Registration(client_id, **fields))
    registration, secret = await context.store.apps.create(begun, logo=logo or b"")
    shown = {name: value for name, value in (("client_secret", secret), ("webhook_secret", signing)) if value}
    notes = [f"The client_secret {SHOWN_ONCE}"] if secret else []
    notes += [f"The webhook_secret {SIGNING_ONCE}"] if signing else []
    return CommandResult({**_app(registration), **shown}, note="\n".join(notes), words=_words(registration))


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
    fields = _app_fields(context, args) | await _scopes(context, args) | _authentication(context, args)
    if not fields and not hasattr(args, "owner") and not hasattr(args, "logo_from"):
        raise Refused("invalid_request", "Nothing to change is given.")
    present = await find_app(context.store, args.client_id)
    fields = _of_profile(fields, present) | fields
    public = fields.get("public", present.public)
    uris = fields.get("redirect_uris", present.redirect_uris)
    back = fields.get("post_logout_redirect_uris", present.post_logout_redirect_uris)
    _check_redirect_uris(context, (*uris, *back), public)
    if public or fields.get("private_key_jwt", present.private_key_jwt):
        fields["secrets"] = ()
    if fields.get("verified") is False:
        fields["domain"] = ""
    changed = replace(present, **fields)
    changed.check_redirect_uris(present)
    await _check_apis(context.store, changed)
    if changed.redirect_uris != present.redirect_uris:
        await _check_sector(context, changed)
    logo = await given_logo(context.settings, args)
    owner = (await _given(context.store, args.client_id, args)).get("owner")
    url = fields.pop("webhook_url", None)

    def given(app: Registration) -> Registration:
        return given_to(app, owner) if owner else app

    changed, signing = (
        await context.store.apps.change(args.client_id, lambda app: replace(given(app), **fields), logo=logo),
        None,
    )
    if url is not None:
        changed, signing = await context.store.webhooks.set_url(args.client_id, url)
    lacks_secret = changed.has_secret and not changed.secrets
    notes = ["It has no secret yet; `app rotate-secret` makes one."] if lacks_secret else []
    notes += [f"The webhook_secret {SIGNING_ONCE}"] if signing else []
    record = {**_app(changed), **({"webhook_secret": signing} if signing else {})}
    return CommandResult(record, note="\n".join(notes), words=_words(changed))


async def rotate_secret(context: Context, args: Namespace) -> CommandResult:
    """Gives a confidential app a new secret. Raises Refused."""
    _, secret = await context.store.apps.rotate_secret(args.client_id, drop_old=args.drop_old)
    old = "No other secret is valid." if args.drop_old else "The one before it stays valid until the next rotation."
    record = {"client_id": args.client_id, "client_secret": secret}
    return CommandResult(record, note=f"The client_secret {SHOWN_ONCE} {old}")


async def delete_app(context: Context, args: Namespace) -> CommandResult:
    """Deletes an app. Its documents live 30 more days, or are deleted at once with `--purge`. Raises
    Refused("not_found")."""
    purge = args.documents == PURGED
    registration, _ = await context.store.apps.fresh(args.client_id)
    with ProgressBar(sys.stderr) as bar:
        await context.store.apps.begin_deletion(args.client_id, purge=purge)
        if registration and registration.owner:
            with suppress(Refused):  # the owner's account may be gone
                await context.store.operator.note(registration.owner, "own_app_deleted_by_operator", args.client_id)
        bar.tell("waiting until every server has heard of it")
        await context.store.apps.finish_deletion(args.client_id, bar.count, purge=purge)
    return CommandResult({"client_id": args.client_id, "deleted": True, "purged": purge})


async def _scopes(context: Context, args: Namespace) -> dict[str, Any]:
    """The scopes in the options: Latchkey's own and those of APIs. Raises UnknownScope, ValueError."""
    if not hasattr(args, "scopes"):
        return {}
    own, theirs = resolve_scopes(args.scopes, await context.store.apis.list())
    return {"scopes": own, "api_scopes": theirs, "owner_scopes": (), "member_scopes": ()}


async def find_app(store: Store, client_id: str) -> Registration:
    """The app with this client id. Raises Refused("not_found")."""
    found = await store.apps.find(client_id)
    if found is None:
        raise Refused("not_found", "No such app.")
    return found


async def _given(store: Store, client_id: str, args: Namespace) -> dict[str, Any]:
    """The new owner in the options, whose list then has the app. Raises Refused("not_found"), ValueError."""
    if not hasattr(args, "owner"):
        return {}
    person = await store.operator.find(person_named(args.owner), 1)
    await store.owned.give(person.user, client_id)
    return {"owner": person.user}


def _of_profile(fields: dict[str, Any], present: Registration | None) -> dict[str, Any]:
    """What a profile in the options brings along. It changes no present app's way to authenticate: that would end its
    secrets."""
    rules = PROFILES[fields.get("profile", NONE)]
    brought = rules.switched_on(present.id_token_alg if present else OURS[0])
    if present is None and rules.settings.get("auth_method") == BY_KEY:
        brought["private_key_jwt"] = True
    return brought


async def _check_apis(store: Store, app: Registration) -> None:
    """Checks that the app's profile allows how its APIs want tokens signed. Raises ValueError."""
    apis = [await store.apis.find(one) for one in sorted(apis_of(app))]
    check_signed(app, [api for api in apis if api])


def _app_fields(context: Context, args: Namespace) -> dict[str, Any]:
    fields = {option: getattr(args, option) for option in APP_OPTIONS if hasattr(args, option)}
    if "name" in fields:
        fields["name"] = check_app_name(fields["name"])
        if not args.any_name:
            check_honest_name(fields["name"])
    if "redirect_uris" in fields:
        fields["redirect_uris"] = tuple(fields["redirect_uris"])
    if "post_logout_redirect_uris" in fields:
        fields["post_logout_redirect_uris"] = tuple(filter(None, fields["post_logout_redirect_uris"]))
    if "webhook_events" in fields:
        fields["webhook_events"] = chosen_types(filter(None, fields["webhook_events"]))
    # Without a base URL, assume the server of a developer's machine.
    base_url = context.settings.base_url
    loopback = not base_url or is_loopback_url(base_url)
    if fields.get("webhook_url"):
        check_webhook_url(fields["webhook_url"], loopback=loopback)
    if fields.get("backchannel_logout_uri"):
        check_webhook_url(fields["backchannel_logout_uri"], loopback=loopback, what=LOGOUT_URL)
    return fields


def _authentication(context: Context, args: Namespace) -> dict[str, Any]:
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
        if args.jwks_uri:
            base_url = context.settings.base_url
            check_jwks_uri(args.jwks_uri, loopback=not base_url or is_loopback_url(base_url))
        fields |= {"jwks": "", "jwks_uri": args.jwks_uri}
    return fields


def _read_keys(file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            return registered_keys(opened.read(LONGEST_SET + 1))
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None


def _check_redirect_uris(context: Context, uris: tuple[str, ...], public: bool) -> None:
    """Checks each URI, and names the invalid one. Raises ValueError."""
    for uri in uris:
        try:
            check_redirect_uri(uri, public, context.settings.base_url)
        except InvalidRedirectURI as error:
            raise ValueError(f"redirect URI {uri[:200]!a}: {error}") from None


async def _check_sector(context: Context, app: Registration) -> None:
    """Checks that the sector identifier URI, if there is one, lists the app's redirect URIs. Raises ValueError."""
    if not app.sector_uri:
        return
    from outbound.sector_files import check_sector  # aiohttp takes longer to load than most commands run
    from runtime.outbound_wiring import open_fetcher

    base_url = context.settings.base_url
    check_sector_uri(app.sector_uri, loopback=not base_url or is_loopback_url(base_url))
    await check_sector(open_fetcher(context.settings), app.sector_uri, app.redirect_uris)


def _app(registration: Registration) -> dict[str, Any]:
    return {**registration.record(), "createdAt": timestamp(at(registration.created_at))}


def _words(registration: Registration) -> dict[str, str]:
    """Shows no line for a list without members: it would look like a table without rows."""
    return {name: "" for name, value in registration.record().items() if value == []}
