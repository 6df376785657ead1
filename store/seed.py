"""The seed file: apps and people that every start creates if they are missing.

    {"apps": [{"client_id": "web", "client_secret": "...", "name": "Web", "redirect_uris": ["https://web.example/cb"],
               "scopes": "profile data:read", "public": false, "pkceRequired": false, "hostedStorage": false,
               "issInResponse": true, "refreshRetrySeconds": 0, "homepage": "", "webhookUrl": "https://web.example/hook",
               "webhook_secret": "whsec_...", "idTokenAlg": "RS256",
               "postLogoutRedirectUris": ["https://web.example/bye"],
               "backchannelLogoutUri": "https://web.example/logout"}],
     "users": [{"email": "ada@example.com", "name": "Ada", "password": "...", "credits": 5000000}]}

Existing apps and people stay unchanged, whatever the file says. `credits`, in micro-dollars, go only to a person who
never had any, so at most once. The whole file is checked before anything is written.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from store.apps.redirect_uris import check_redirect_uri
from store.apps.registration import Registration
from store.apps.webhooks import check_webhook_secret
from store.credits.credits import MAX_AMOUNT
from store.crypto.jose.algorithms import RS256
from store.crypto.passwords import check_length, check_password
from store.errors import StartupError
from store.lifetimes import EMAIL_RESERVATION, SECOND
from store.names import check_app_name, check_client_id, check_person_name, normalise_email, parse_scope
from store.refused import Refused
from store.results import Visitor, unheard
from store.wiring import Store

log = logging.getLogger("latchkey.seed")

PATIENCE = EMAIL_RESERVATION / SECOND + 5
"""Seconds to wait for an e-mail address that an unfinished account still reserves."""

_POLL = 0.1
_SECRET = re.compile(r"[A-Za-z0-9_-]{32,256}")
_APP_FIELDS = (
    *("client_id", "client_secret", "name", "redirect_uris", "scopes", "public", "pkceRequired", "hostedStorage"),
    *("issInResponse", "refreshRetrySeconds", "refreshLifetimeDays", "homepage", "webhookUrl", "webhook_secret"),
    *("idTokenAlg", "postLogoutRedirectUris", "backchannelLogoutUri"),
)
_USER_FIELDS = ("email", "name", "password", "credits")
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
        looked_at, size = count(1), len(apps) + len(users)

        def step() -> bool:
            progress(next(looked_at), size)
            return True

        report = SeedReport(
            tuple([app.registration.client_id for app in apps if step() and await _create_app(store, app)]),
            tuple([user.email for user in users if step() and await _create_user(store, user, patience)]),
            tuple([user.email for user in users if await _credit(store, user)]),
        )
    except _Invalid as error:
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
            raise _Invalid(f"{user.place}.password", str(error)) from None


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
    if app.secret is None and not app.registration.public:
        log.info("seed file: %s has no client_secret; the command `app rotate-secret` makes one", client_id)
    return True


async def _create_user(store: Store, user: _User, patience: float) -> bool:
    deadline = asyncio.get_running_loop().time() + patience
    while not await _exists(store, user.email):
        try:
            await store.people.create(
                user.email, user.name, user.password, verified=True, event="created_by_operator", visitor=Visitor()
            )
        except Refused:
            # The address is reserved without an account: another server is half-way, or one was killed there.
            if asyncio.get_running_loop().time() >= deadline:
                raise _Invalid(
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


class _Invalid(Exception):
    """A mistake and its place in the file; never a value, because it may be a secret."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")


class _Object(dict[str, Any]):
    """A JSON object that remembers a repeated name, which a plain dict would hide."""

    repeated: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object()
    for name, value in pairs:
        if name in made:
            made.repeated = name
        made[name] = value
    return made


