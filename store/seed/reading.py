"""The seed file: APIs, apps and people that every start creates if they are missing.

    {"apis": [{"identifier": "https://orders.example", "name": "Orders", "client_secret": "...",
               "scopes": [{"name": "orders:read", "title": "See your orders", "detail": "", "care": false,
                           "secondStep": false}],
               "tokenFormat": "opaque", "signingAlg": "ES256", "tokenLifetime": 600}],
     "apps": [{"client_id": "web", "client_secret": "...", "name": "Web", "redirect_uris": ["https://web.example/cb"],
               "scopes": "profile data:read orders:read", "public": false, "pkceRequired": false,
               "hostedStorage": false, "issInResponse": true, "refreshRetrySeconds": 0, "refreshLifetimeDays": 0,
               "homepage": "", "webhookUrl": "https://web.example/hook", "webhook_secret": "whsec_...",
               "idTokenAlg": "RS256", "subjectType": "public", "postLogoutRedirectUris": ["https://web.example/bye"],
               "backchannelLogoutUri": "https://web.example/logout", "authMethod": "client_secret",
               "jwks": {"keys": []}, "jwksUri": "https://web.example/jwks.json", "requirePushed": false,
               "dpopRequired": false, "deviceGrant": true, "allowedGroups": ["staff"], "profile": "none",
               "firstParty": false, "secondStep": false, "callsPerMinute": 0, "introspectionsPerMinute": 0,
               "spendPerDay": 0}],
     "users": [{"email": "ada@example.com", "name": "Ada", "password": "...", "credits": 5000000,
                "groups": ["staff"]}]}

Existing APIs, apps and people stay unchanged, whatever the file says. `credits`, in micro-dollars, go only to a person
who never had any, so at most once. The whole file is checked before anything is written, so the scopes of an app are
Latchkey's own or those of the file's APIs. A scope of an API may be its name alone, which then is its title too.
A profile brings along what it demands and the file leaves out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from store.apps.api_record import DEFAULT_LIFETIME, ApiRegistration, check_foreign, scopes_in
from store.apps.apis import check_signed, resolve_scopes
from store.apps.client_keys import authentication_of
from store.apps.profiles import NONE, brought_along
from store.apps.redirect_uris import check_redirect_uri
from store.apps.registration import Registration
from store.apps.sectors import PUBLIC
from store.apps.webhooks import check_webhook_secret
from store.credits.credits import MAX_AMOUNT
from store.crypto.jose.algorithms import ES256, RS256
from store.crypto.passwords import check_length
from store.errors import StartupError
from store.names import check_app_name, check_client_id, check_groups, check_person_name, normalise_email
from store.seed.fields import Fields, Invalid, seed_object
from store.webhooks.event_types import EVERY, chosen_types

SECRET = re.compile(r"[A-Za-z0-9_-]{32,256}")
"""A secret that somebody chose: characters that HTTP Basic doesn't escape."""
_API_FIELDS = ("identifier", "name", "client_secret", "scopes", "tokenFormat", "signingAlg", "tokenLifetime")
_APP_FIELDS = (
    *("client_id", "client_secret", "name", "redirect_uris", "scopes", "public", "pkceRequired", "hostedStorage"),
    *("issInResponse", "refreshRetrySeconds", "refreshLifetimeDays", "homepage", "webhookUrl", "webhook_secret"),
    *("idTokenAlg", "subjectType", "postLogoutRedirectUris", "backchannelLogoutUri", "dpopRequired"),
    *("authMethod", "jwks", "jwksUri", "requirePushed", "profile", "webhookEvents", "deviceGrant"),
    *("allowedGroups", "firstParty", "secondStep", "callsPerMinute", "introspectionsPerMinute", "spendPerDay"),
)
_USER_FIELDS = ("email", "name", "password", "credits", "groups")
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class SeedApi:
    """An API of the file."""

    registration: ApiRegistration
    secret: str | None


@dataclass(frozen=True, slots=True, repr=False)
class SeedApp:
    """An app of the file. `place` is where it is."""

    place: str
    registration: Registration
    secret: str | None
    webhook_secret: str | None


@dataclass(frozen=True, slots=True, repr=False)
class SeedUser:
    """A person of the file."""

    place: str
    email: str
    name: str
    password: str
    credits: int
    groups: tuple[str, ...]


class SeedFile(NamedTuple):
    """Everything in a seed file, checked."""

    apis: list[SeedApi]
    apps: list[SeedApp]
    users: list[SeedUser]


def read_seed(path: Path, base_url: str = "") -> SeedFile:
    """The content of the file. Raises StartupError if it cannot be read at all, Invalid for a mistake in it."""
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
    whole = Fields(content, "", ("apis", "apps", "users"))
    apis = [_api(fields, base_url) for fields in whole.objects("apis", _API_FIELDS)]
    known = [api.registration for api in apis]
    apps = [_app(fields, known) for fields in whole.objects("apps", _APP_FIELDS)]
    users = [_user(fields) for fields in whole.objects("users", _USER_FIELDS)]
    _refuse_twins("apis", "identifier", [api.client_id for api in known])
    _refuse_twins("apps", "client_id", [app.registration.client_id for app in apps])
    _refuse_twins("users", "email", [user.email for user in users])
    return SeedFile(apis, apps, users)


def _refuse_twins(group: str, name: str, values: list[str]) -> None:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise Invalid(f"{group}[{position}].{name}", f"is that of {group}[{values.index(value)}]")


