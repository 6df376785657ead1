"""An app's registration as its record in the HTTP interface and as its row in the store, by one table of names; and the
digests that decide whether a checked request and a remembered consent still count."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import Any

import msgpack
import orjson

from store.apps.api_scopes import parse_qualified
from store.apps.client_keys import BY_KEY
from store.apps.owners.roles import Member
from store.apps.redirect_uris import remembered_form
from store.names import SCOPES

NO_PROFILE = "none"
RECORD = {
    "client_id": "client_id",
    "name": "name",
    "homepage": "homepage",
    "logo": "logo",
    "redirect_uris": "redirect_uris",
    "scopes": "scopes",
    "public": "public",
    "pkceRequired": "pkce_required",
    "hostedStorage": "hosted_storage",
    "issInResponse": "iss_in_response",
    "refreshRetrySeconds": "refresh_retry_seconds",
    "refreshLifetimeDays": "refresh_lifetime_days",
    "idTokenAlg": "id_token_alg",
    "dpopRequired": "dpop_required",
    "postLogoutRedirectUris": "post_logout_redirect_uris",
    "backchannelLogoutUri": "backchannel_logout_uri",
    "subjectType": "subject_type",
    "sectorIdentifierUri": "sector_uri",
    "authMethod": "auth_method",
    "jwks": "jwks",
    "jwksUri": "jwks_uri",
    "requirePushed": "require_pushed",
    "deviceGrant": "device_grant",
    "allowedGroups": "allowed_groups",
    "firstParty": "first_party",
    "secondStep": "second_step",
    "ownerSecondStep": "owner_second_step",
    "callsPerMinute": "calls_per_minute",
    "introspectionsPerMinute": "introspections_per_minute",
    "spendPerDay": "spend_per_day",
    "profile": "profile",
    "webhookUrl": "webhook_url",
    "webhookEvents": "webhook_events",
    "verified": "verified",
    "verifiedDomain": "domain",
    "verifiedDomainUntil": "domain_until",
    "status": "status",
    "suspendedReason": "suspended_reason",
    "owner": "owner",
    "createdAt": "created_at",
}
"""The members of the record, in order, with the attributes of a Registration."""
KEPT = {
    "secrets": "secrets",
    "webhookSecrets": "webhook_secrets",
    "webhookRotatedAt": "webhook_rotated_at",
    "domainChecked": "domain_checked",
    "domainMisses": "domain_misses",
    "secretsAt": "secrets_at",
    "secretNotes": "secret_notes",
    "changedAt": "changed_at",
    "apiScopes": "api_scopes",
    "ownerScopes": "owner_scopes",
    "memberScopes": "member_scopes",
    "members": "members",
    "origin": "origin",
    "documentUrl": "document_url",
    "freshUntil": "fresh_until",
    "accessDigest": "access_digest",
    "secretInBody": "secret_in_body",
    "detailsTypes": "details_types",
}
"""What the row has besides. An empty member is left out."""


def record_of(app: Any) -> dict[str, Any]:
    """The record of a Registration; without secrets."""
    return _members(app, RECORD) | {
        "client_id": app.wire_id,
        "origin": app.origin,
        "logo": app.logo_path,
        "scopes": [*app.scopes, *(parse_qualified(scope).name for scope in app.api_scopes)],
        "jwks": orjson.loads(app.jwks) if app.jwks else None,
        "verifiedDomainUntil": app.domain_until if app.domain else 0,
    }


def packed_row(app: Any) -> bytes:
    """The row of a Registration."""
    kept = {name: value for name, value in _members(app, KEPT).items() if value}
    packed: bytes = msgpack.packb({**_members(app, RECORD), "secrets": [], **kept})
    return packed


def fields_of(packed: bytes) -> dict[str, Any]:
    """The fields of the Registration whose row this is. Earlier releases wrote fewer."""
    row = msgpack.unpackb(packed)
    names = {**RECORD, **KEPT}
    fields = {names[name]: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    fields["members"] = tuple(Member(*one) for one in fields.get("members", ()))
    fields["private_key_jwt"] = fields.pop("auth_method", "") == BY_KEY
    # Earlier releases knew no devices: they are on for apps of the operator.
    others = fields.get("owner") or fields.get("origin") or fields.get("profile", "none") != "none"
    fields.setdefault("device_grant", not others)
    return fields


def _members(app: Any, names: dict[str, str]) -> dict[str, Any]:
    values = ((name, getattr(app, attribute)) for name, attribute in names.items())
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values}


# An app's requests ask for the same again and again.


def terms_of(app: Any) -> str:
    """A digest of the fields of a Registration that an authorization request is checked against."""
    checked: tuple[object, ...] = (app.redirect_uris, app.scopes, app.public, app.pkce_required)
    checked += (app.hosted_storage, *((app.api_scopes,) if app.api_scopes else ()))
    checked += (*((app.allowed_groups,) if app.allowed_groups else ()),)
    checked += (*(("second step",) if app.demands_step else ()),)
    checked += (*(("pushed",) if app.require_pushed else ()), *((app.profile,) if app.profile != NO_PROFILE else ()))
    return _digest_of_terms(checked)


def place_of(app: Any, redirect_uri: str) -> str:
    """The field of a grant that remembers consent to a redirect URI of a Registration."""
    # An owner chooses all of this except the client id. With 192 bits nobody finds two registrations with the same
    # digest, and a collision found for one app would be useless for another.
    shown = (app.client_id, app.name, app.redirect_uris, app.verified, app.domain)
    return _digest_of_place((*shown, remembered_form(redirect_uri, localhost=bool(app.origin))))


@lru_cache(maxsize=1024)
def grantable_of(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes that a person may grant to an app with these."""
    both = {*scopes, "email"} if "profile" in scopes else scopes
    return tuple(scope for scope in SCOPES if scope in both)


@lru_cache(maxsize=1024)
def _digest_of_terms(checked: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(checked).encode()).hexdigest()[:16]


@lru_cache(maxsize=1024)
def _digest_of_place(shown: tuple[object, ...]) -> str:
    return "to:" + base64.urlsafe_b64encode(hashlib.sha256(repr(shown).encode()).digest()[:24]).decode()
