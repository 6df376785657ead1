"""Client metadata: a registration as apps send it and get it back. RFC 7591 2, OpenID Connect Registration 2.

TEXTS, FLAGS and LISTS map the members that are stored as they are; the rest has rules of its own. Unknown members are
ignored (RFC 7591 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import orjson

from store.apps.client_keys import InvalidKeys, check_jwks_uri, registered_keys
from store.apps.lookalikes import check_honest_name
from store.apps.redirect_uris import InvalidRedirectURI, check_redirect_uri, display_origin
from store.apps.registration import MAX_REDIRECT_URIS, InvalidRegistration, Registration
from store.apps.sectors import InvalidSector
from store.names import DETAILS_TYPES, DEVICE_GRANT, EXCHANGE_GRANT, check_program_name
from store.refused import Refused, reason_of

BASIC, POST, KEY, NOTHING = "client_secret_basic", "client_secret_post", "private_key_jwt", "none"
METHODS = (BASIC, POST, KEY, NOTHING)
GRANTS = ("authorization_code", "refresh_token")
RESPONSES = ("code",)
APPLICATIONS = ("web", "native")
TEXTS = {"id_token_signed_response_alg": "id_token_alg", "subject_type": "subject_type"}
FLAGS = {
    "dpop_bound_access_tokens": "dpop_required",
    "require_pushed_authorization_requests": "require_pushed",
}
LISTS = {"redirect_uris": "redirect_uris", "post_logout_redirect_uris": "post_logout_redirect_uris"}
MEMBERS = (
    *(*LISTS, *TEXTS, *FLAGS, "client_name", "token_endpoint_auth_method", "grant_types", "response_types"),
    *("application_type", "jwks", "jwks_uri", "sector_identifier_uri", "authorization_details_types"),
)
"""What is read of a registration."""
OF_A_CHANGE = ("client_id", "client_secret")
"""What is also read of a change."""
STRUCTURED = frozenset((*LISTS, *FLAGS, "grant_types", "response_types", "jwks", "authorization_details_types"))
"""Members that are no text."""
NEVER_SENT = frozenset(
    (
        *("registration_access_token", "registration_client_uri"),
        *("client_secret_expires_at", "client_id_issued_at"),
    )
)
"""RFC 7592 2.2: a change has none of these."""
LONGEST_METADATA = 2**14
"""Bytes of a registration."""
_OF_OPERATOR = (
    *("status", "allowed_groups", "profile", "refresh_lifetime_days"),
    *("second_step", "calls_per_minute", "introspections_per_minute", "spend_per_day", "suspended_reason"),
)


def registration_of(
    metadata: Mapping[str, Any], client_id: str, base_url: str, own: str, *, loopback: bool = False, **fields: Any
) -> Registration:
    """The registration that the metadata ask for, without a secret. `own`: the server's name, which no app may take;
    `loopback`: whether keys may be on this machine; `fields` of the Registration that no metadata have. Raises
    Refused("invalid_redirect_uri" or "invalid_client_metadata")."""
    found: dict[str, Any] = {}
    for name, attribute in TEXTS.items():
        if (text := _text(metadata, name)) is not None:
            found[attribute] = text
    for name, attribute in FLAGS.items():
        if (flag := metadata.get(name)) is not None:
            found[attribute] = flag if isinstance(flag, bool) else _wrong(f"{name} is true or false.")
    for name, attribute in LISTS.items():
        found[attribute] = _texts(metadata, name) or ()
    _check_kinds(metadata)
    found |= _authentication(metadata, loopback)
    # RFC 9396 10: what the app will use. It may ask for all types here, whichever it names.
    types = _texts(metadata, "authorization_details_types") or ()
    found["details_types"] = tuple(kind for kind in DETAILS_TYPES if kind in types)
    found["device_grant"] = DEVICE_GRANT in (_texts(metadata, "grant_types") or ())
    _check_uris(found, base_url)
    if metadata.get("sector_identifier_uri") is not None:
        _wrong("sector_identifier_uri is only for apps that an operator registers.")
    found["name"] = _name(_text(metadata, "client_name"), found["redirect_uris"][0], own)
    try:
        app = Registration(client_id, scopes=(), pkce_required=True, **{**found, **fields})
        app.check_redirect_uris()
    except (InvalidRegistration, InvalidSector, ValueError) as error:
        _wrong(f"{reason_of(error).removesuffix('.')}.")
    return app


def metadata_of(app: Registration) -> dict[str, Any]:
    """The metadata of a registration, as it counts here (RFC 7591 3.2.1)."""
    method = NOTHING if app.public else KEY if app.private_key_jwt else POST if app.secret_in_body else BASIC
    lists = {name: list(getattr(app, attribute)) for name, attribute in LISTS.items()}
    kept = {name: getattr(app, attribute) for name, attribute in {**TEXTS, **FLAGS}.items()}
    keys: dict[str, Any] = {"jwks": orjson.loads(app.jwks)} if app.jwks else {}
    if app.jwks_uri:
        keys["jwks_uri"] = app.jwks_uri
    if app.details_types:
        kept["authorization_details_types"] = list(app.details_types)
    return {
        "client_id": app.wire_id,
        "client_name": app.name,
        **{name: uris for name, uris in lists.items() if uris},
        "token_endpoint_auth_method": method,
        # Every app may exchange its tokens.
        "grant_types": [*GRANTS, *((DEVICE_GRANT,) if app.signs_in_devices else ()), EXCHANGE_GRANT],
        "response_types": list(RESPONSES),
        "scope": " ".join(app.scopes),
        **kept,
        **keys,
    }


def chosen_by_operator(present: Registration) -> dict[str, Any]:
    """The fields that only an operator changes: an app can't lift a restriction by a change of its metadata."""
    return {name: getattr(present, name) for name in _OF_OPERATOR}


