"""The schemas of requests and answers, field by field, for the OpenAPI document (JSON Schema 2020-12).

Schemas of answers are closed: no answer has a field that is not here. Schemas of requests are open, because unknown
parameters are ignored.
"""

from __future__ import annotations

from handlers.core.auth.client_credentials import ASSERTION_TYPE
from handlers.documents.documents import COLLECTION, DOCUMENT_ID
from handlers.oauth.requests import CHALLENGE
from handlers.oauth.token import VERIFIER
from handlers.openapi.ai_schemas import AI_SCHEMAS, MONEY_IS, PRICES
from handlers.openapi.budget_schemas import ASKED_DETAILS, CHOSEN, DETAILS
from handlers.openapi.client_operations import CLIENT_SCHEMAS
from handlers.openapi.exchange_schemas import ACT, ASSERTED, EXCHANGED, NARROWED, delegated
from handlers.openapi.shapes import (
    ADDRESS,
    ANY_SCOPES,
    COUNT,
    ETAG,
    FILLED,
    FLAG,
    MONEY,
    SCOPE_LIST,
    SCOPE_NAMES,
    TEXT,
    TIME,
    TOKEN_TYPE,
    Schema,
    exactly,
    listed,
    nullable,
    read,
    ref,
    written,
)
from store.credits.credits import MAX_AMOUNT
from store.lifetimes import ACCESS_TOKEN, SECOND
from store.oauth.device_requests import GRANT_TYPE, LETTERS

_ITEM = {"id": exactly(DOCUMENT_ID.pattern), "etag": ETAG, "size": COUNT, "createdAt": TIME, "updatedAt": TIME}
_CLIENT = {"client_id": FILLED}
_SECRET = {
    "client_secret": {**FILLED, "description": "in the body, or by HTTP Basic; none for a public app"},
    "client_assertion": {**FILLED, "description": "in place of a secret, for an app with private_key_jwt (RFC 7523)"},
    "client_assertion_type": {"const": ASSERTION_TYPE},
}
_DETAILS = {"authorization_details": ASKED_DETAILS}
_USED = {"calls": COUNT, "charged": COUNT, "tokens": written(PRICES), "webSearches": COUNT}
_USED_BY = {"day": {"type": "string", "format": "date"}, "model": TEXT, "client_id": FILLED}
_USAGE = written({"used": COUNT, "limit": COUNT})

_COORDINATE = exactly(r"[A-Za-z0-9_-]{43}")
_KEY = {"kid": _COORDINATE, "use": {"const": "sig"}}
_RSA_KEY = written({"kty": {"const": "RSA"}, "n": FILLED, "e": FILLED, **_KEY, "alg": {"const": "RS256"}})
_EC_KEY = written(
    {
        **{"kty": {"const": "EC"}, "crv": {"const": "P-256"}, "x": _COORDINATE, "y": _COORDINATE},
        **{**_KEY, "alg": {"const": "ES256"}},
    }
)
_ED_KEY = written(
    {"kty": {"const": "OKP"}, "crv": {"const": "Ed25519"}, "x": _COORDINATE, **_KEY, "alg": {"const": "EdDSA"}}
)

