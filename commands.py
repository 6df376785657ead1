"""What `manage.py` does with apps, people and tokens: one function for each command, over an open store."""

from __future__ import annotations

import secrets
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from settings import Settings
from store.apps import new_client_id
from store.grants import at
from store.keyring import KeyFile, KeyRing
from store.lifetimes import DAY, INVITE
from store.names import check_app_name, check_person_name, normalise_email, parse_scope
from store.opened import Store
from store.operations import Person, person_named
from store.passwords import check_password
from store.redirect_uris import InvalidRedirectURI, check_redirect_uri
from store.refused import Refused
from store.registration import Registration
from store.results import Visitor

# The options of `app create` and `app update` are named like the fields they set; one that is not given is absent.
APP_OPTIONS = (
    *("name", "redirect_uris", "scopes", "public", "pkce_required", "hosted_storage", "homepage"),
    *("refresh_retry_seconds", "iss_in_response", "status"),
)
SHOWN_ONCE = "is shown this once; the store holds only its hash."


@dataclass(frozen=True, slots=True)
class Context:
    """What a command works with. `server_runs`: a server uses the key file at the same time."""

    settings: Settings
    store: Store
    keys: KeyFile | KeyRing
    server_runs: bool


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """What a command answers: the JSON object, which columns a table of its rows shows to people (of those a row has),
    a note for them, what they are shown in place of values of the object, and the exit status."""

    record: dict[str, Any]
    columns: tuple[str, ...] = ()
    note: str = ""
    words: dict[str, Any] = field(default_factory=dict)
    status: int = 0


Command = Callable[[Context, Namespace], Awaitable[Outcome]]


async def create_app(context: Context, args: Namespace) -> Outcome:
    """Registers an app. Raises Refused, ValueError."""
    fields = _app_fields(args)
    _check_redirect_uris(fields["redirect_uris"], fields.get("public", False))
    client_id = args.client_id if args.client_id is not None else new_client_id()
    Registration(client_id, **fields)  # whoever is to own it, only what may register is theirs
    fields |= await _given(context.store, client_id, args)
    registration, secret = await context.store.apps.create(Registration(client_id, **fields))
    if secret is None:
        return Outcome(_app(registration))
    return Outcome({**_app(registration), "client_secret": secret}, note=f"The client_secret {SHOWN_ONCE}")


async def list_apps(context: Context, args: Namespace) -> Outcome:
    """Every app, oldest first."""
    apps = [_app(registration) for registration in await context.store.apps.list()]
    return Outcome({"apps": apps}, ("client_id", "name", "status", "scopes"))


async def show_app(context: Context, args: Namespace) -> Outcome:
    """One app with its numbers: about how many people have connected it, and by day (UTC) what it did; `spent` is in
    micro-dollars. Raises Refused("not_found")."""
    registration = await _find_app(context.store, args.client_id)
    numbers = await context.store.numbers.of(args.client_id)
    days = [
        {**asdict(day), "day": day.day.isoformat()}
        for day in numbers.days
        if day.calls or day.spent or day.connected or day.disconnected
    ]
    columns = ("day", "calls", "limited", "spent", "connected", "disconnected")
    return Outcome({**_app(registration), "people": numbers.people, "days": days}, columns)


async def update_app(context: Context, args: Namespace) -> Outcome:
    """Changes what is given. Raises Refused, ValueError."""
    fields = _app_fields(args)
    if not fields and not hasattr(args, "owner"):
        raise Refused("invalid_request", "Nothing to change is given.")
    present = await _find_app(context.store, args.client_id)
    public = fields.get("public", present.public)
    _check_redirect_uris(fields.get("redirect_uris", present.redirect_uris), public)
    if public:
        fields["secrets"] = ()
    replace(present, **fields)
    fields |= await _given(context.store, args.client_id, args)
    changed = await context.store.apps.update(args.client_id, **fields)
    lacks_secret = not changed.public and not changed.secrets
    return Outcome(_app(changed), note="It has no secret yet; `app rotate-secret` makes one." if lacks_secret else "")


async def rotate_secret(context: Context, args: Namespace) -> Outcome:
    """Gives a confidential app a new secret. Raises Refused."""
    _, secret = await context.store.apps.rotate_secret(args.client_id, drop_old=args.drop_old)
    old = "No other secret is valid." if args.drop_old else "The one before it stays valid until the next rotation."
    record = {"client_id": args.client_id, "client_secret": secret}
    return Outcome(record, note=f"The client_secret {SHOWN_ONCE} {old}")


async def delete_app(context: Context, args: Namespace) -> Outcome:
    """Deletes an app with all it left. Raises Refused("not_found")."""
    await context.store.apps.delete(args.client_id)
    return Outcome({"client_id": args.client_id, "deleted": True})


async def create_user(context: Context, args: Namespace) -> Outcome:
    """Makes an account with a confirmed address. Raises Refused, ValueError."""
    email, name = normalise_email(args.email), check_person_name(args.name)
    password = secrets.token_urlsafe(18) if args.password is None else args.password
    check_password(password, email)
    visitor = Visitor()
    await context.store.people.create(
        email, name, password, verified=True, event="created_by_operator", visitor=visitor
    )
    record = _user(await context.store.operator.find(email))
    if args.password is not None:
        return Outcome(record)
    return Outcome({**record, "password": password}, note=f"The password {SHOWN_ONCE}")


async def list_users(context: Context, args: Namespace) -> Outcome:
    """Every person."""
    people: AsyncIterator[Person] = context.store.operator.people()
    return Outcome({"users": [_user(person) async for person in people]}, ("email", "sub", "status", "name"))


