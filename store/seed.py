"""The seed file: apps and people that every start creates if they are missing.

    {"apps": [{"client_id": "web", "client_secret": "...", "name": "Web", "redirect_uris": ["https://web.example/cb"],
               "scopes": "profile data:read", "public": false, "pkceRequired": false, "hostedStorage": false,
               "issInResponse": true, "refreshRetrySeconds": 0, "homepage": "", "webhookUrl": "https://web.example/hook",
               "webhook_secret": "whsec_...", "idTokenAlg": "RS256", "subjectType": "public",
               "postLogoutRedirectUris": ["https://web.example/bye"],
               "backchannelLogoutUri": "https://web.example/logout"}],
     "users": [{"email": "ada@example.com", "name": "Ada", "password": "...", "credits": 5000000,
                "groups": ["staff"]}]}

Existing apps and people stay unchanged, whatever the file says. `credits`, in micro-dollars, go only to a person who
never had any, so at most once. The whole file is checked before anything is written.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from store.apps.client_ids import check_free_of_people
from store.apps.redirect_uris import check_redirect_uri
from store.apps.registration import Registration
from store.apps.sectors import PUBLIC
from store.apps.webhooks import check_webhook_secret
from store.credits.credits import MAX_AMOUNT
from store.crypto.jose.algorithms import RS256
from store.crypto.passwords import check_length, check_password
from store.errors import StartupError
from store.lifetimes import EMAIL_RESERVATION, SECOND
from store.names import check_app_name, check_client_id, check_groups, check_person_name, normalise_email, parse_scope
from store.refused import Refused
from store.results import Visitor, unheard
from store.seed_fields import Fields, Invalid, seed_object
from store.wiring import Store

log = logging.getLogger("latchkey.seed")

PATIENCE = EMAIL_RESERVATION / SECOND + 5
"""Seconds to wait for an e-mail address that an unfinished account still reserves."""

_POLL = 0.1
_SECRET = re.compile(r"[A-Za-z0-9_-]{32,256}")
_APP_FIELDS = (
    *("client_id", "client_secret", "name", "redirect_uris", "scopes", "public", "pkceRequired", "hostedStorage"),
    *("issInResponse", "refreshRetrySeconds", "refreshLifetimeDays", "homepage", "webhookUrl", "webhook_secret"),
    *("idTokenAlg", "subjectType", "postLogoutRedirectUris", "backchannelLogoutUri", "dpopRequired"),
)
_USER_FIELDS = ("email", "name", "password", "credits", "groups")
CREDITS_REASON = "First credits"
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SeedReport:
    """The created apps and people: client ids and e-mail addresses in the order of the file. `credited` has the
    addresses of the people who got credits."""

    apps: tuple[str, ...]
    users: tuple[str, ...]
    credited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class _App:
    place: str
    registration: Registration
    secret: str | None
    webhook_secret: str | None


@dataclass(frozen=True, slots=True, repr=False)
class _User:
    place: str
    email: str
    name: str
    password: str
    credits: int
    groups: tuple[str, ...]


async def seed(
    store: Store, path: Path, *, patience: float = PATIENCE, progress: Callable[[int, int], None] = unheard
) -> SeedReport:
    """Creates the file's missing apps and people; several servers may do so at once. Calls `progress` with the number
    of entries checked so far and their total.

    Raises StartupError, which names the place in the file: for a mistake in the file, with nothing written, and after
    `patience` seconds for an e-mail address that an unfinished account reserves. Raises StoreError.
    """
    try:
        apps, users = _read(path)
        for user in users:
            await _refuse_guessable(store, user)
        for app in apps:
            await _refuse_peoples_ids(store, app)
        looked_at, size = count(1), len(apps) + len(users)

        def step() -> bool:
            progress(next(looked_at), size)
            return True

        report = SeedReport(
            tuple([app.registration.client_id for app in apps if step() and await _create_app(store, app)]),
            tuple([user.email for user in users if step() and await _create_user(store, user, patience)]),
            tuple([user.email for user in users if await _credit(store, user)]),
        )
    except Invalid as error:
        raise StartupError(f"the seed file {path}: {error}") from None
    log.info("seed file: %d apps and %d people were missing", len(report.apps), len(report.users))
    if report.credited:
        log.info("seed file: %d people got their first credits", len(report.credited))
    return report


async def _refuse_guessable(store: Store, user: _User) -> None:
    """Checks the password of a missing account only: a file older than a stricter rule must not prevent a start."""
    try:
        check_password(user.password, user.email, user.name)
    except ValueError as error:
        if not await _exists(store, user.email):
            raise Invalid(f"{user.place}.password", str(error)) from None


async def _refuse_peoples_ids(store: Store, app: _App) -> None:
    """Checks the client id of a missing app only, for the same reason."""
    try:
        check_free_of_people(app.registration.client_id)
    except ValueError as error:
        if not await store.apps.find(app.registration.client_id):
            raise Invalid(f"{app.place}.client_id", str(error)) from None


async def _create_app(store: Store, app: _App) -> bool:
    client_id = app.registration.client_id
    if await store.apps.find(client_id):
        return False
    try:
        begun = store.webhooks.begun(app.registration, app.webhook_secret)
        await store.apps.create(begun.registration, app.secret)
    except Refused:  # another server was quicker
        return False
    if begun.secret and app.webhook_secret is None:
        log.info("seed file: %s has no webhook_secret; the command `app rotate-webhook-secret` makes one", client_id)
    if app.secret is None and app.registration.has_secret:
        log.info("seed file: %s has no client_secret; the command `app rotate-secret` makes one", client_id)
    return True


async def _create_user(store: Store, user: _User, patience: float) -> bool:
    deadline = asyncio.get_running_loop().time() + patience
    while not await _exists(store, user.email):
        try:
            await store.people.create(
                user.email,
                user.name,
                user.password,
                verified=True,
                event="created_by_operator",
                visitor=Visitor(),
                groups=user.groups,
            )
        except Refused:
            # The address is reserved without an account: another server is half-way, or one was killed there.
            if asyncio.get_running_loop().time() >= deadline:
                raise Invalid(
                    f"{user.place}.email", "is held by an account that is being made; start again in a minute"
                ) from None
            await asyncio.sleep(_POLL)
        else:
            return True
    return False


async def _credit(store: Store, user: _User) -> bool:
    """Gives first credits, to an older account too: an interrupted start may have left it without any."""
    if not user.credits:
        return False
    try:
        person = await store.operator.find(user.email)
        granted = await store.credits.begin(person.user, user.credits, reason=CREDITS_REASON)
    except Refused:  # deleted meanwhile
        return False
    return not granted.replayed


async def _exists(store: Store, email: str) -> bool:
    try:
        await store.operator.find(email)
    except Refused:
        return False
    return True


def _read(path: Path) -> tuple[list[_App], list[_User]]:
    try:
        content = json.loads(path.read_text("utf-8"), object_pairs_hook=seed_object)
    except OSError as error:
        raise StartupError(f"the seed file {path} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise Invalid(f"line {error.lineno}, column {error.colno}", f"is not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise StartupError(f"the seed file {path} is not UTF-8") from None
    except (ValueError, RecursionError):
        raise StartupError(f"the seed file {path} holds a number too long or is nested too deep") from None
    whole = Fields(content, "", ("apps", "users"))
    apps = [_app(fields) for fields in whole.objects("apps", _APP_FIELDS)]
    users = [_user(fields) for fields in whole.objects("users", _USER_FIELDS)]
    _refuse_twins("apps", "client_id", [app.registration.client_id for app in apps])
    _refuse_twins("users", "email", [user.email for user in users])
    return apps, users


def _refuse_twins(group: str, name: str, values: list[str]) -> None:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise Invalid(f"{group}[{position}].{name}", f"is that of {group}[{values.index(value)}]")


def _app(fields: Fields) -> _App:
    public = fields.boolean("public", False)
    secret = fields.text("client_secret") if "client_secret" in fields.given else None
    if secret is not None and public:
        raise Invalid(fields.at("client_secret"), "a public app has no secret")
    if secret is not None and not _SECRET.fullmatch(secret):
        raise Invalid(fields.at("client_secret"), "must be 32 to 256 characters of A-Z, a-z, 0-9, _ and -")
    redirect_uris = fields.texts("redirect_uris")
    back = fields.texts("postLogoutRedirectUris") if "postLogoutRedirectUris" in fields.given else ()
    for name, uris in (("redirect_uris", redirect_uris), ("postLogoutRedirectUris", back)):
        for position, uri in enumerate(uris):
            _checked(f"{fields.at(name)}[{position}]", check_redirect_uri, uri, public)
    scopes = fields.given.get("scopes")
    scopes = scopes.split() if isinstance(scopes, str) else fields.texts("scopes")
    facts: dict[str, Any] = {
        "client_id": _checked(fields.at("client_id"), check_client_id, fields.text("client_id")),
        "name": _checked(fields.at("name"), check_app_name, fields.text("name")),
        "redirect_uris": redirect_uris,
        "scopes": _checked(fields.at("scopes"), parse_scope, " ".join(scopes)),
        "public": public,
        "pkce_required": fields.boolean("pkceRequired", False),
        "hosted_storage": fields.boolean("hostedStorage", False),
        "iss_in_response": fields.boolean("issInResponse", True),
        "refresh_retry_seconds": fields.whole("refreshRetrySeconds", 0),
        "refresh_lifetime_days": fields.whole("refreshLifetimeDays", 0),
        "id_token_alg": fields.text("idTokenAlg", RS256),
        "post_logout_redirect_uris": back,
        "backchannel_logout_uri": fields.text("backchannelLogoutUri", ""),
        "subject_type": fields.text("subjectType", PUBLIC),
        "dpop_required": fields.boolean("dpopRequired", False),
        "homepage": fields.text("homepage", ""),
        "webhook_url": fields.text("webhookUrl", ""),
    }
    signing = fields.text("webhook_secret") if "webhook_secret" in fields.given else None
    if signing is not None:
        _checked(fields.at("webhook_secret"), check_webhook_secret, signing)
    registration = _checked(fields.place, Registration, **facts)
    _checked(fields.at("redirect_uris"), registration.check_redirect_uris)
    return _App(fields.place, registration, secret, signing)


def _user(fields: Fields) -> _User:
    email = _checked(fields.at("email"), normalise_email, fields.text("email"))
    name = _checked(fields.at("name"), check_person_name, fields.text("name"))
    password = fields.text("password")
    _checked(fields.at("password"), check_length, password)
    credits = fields.whole("credits", 0)
    if "credits" in fields.given and not 1 <= credits <= MAX_AMOUNT:
        raise Invalid(fields.at("credits"), f"must be 1 to {MAX_AMOUNT} micro-dollars")
    groups = _checked(fields.at("groups"), check_groups, fields.texts("groups")) if "groups" in fields.given else ()
    return _User(fields.place, email, name, password, credits, groups)


def _checked(place: str, check: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    try:
        return check(*args, **named)
    except ValueError as error:
        raise Invalid(place, str(error)) from None