SCHEMAS: dict[str, Schema] = {
    # OAuth.
    "TokenRequest": {
        "oneOf": [
            read(
                {"grant_type": {"const": "authorization_code"}, "code": FILLED, "redirect_uri": FILLED},
                {**_CLIENT, **_SECRET, "code_verifier": exactly(VERIFIER.pattern), "resource": TEXT, **_DETAILS},
            ),
            read(
                {"grant_type": {"const": "refresh_token"}, "refresh_token": FILLED},
                {**_CLIENT, **_SECRET, "scope": ANY_SCOPES, "resource": TEXT, **_DETAILS},
            ),
            read(
                {"grant_type": {"const": GRANT_TYPE}, "device_code": FILLED},
                {**_CLIENT, **_SECRET, "resource": TEXT},
            ),
            read(EXCHANGED, {**_CLIENT, **_SECRET, **NARROWED, **_DETAILS}),
            read(ASSERTED, {**_CLIENT, **_SECRET, "scope": TEXT, "resource": TEXT}),
            read(
                {"grant_type": {"const": "client_credentials"}}, {**_CLIENT, **_SECRET, "resource": TEXT, "scope": TEXT}
            ),
        ]
    },
    "Tokens": {
        "anyOf": [
            written(
                {
                    "access_token": exactly("lk_at_[A-Za-z0-9_-]+"),
                    "token_type": TOKEN_TYPE,
                    "expires_in": {"type": "integer", "minimum": 0, "maximum": ACCESS_TOKEN // SECOND},
                    "refresh_token": exactly("lk_rt_[A-Za-z0-9_-]+"),
                    "scope": SCOPE_LIST,
                },
                {
                    "id_token": exactly(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"),
                    "authorization_details": DETAILS,
                },
            ),
            delegated(TOKEN_TYPE),
            # For an API, opaque or a JWT; a token of an app for itself, or for an assertion, comes alone.
            written(
                {"access_token": FILLED, "token_type": TOKEN_TYPE, "expires_in": COUNT, "scope": FILLED},
                {
                    "authorization_details": DETAILS,
                    "refresh_token": exactly("lk_rt_[A-Za-z0-9_-]+"),
                    "id_token": exactly(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"),
                },
            ),
        ]
    },
    "RevocationRequest": read({"token": FILLED}, {"token_type_hint": TEXT, **_CLIENT, **_SECRET}),
    "Nothing": written({}),
    "PushedRequest": {
        "oneOf": [
            read(
                {"response_type": {"const": "code"}, "redirect_uri": FILLED},
                {
                    "scope": ANY_SCOPES,
                    **_DETAILS,
                    **_CLIENT,
                    **_SECRET,
                    **dict.fromkeys(("state", "nonce", "prompt", "max_age", "acr_values", "claims"), TEXT),
                    **dict.fromkeys(("id_token_hint", "login_hint", "ui_locales", "response_mode"), TEXT),
                    **dict.fromkeys(("code_challenge", "dpop_jkt"), exactly(CHALLENGE.pattern)),
                    "code_challenge_method": {"const": "S256"},
                    "resource": TEXT,
                },
            ),
            read({"request": FILLED}, {**_CLIENT, **_SECRET}),
        ]
    },
    "PushedResponse": written({"request_uri": FILLED, "expires_in": COUNT}),
    "DeviceRequest": read(
        {},
        {
            **_CLIENT,
            **_SECRET,
            "scope": ANY_SCOPES,
            "resource": TEXT,
            "dpop_jkt": exactly(CHALLENGE.pattern),
            **_DETAILS,
        },
    ),
    "DeviceResponse": written(
        {
            "device_code": exactly("lk_dc_[A-Za-z0-9_-]+"),
            "user_code": exactly(f"[{LETTERS}]{{4}}-[{LETTERS}]{{4}}"),
            **dict.fromkeys(("verification_uri", "verification_uri_complete"), ADDRESS),
            **dict.fromkeys(("expires_in", "interval"), COUNT),
        }
    ),
    "IntrospectionRequest": read({"token": FILLED}, {"token_type_hint": TEXT, **_CLIENT, **_SECRET}),
    "Introspection": {
        "oneOf": [
            written({"active": {"const": False}}),
            written(
                {
                    "active": {"const": True},
                    "client_id": FILLED,
                    "sub": FILLED,
                    "scope": FILLED,
                    "iss": ADDRESS,
                    "aud": ADDRESS,
                    "exp": COUNT,
                },
                {
                    **{"iat": COUNT, "token_type": TOKEN_TYPE, "acr": FILLED, "auth_time": COUNT},
                    "cnf": written({"jkt": _COORDINATE}),
                    **{"authorization_details": DETAILS, "budget_used": COUNT, "act": ACT},
                },
            ),
        ]
    },
    "ResourceMetadata": written(
        {
            **dict.fromkeys(("resource", "resource_documentation"), ADDRESS),
            **{
                name: listed(TEXT)
                for name in (
                    *("authorization_servers", "scopes_supported", "bearer_methods_supported"),
                    *("dpop_signing_alg_values_supported", "authorization_details_types_supported"),
                )
            },
            "resource_name": TEXT,
        }
    ),
    "Userinfo": written(
        {
            "sub": exactly("[0-9a-f]{32}|pw_[A-Za-z0-9_-]{22}"),
        },
        {
            "email": TEXT,
            "email_verified": FLAG,
            "name": FILLED,
            "picture": ADDRESS,
            "groups": listed(FILLED),
        },
    ),
    "Decision": read(
        {"request_id": FILLED, "decision": {"enum": ["allow", "deny"]}},
        {
            "scopes": SCOPE_NAMES,
            "spend_limit": nullable({"type": "integer", "minimum": 0, "maximum": MAX_AMOUNT}),
            **CHOSEN,
            "next": TEXT,
        },
    ),
    "Redirect": written(
        {"redirect_to": TEXT}, {"form": {"type": "object", "additionalProperties": {"type": "string"}}}
    ),
    "Metadata": written(
        {
            **dict.fromkeys(("issuer", "jwks_uri"), ADDRESS),
            **{
                f"{name}_endpoint": ADDRESS
                for name in (
                    "authorization",
                    "device_authorization",
                    "pushed_authorization_request",
                    "token",
                    "revocation",
                    "introspection",
                    "userinfo",
                    "end_session",
                )
            },
            **{
                name: listed(TEXT)
                for name in (
                    *("scopes_supported", "response_types_supported", "response_modes_supported"),
                    *("grant_types_supported", "token_endpoint_auth_methods_supported"),
                    *(
                        f"{endpoint}_endpoint_auth_{what}_supported"
                        for endpoint in ("revocation", "introspection")
                        for what in ("methods", "signing_alg_values")
                    ),
                    *(
                        "token_endpoint_auth_signing_alg_values_supported",
                        "request_object_signing_alg_values_supported",
                    ),
                    *("code_challenge_methods_supported", "subject_types_supported", "acr_values_supported"),
                    *("id_token_signing_alg_values_supported", "claims_supported", "claim_types_supported"),
                    *("prompt_values_supported", "dpop_signing_alg_values_supported"),
                    "authorization_details_types_supported",
                )
            },
            **dict.fromkeys(
                (
                    *("require_pkce", "authorization_response_iss_parameter_supported", "claims_parameter_supported"),
                    "require_pushed_authorization_requests",
                    *(
                        "request_parameter_supported",
                        "request_uri_parameter_supported",
                        "require_signed_request_object",
                    ),
                    *("backchannel_logout_supported", "backchannel_logout_session_supported"),
                ),
                FLAG,
            ),
        },
        # Where the operator switched them on.
        {
            **{"registration_endpoint": ADDRESS, "client_id_metadata_document_supported": {"const": True}},
            "authorization_grant_profiles_supported": listed(TEXT),
        },
    ),
    "KeySet": written({"keys": listed({"oneOf": [_RSA_KEY, _EC_KEY, _ED_KEY]})}),
    **CLIENT_SCHEMAS,
    # Hosted documents.
    "Document": {"description": "any JSON value (RFC 8259), nested at most 200 deep"},
    "WrittenDocument": written({"collection": exactly(COLLECTION.pattern), **_ITEM}),
    "DocumentPage": written(
        {
            "items": listed(written(_ITEM, {"data": ref("Document")})),
            "nextCursor": {"type": ["string", "null"]},
        }
    ),
    "DocumentUsage": written(
        {
            "documents": _USAGE,
            "bytes": _USAGE,
            "maxDocumentBytes": COUNT,
            "collections": listed(written({"name": exactly(COLLECTION.pattern), "documents": COUNT, "bytes": COUNT})),
        }
    ),
    # Credits and apps.
    "Balance": written(
        {
            **{"spendable": MONEY, "held": MONEY, "paid": MONEY},
            **MONEY_IS,
            "appLimit": nullable(
                written({"limit": MONEY, "period": {"const": "month"}, "used": MONEY, "resetsAt": TIME})
            ),
        }
    ),
    "Usage": written({"items": listed(written(_USED, _USED_BY)), **MONEY_IS}),
    "ConnectedApps": written(
        {
            "apps": listed(
                written(
                    {
                        "client_id": FILLED,
                        "name": FILLED,
                        "homepage": TEXT,
                        "scopes": SCOPE_NAMES,
                        "connectedAt": TIME,
                        "lastUsedAt": nullable(TIME),
                    }
                )
            )
        }
    ),
    **AI_SCHEMAS,
    # Everywhere.
    "Status": written({"status": {"const": "ok"}}),
    "OpenAPI": {"type": "object"},
    "Error": written({"error": TEXT, "error_description": FILLED}, {"retryAfter": COUNT}),
}