async def show_user(context: Context, args: Namespace) -> Outcome:
    """One person with what they sign in with beside the password, connected apps and the newest activity. Raises
    Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email))
    security = await context.store.operator.security(person.user)
    factors = {
        "authenticatorApp": security.app_since is not None,
        "passkeys": len(security.passkeys),
        "recoveryCodesLeft": security.codes,
    }
    activity = [
        {
            "at": _time(entry.at),
            "event": entry.event,
            "client_id": entry.client,
            "address": entry.address,
            "agent": entry.agent,
        }
        for entry in person.activity
    ]
    record = {**_user(person), **factors, "apps": list(person.apps), "activity": activity}
    return Outcome(record, ("at", "event", "client_id", "address", "agent"))


async def disable_user(context: Context, args: Namespace) -> Outcome:
    """Stops every token of a person and ends every session; nobody gets in. Raises Refused("not_found"), ValueError."""
    return Outcome(_user(await context.store.operator.set_status(person_named(args.email), "disabled")))


async def set_password(context: Context, args: Namespace) -> Outcome:
    """Gives a person who forgot it a new password; every session ends. Raises Refused("not_found"), ValueError."""
    person = await context.store.operator.find(person_named(args.email))
    password = secrets.token_urlsafe(18) if args.password is None else args.password
    check_password(password, person.email)
    record = _user(await context.store.operator.set_password(person.user, await context.store.hasher.hash(password)))
    if args.password is not None:
        return Outcome(record)
    return Outcome({**record, "password": password}, note=f"The password {SHOWN_ONCE}")


async def reset_factors(context: Context, args: Namespace) -> Outcome:
    """Takes what a person signs in with beside the password. Raises Refused("not_found"), ValueError."""
    return Outcome(_user(await context.store.operator.reset_factors(person_named(args.email))))


async def enable_user(context: Context, args: Namespace) -> Outcome:
    """Lets a person in again. Raises Refused("not_found"), ValueError."""
    return Outcome(_user(await context.store.operator.set_status(person_named(args.email), "active")))


async def delete_user(context: Context, args: Namespace) -> Outcome:
    """Deletes a person with all that is theirs. Raises Refused("not_found"), ValueError."""
    return Outcome({"sub": await context.store.operator.delete(person_named(args.email)), "deleted": True})


async def invite_user(context: Context, args: Namespace) -> Outcome:
    """A link with which whoever holds it can sign up with the address. Raises Refused, ValueError."""
    email = normalise_email(args.email)
    if not context.settings.base_url:
        raise Refused("invalid_request", "The link needs the server's address: --base-url or LATCHKEY_BASE_URL.")
    if await context.store.people.credentials(email):
        raise Refused("invalid_request", "There is an account with this e-mail address already.")
    invite = await context.store.people.invite(email)
    link = f"{context.settings.base_url}/signup?invite={quote(invite)}"
    note = f"Valid once, for {INVITE // DAY} days, and only this newest one. Send it to that address and nobody else."
    return Outcome({"email": email, "link": link}, note=note)


async def mint_token(context: Context, args: Namespace) -> Outcome:
    """Grants and issues tokens as a consent and an exchange would. SPEC 2.2. Raises Refused, ValueError."""
    person = await context.store.operator.find(normalise_email(args.user))
    app = await _find_app(context.store, args.client_id)
    scopes = parse_scope(" ".join(args.scopes.split()))
    if not app.active:
        raise Refused("access_denied", "This app is disabled.")
    if person.status != "active":
        raise Refused("access_denied", "This person is disabled.")
    if missing := [scope for scope in scopes if scope not in app.scopes]:
        raise Refused("invalid_scope", f"The app did not register {' '.join(missing)}.")
    if app.hosted_storage and not Registration.data_scopes(scopes):
        raise Refused("invalid_scope", "An app with hosted storage asks for data:read or data:write.")
    tokens = await context.store.tokens.mint(person.user, app, scopes)
    return Outcome(
        {
            "access_token": tokens.access_token,
            "token_type": "Bearer",
            "expires_in": tokens.expires_in,
            "refresh_token": tokens.refresh_token,
            "scope": tokens.scope,
        }
    )


async def _find_app(store: Store, client_id: str) -> Registration:
    found = await store.apps.find(client_id)
    if found is None:
        raise Refused("not_found", "No such app.")
    return found


async def _given(store: Store, client_id: str, args: Namespace) -> dict[str, Any]:
    """The owner that is given, in whose list the app stands then. Raises Refused("not_found"), ValueError."""
    if not hasattr(args, "owner"):
        return {}
    person = await store.operator.find(person_named(args.owner), 1)
    await store.owned.give(person.user, client_id)
    return {"owner": person.user}


def _app_fields(args: Namespace) -> dict[str, Any]:
    fields = {option: getattr(args, option) for option in APP_OPTIONS if hasattr(args, option)}
    if "name" in fields:
        fields["name"] = check_app_name(fields["name"])
    if "scopes" in fields:
        fields["scopes"] = parse_scope(" ".join(fields["scopes"].split()))
    if "redirect_uris" in fields:
        fields["redirect_uris"] = tuple(fields["redirect_uris"])
    return fields


def _check_redirect_uris(uris: tuple[str, ...], public: bool) -> None:
    """Of several, the one that is wrong is named. Raises ValueError."""
    for uri in uris:
        try:
            check_redirect_uri(uri, public)
        except InvalidRedirectURI as error:
            raise ValueError(f"redirect URI {uri[:200]!a}: {error}") from None


def _app(registration: Registration) -> dict[str, Any]:
    return {**registration.record(), "createdAt": _time(at(registration.created_at))}


def _user(person: Person) -> dict[str, Any]:
    return {
        "sub": person.user,
        "email": person.email,
        "email_verified": person.email_verified,
        "name": person.name,
        "status": person.status,
        "createdAt": _time(person.created_at),
    }


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