def _read(path: Path) -> tuple[list[_App], list[_User]]:
    try:
        content = json.loads(path.read_text("utf-8"), object_pairs_hook=_object)
    except OSError as error:
        raise StartupError(f"the seed file {path} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise _Invalid(f"line {error.lineno}, column {error.colno}", f"is not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise StartupError(f"the seed file {path} is not UTF-8") from None
    except (ValueError, RecursionError):
        raise StartupError(f"the seed file {path} holds a number too long or is nested too deep") from None
    whole = _Fields(content, "", ("apps", "users"))
    apps = [_app(fields) for fields in whole.objects("apps", _APP_FIELDS)]
    users = [_user(fields) for fields in whole.objects("users", _USER_FIELDS)]
    _refuse_twins("apps", "client_id", [app.registration.client_id for app in apps])
    _refuse_twins("users", "email", [user.email for user in users])
    return apps, users


def _refuse_twins(group: str, name: str, values: list[str]) -> None:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise _Invalid(f"{group}[{position}].{name}", f"is that of {group}[{values.index(value)}]")


def _app(fields: _Fields) -> _App:
    public = fields.boolean("public", False)
    secret = fields.text("client_secret") if "client_secret" in fields.given else None
    if secret is not None and public:
        raise _Invalid(fields.at("client_secret"), "a public app has no secret")
    if secret is not None and not _SECRET.fullmatch(secret):
        raise _Invalid(fields.at("client_secret"), "must be 32 to 256 characters of A-Z, a-z, 0-9, _ and -")
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
        "homepage": fields.text("homepage", ""),
        "webhook_url": fields.text("webhookUrl", ""),
    }
    signing = fields.text("webhook_secret") if "webhook_secret" in fields.given else None
    if signing is not None:
        _checked(fields.at("webhook_secret"), check_webhook_secret, signing)
    return _App(_checked(fields.place, Registration, **facts), secret, signing)


def _user(fields: _Fields) -> _User:
    email = _checked(fields.at("email"), normalise_email, fields.text("email"))
    name = _checked(fields.at("name"), check_person_name, fields.text("name"))
    password = fields.text("password")
    _checked(fields.at("password"), check_length, password)
    credits = fields.whole("credits", 0)
    if "credits" in fields.given and not 1 <= credits <= MAX_AMOUNT:
        raise _Invalid(fields.at("credits"), f"must be 1 to {MAX_AMOUNT} micro-dollars")
    return _User(fields.place, email, name, password, credits)


def _checked(place: str, check: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    try:
        return check(*args, **named)
    except ValueError as error:
        raise _Invalid(place, str(error)) from None


class _Fields:
    """Reads one object of the file: known names only, each at most once, with values of the right type."""

    def __init__(self, given: object, place: str, known: tuple[str, ...]) -> None:
        self.place = place
        if not isinstance(given, _Object):
            raise _Invalid(place or "the whole", "must be an object")
        self.given = given
        for name in given:
            if name not in known:
                raise _Invalid(self.at(ascii(name[:64])[1:-1]), f"is unknown here; known are {', '.join(known)}")
        if given.repeated is not None:
            raise _Invalid(self.at(given.repeated), "is given twice")

    def at(self, name: str) -> str:
        """The place of a field."""
        return f"{self.place}.{name}" if self.place else name

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required without a default."""
        return self._take(name, str, "a string", default)

    def boolean(self, name: str, default: bool) -> bool:
        """A boolean: true or false."""
        return self._take(name, bool, "true or false", default)

    def whole(self, name: str, default: int) -> int:
        """A whole number; a boolean is refused."""
        if isinstance(self.given.get(name), bool):
            raise _Invalid(self.at(name), "must be a whole number")
        return self._take(name, int, "a whole number", default)

    def texts(self, name: str) -> tuple[str, ...]:
        """A required list of strings."""
        items: list[Any] = self._take(name, list, "a list of strings", None)
        for position, item in enumerate(items):
            if not isinstance(item, str):
                raise _Invalid(f"{self.at(name)}[{position}]", "must be a string")
        return tuple(items)

    def objects(self, name: str, known: tuple[str, ...]) -> Iterator[_Fields]:
        """Yields the objects of a list; nothing if the list is missing."""
        items: list[Any] = self._take(name, list, "a list", [])
        return (_Fields(item, f"{self.at(name)}[{position}]", known) for position, item in enumerate(items))

    def _take(self, name: str, kind: type[T], what: str, default: T | None) -> T:
        if name not in self.given and default is not None:
            return default
        if name not in self.given:
            raise _Invalid(self.at(name), "is missing")
        found = self.given[name]
        if not isinstance(found, kind):
            raise _Invalid(self.at(name), f"must be {what}")
        return found
