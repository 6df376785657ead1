"""Dynamic client registration in the OpenAPI document: operations, schemas, examples. RFC 7591, RFC 7592."""

from __future__ import annotations

from typing import Any

from handlers.openapi.operation import Operation, Success
from handlers.openapi.shapes import ADDRESS, COUNT, FILLED, FLAG, TEXT, Schema, listed, read, written
from store.apps.self_registered.metadata import APPLICATIONS, METHODS
from store.crypto.jose.private import OURS
from store.names import EXCHANGE_GRANT

_ERRORS = ("invalid_request", "invalid_client_metadata", "invalid_redirect_uri", "invalid_token")
_BEARER: tuple[tuple[str, ...], ...] = (("registration",),)
_ASKED: Schema = {
    "client_name": FILLED,
    "token_endpoint_auth_method": {"enum": [*METHODS], "default": METHODS[0]},
    "grant_types": listed(TEXT),
    "response_types": listed(TEXT),
    "authorization_details_types": listed(TEXT),
    "application_type": {"enum": [*APPLICATIONS]},
    "post_logout_redirect_uris": listed(TEXT),
    "jwks": {"type": "object"},
    "jwks_uri": TEXT,
    "sector_identifier_uri": {**TEXT, "description": "refused: only an operator registers one"},
    "id_token_signed_response_alg": {"enum": [*OURS]},
    "subject_type": {"enum": ["public", "pairwise"]},
    "dpop_bound_access_tokens": FLAG,
    "require_pushed_authorization_requests": FLAG,
}

CLIENT_SCHEMAS: dict[str, Schema] = {
    "ClientMetadata": read({"redirect_uris": listed(TEXT)}, _ASKED),
    "ClientUpdate": read({"client_id": FILLED, "redirect_uris": listed(TEXT)}, {**_ASKED, "client_secret": FILLED}),
    "RegisteredClient": written(
        {
            "client_id": FILLED,
            "client_name": FILLED,
            "redirect_uris": listed(FILLED),
            "token_endpoint_auth_method": {"enum": [*METHODS]},
            **dict.fromkeys(("grant_types", "response_types"), listed(FILLED)),
            "scope": FILLED,
            "id_token_signed_response_alg": {"enum": [*OURS]},
            "subject_type": {"enum": ["public", "pairwise"]},
            **dict.fromkeys(("dpop_bound_access_tokens", "require_pushed_authorization_requests"), FLAG),
            "client_id_issued_at": COUNT,
            "registration_access_token": FILLED,
            "registration_client_uri": ADDRESS,
        },
        {
            "client_secret": FILLED,
            "client_secret_expires_at": {"const": 0},
            "post_logout_redirect_uris": listed(FILLED),
            "authorization_details_types": listed(FILLED),
            "jwks": {"type": "object"},
            "jwks_uri": FILLED,
        },
    ),
}
_METADATA: dict[str, Any] = {
    "client_name": "Notes on the desktop",
    "redirect_uris": ["http://localhost/callback"],
    "token_endpoint_auth_method": "none",
}
CLIENT_EXAMPLES: dict[str, dict[str, Any]] = {
    "ClientMetadata": {"native": {**_METADATA, "grant_types": ["authorization_code", "refresh_token"]}},
    "ClientUpdate": {"native": {"client_id": "9zYkT7bXcQf2LmA", **_METADATA}},
    "RegisteredClient": {
        "native": {
            "client_id": "9zYkT7bXcQf2LmA",
            **_METADATA,
            "grant_types": ["authorization_code", "refresh_token", EXCHANGE_GRANT],
            "response_types": ["code"],
            "scope": "openid profile email",
            "id_token_signed_response_alg": "RS256",
            "subject_type": "public",
            "dpop_bound_access_tokens": False,
            "require_pushed_authorization_requests": False,
            "client_id_issued_at": 1767225600,
            "registration_access_token": "lk_rg_a-registration-access-token",
            "registration_client_uri": "https://id.example.org/api/oauth/register/9zYkT7bXcQf2LmA",
        }
    },
}
_SHOWN = "The registration, as it counts here. A secret is shown once, when it is made."
CLIENT_OPERATIONS: dict[str, dict[str, Operation]] = {
    "register": {
        "post": Operation(
            "OAuth",
            "Register an app (RFC 7591)",
            "For apps that nobody registered before, if the operator allows it: with a registration token as bearer "
            "token, or for every app. Unknown metadata are ignored. The answer says what counts. Nobody owns such an "
            "app. Without a person who allows it, it ends after 90 days.",
            {201: Success("the registration, with the only copy of its secret and its token", "RegisteredClient")},
            errors=(*_ERRORS, "not_found"),
            body="ClientMetadata",
            security=(*_BEARER, ()),
        )
    },
    "client-configuration": {
        "get": Operation(
            "OAuth",
            "Read a registration (RFC 7592)",
            _SHOWN,
            {200: Success("the registration", "RegisteredClient")},
            errors=("invalid_token", "not_found"),
            path=("registered",),
            security=_BEARER,
        ),
        "put": Operation(
            "OAuth",
            "Replace a registration (RFC 7592)",
            "All metadata, with the `client_id`: what is left out has its default again. Other redirect URIs or "
            "another name end remembered consent.",
            {200: Success("the registration", "RegisteredClient")},
            errors=(*_ERRORS, "not_found"),
            path=("registered",),
            body="ClientUpdate",
            security=_BEARER,
        ),
        "delete": Operation(
            "OAuth",
            "Delete a registration (RFC 7592)",
            "Every token of the app ends at once.",
            {204: Success("deleted", "", ())},
            errors=("invalid_token", "not_found"),
            path=("registered",),
            security=_BEARER,
        ),
    },
}