def _api(fields: Fields, base_url: str) -> SeedApi:
    identifier = fields.text("identifier")
    _checked(fields.at("identifier"), check_foreign, identifier, base_url)
    facts: dict[str, Any] = {
        "identifier": identifier,
        "name": _checked(fields.at("name"), check_app_name, fields.text("name")),
        "scopes": _checked(fields.at("scopes"), scopes_in, fields.anything("scopes")),
        "token_format": fields.text("tokenFormat", "opaque"),
        "signing_alg": fields.text("signingAlg", ES256),
        "token_lifetime": fields.whole("tokenLifetime", DEFAULT_LIFETIME),
    }
    return SeedApi(_checked(fields.place, ApiRegistration, **facts), _secret(fields))


def _secret(fields: Fields) -> str | None:
    secret = fields.text("client_secret") if "client_secret" in fields.given else None
    if secret is not None and not SECRET.fullmatch(secret):
        raise Invalid(fields.at("client_secret"), "must be 32 to 256 characters of A-Z, a-z, 0-9, _ and -")
    return secret


def _app(fields: Fields, apis: Sequence[ApiRegistration]) -> SeedApp:
    profile = fields.text("profile", NONE)
    brought = brought_along(profile, fields.given)
    public = fields.boolean("public", False) if "public" in fields.given else None
    usual = brought.pop("auth_method", None)
    method = fields.text("authMethod") if "authMethod" in fields.given else usual if public is None else None
    keys = fields.anything("jwks") if "jwks" in fields.given else None
    proof = _checked(fields.place, authentication_of, method, public, keys, fields.text("jwksUri", ""))
    public = proof["public"]
    if "client_secret" in fields.given and public:
        raise Invalid(fields.at("client_secret"), "a public app has no secret")
    if "client_secret" in fields.given and proof["private_key_jwt"]:
        raise Invalid(fields.at("client_secret"), "an app with private_key_jwt has no secret")
    secret = _secret(fields)
    redirect_uris = fields.texts("redirect_uris")
    back = fields.texts("postLogoutRedirectUris") if "postLogoutRedirectUris" in fields.given else ()
    for name, uris in (("redirect_uris", redirect_uris), ("postLogoutRedirectUris", back)):
        for position, uri in enumerate(uris):
            _checked(f"{fields.at(name)}[{position}]", check_redirect_uri, uri, public)
    scopes = fields.given.get("scopes")
    scopes = scopes.split() if isinstance(scopes, str) else fields.texts("scopes")
    own, theirs = _checked(fields.at("scopes"), resolve_scopes, " ".join(scopes), apis)
    events = fields.texts("webhookEvents") if "webhookEvents" in fields.given else EVERY
    groups = fields.texts("allowedGroups") if "allowedGroups" in fields.given else ()
    facts: dict[str, Any] = {
        **proof,
        "client_id": _checked(fields.at("client_id"), check_client_id, fields.text("client_id")),
        "name": _checked(fields.at("name"), check_app_name, fields.text("name")),
        "redirect_uris": redirect_uris,
        "scopes": own,
        "api_scopes": theirs,
        "pkce_required": fields.boolean("pkceRequired", False),
        "hosted_storage": fields.boolean("hostedStorage", False),
        "iss_in_response": fields.boolean("issInResponse", True),
        "refresh_retry_seconds": fields.whole("refreshRetrySeconds", 0),
        "refresh_lifetime_days": fields.whole("refreshLifetimeDays", 0),
        "id_token_alg": fields.text("idTokenAlg", RS256),
        "post_logout_redirect_uris": back,
        "backchannel_logout_uri": fields.text("backchannelLogoutUri", ""),
        "subject_type": fields.text("subjectType", PUBLIC),
        "require_pushed": fields.boolean("requirePushed", False),
        "dpop_required": fields.boolean("dpopRequired", False),
        "device_grant": fields.boolean("deviceGrant", True),
        "first_party": fields.boolean("firstParty", False),
        "second_step": fields.boolean("secondStep", False),
        "calls_per_minute": fields.whole("callsPerMinute", 0),
        "introspections_per_minute": fields.whole("introspectionsPerMinute", 0),
        "spend_per_day": fields.whole("spendPerDay", 0),
        "allowed_groups": _checked(fields.at("allowedGroups"), check_groups, groups),
        "homepage": fields.text("homepage", ""),
        "webhook_url": fields.text("webhookUrl", ""),
        "webhook_events": _checked(fields.at("webhookEvents"), chosen_types, events),
        "profile": profile,
        **brought,
    }
    signing = fields.text("webhook_secret") if "webhook_secret" in fields.given else None
    if signing is not None:
        _checked(fields.at("webhook_secret"), check_webhook_secret, signing)
    registration = _checked(fields.place, Registration, **facts)
    _checked(fields.at("redirect_uris"), registration.check_redirect_uris)
    _checked(fields.at("scopes"), check_signed, registration, apis)
    return SeedApp(fields.place, registration, secret, signing)


def _user(fields: Fields) -> SeedUser:
    email = _checked(fields.at("email"), normalise_email, fields.text("email"))
    name = _checked(fields.at("name"), check_person_name, fields.text("name"))
    password = fields.text("password")
    _checked(fields.at("password"), check_length, password)
    credits = fields.whole("credits", 0)
    if "credits" in fields.given and not 1 <= credits <= MAX_AMOUNT:
        raise Invalid(fields.at("credits"), f"must be 1 to {MAX_AMOUNT} micro-dollars")
    groups = _checked(fields.at("groups"), check_groups, fields.texts("groups")) if "groups" in fields.given else ()
    return SeedUser(fields.place, email, name, password, credits, groups)


def _checked(place: str, check: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    try:
        return check(*args, **named)
    except ValueError as error:
        raise Invalid(place, str(error)) from None