def with_secret_of(app: Registration, present: Registration) -> Registration:
    """A changed registration with the secrets that it keeps, and everything that no metadata have."""
    kept = {name: getattr(present, name) for name in ("created_at", "access_digest")}
    if app.has_secret and present.has_secret:
        kept |= {name: getattr(present, name) for name in ("secrets", "secret_notes", "secrets_at")}
    return replace(app, **kept)


def check_unchanged(metadata: Mapping[str, Any], present: Registration) -> None:
    """RFC 7592 2.2: a change names the app, and no new values for what the server chooses. Raises
    Refused("invalid_request")."""
    if metadata.get("client_id") != present.client_id:
        raise Refused("invalid_request", "client_id is that of the registration.")
    secret = _text(metadata, "client_secret")
    if secret is not None and not present.secret_matches(secret):
        raise Refused("invalid_request", "client_secret is not the one of the registration.")


def _check_kinds(metadata: Mapping[str, Any]) -> None:
    """Grant and response types that this server does not give are left out (RFC 7591 2); it needs one that it gives."""
    for name, ours in (("grant_types", GRANTS[:1]), ("response_types", RESPONSES)):
        types = _texts(metadata, name)
        if types is not None and not set(types) & set(ours):
            _wrong(f"{name} must have {ours[0]}.")
    if (kind := _text(metadata, "application_type")) is not None and kind not in APPLICATIONS:
        _wrong(f"application_type is {' or '.join(APPLICATIONS)}.")


def _authentication(metadata: Mapping[str, Any], loopback: bool) -> dict[str, Any]:
    method = _text(metadata, "token_endpoint_auth_method") or BASIC  # RFC 7591 2
    if method not in METHODS:
        _wrong(f"token_endpoint_auth_method is one of {', '.join(METHODS)}.")
    jwks, uri = metadata.get("jwks"), _text(metadata, "jwks_uri") or ""
    if jwks is not None and not isinstance(jwks, dict):
        _wrong("jwks is a JSON Web Key Set.")
    try:
        keys = registered_keys(orjson.dumps(jwks)) if jwks is not None else ""
        if uri:
            check_jwks_uri(uri, loopback=loopback)
    except InvalidKeys as error:
        _wrong(f"{reason_of(error).removesuffix('.')}.")
    return {
        "public": method == NOTHING,
        "private_key_jwt": method == KEY,
        "secret_in_body": method == POST,
        "jwks": keys,
        "jwks_uri": uri,
    }


def _check_uris(found: Mapping[str, Any], base_url: str) -> None:
    """RFC 7591 3.2.2 has an error of its own for redirect URIs."""
    uris: Sequence[str] = found["redirect_uris"]
    if not 1 <= len(uris) <= MAX_REDIRECT_URIS:
        raise Refused("invalid_redirect_uri", f"redirect_uris has 1 to {MAX_REDIRECT_URIS} addresses.")
    for uri in (*uris, *found["post_logout_redirect_uris"][: MAX_REDIRECT_URIS + 1]):
        try:
            check_redirect_uri(uri, found["public"], base_url)
        except InvalidRedirectURI as error:
            raise Refused("invalid_redirect_uri", reason_of(error)) from None


def _name(name: str | None, redirect_uri: str, own: str) -> str:
    """The name that people see. Anybody can choose one, so it may not imitate this server's pages; for brands the
    consent page has a warning. Without a name, it is the app's address."""
    if name is None:
        return display_origin(redirect_uri)[:100]
    try:
        checked = check_program_name(name)
        check_honest_name(checked, own)
    except ValueError as error:
        _wrong(f"client_name: {reason_of(error).removesuffix('.')}.")
    return checked


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    value = metadata.get(name)
    if value is not None and not isinstance(value, str):
        _wrong(f"{name} is a string.")
    return value or None


def _texts(metadata: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = metadata.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        _wrong(f"{name} is a list of strings.")
    return tuple(value)


def _wrong(description: str) -> NoReturn:
    raise Refused("invalid_client_metadata", description)
