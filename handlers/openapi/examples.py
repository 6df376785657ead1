"""Examples in the OpenAPI document: one request and one answer of each kind, as on the wire. A test checks each against
its schema."""

from __future__ import annotations

import json
from typing import Any

from handlers.ai.errors import envelope, openai_envelope
from handlers.core.errors import CATALOGUE, PUBLIC_NAME
from handlers.openapi.ai_examples import AI_EXAMPLES
from handlers.openapi.client_operations import CLIENT_EXAMPLES
from handlers.openapi.exchange_schemas import ASSERTION_EXAMPLE, DELEGATED_EXAMPLE, EXCHANGE_EXAMPLE
from handlers.openapi.shapes import Schema
from store.credits.credits import CURRENCY, SCALE
from store.refused import Refused

_SUB = "46436bfa66784fb34df513d5a6e1e058"
_AT, _LATER = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"
_MONEY = {"currency": CURRENCY, "scale": SCALE}
_USED = {
    **{"calls": 3, "charged": 4200},
    "tokens": {"input": 1200, "output": 600, "cacheRead": 0, "cacheWrite": 0, "cacheWrite1h": 0},
    "webSearches": 0,
}
_ACCESS, _REFRESH = "lk_at_an-access-token", "lk_rt_a-refresh-token"
_CLIENT = {"client_id": "notes-app", "client_secret": "a-client-secret"}
_CONFIDENTIAL = ["client_secret_basic", "client_secret_post", "private_key_jwt"]
_ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA", "Ed25519"]
_NOTE = {"text": "Ferns have no flowers.", "done": False}
_ITEM = {"id": "n1", "etag": '"1767225600001"', "size": 49, "createdAt": _AT, "updatedAt": _AT}
_REQUEST_ID = "4f2a9c0d7b6e8135"

BY_SCHEMA: dict[str, dict[str, Any]] = {
    **CLIENT_EXAMPLES,
    "TokenRequest": {
        "code": {
            "grant_type": "authorization_code",
            "code": "a-code",
            "redirect_uri": "https://app.example/callback",
            "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            **_CLIENT,
        },
        "refresh": {"grant_type": "refresh_token", "refresh_token": _REFRESH, **_CLIENT},
        "refresh-for-an-api": {
            "grant_type": "refresh_token",
            "refresh_token": _REFRESH,
            "resource": "https://orders.example",
            **_CLIENT,
        },
        "exchange": EXCHANGE_EXAMPLE,
        "assertion": ASSERTION_EXAMPLE,
        "itself": {"grant_type": "client_credentials", "resource": "https://orders.example", **_CLIENT},
    },
    "Tokens": {
        "tokens": {
            "access_token": _ACCESS,
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": _REFRESH,
            "scope": "profile data:read",
        },
        "of-an-api": {
            "access_token": _ACCESS,
            "token_type": "Bearer",
            "expires_in": 600,
            "refresh_token": _REFRESH,
            "scope": "orders:read",
        },
        "delegated": DELEGATED_EXAMPLE,
    },
    "RevocationRequest": {"token": {"token": _REFRESH, **_CLIENT}},
    "Nothing": {"revoked": {}},
    "PushedRequest": {
        "request": {
            "response_type": "code",
            "redirect_uri": "https://app.example/callback",
            "scope": "openid profile",
            "state": "af0ifjsldkj-7rTqVbNwE3uPzYcXh5sKd9mLg2oQ1",
            **_CLIENT,
        },
        "signed": {"request": "a.signed.request", **_CLIENT},
    },
    "PushedResponse": {
        "pushed": {"request_uri": "urn:ietf:params:oauth:request_uri:4cTJmRk3nEWw0pYzQe1uZA", "expires_in": 90}
    },
    "DeviceRequest": {"request": {"scope": "openid profile", **_CLIENT}},
    "DeviceResponse": {
        "codes": {
            "device_code": "lk_dc_a-device-code",
            "user_code": "WDJB-MJHT",
            "verification_uri": "https://id.example.org/device",
            "verification_uri_complete": "https://id.example.org/device?user_code=WDJB-MJHT",
            "expires_in": 600,
            "interval": 5,
        }
    },
    "IntrospectionRequest": {"token": {"token": _ACCESS, **_CLIENT}},
    "Introspection": {
        "live": {
            "active": True,
            "client_id": "9zYkT7bXcQf2LmA",
            "sub": _SUB,
            "scope": "profile data:read",
            "iss": "https://id.example.org",
            "aud": "https://id.example.org",
            "exp": 1772723229,
            "iat": 1772719629,
            "token_type": "Bearer",
            "acr": "1",
            "auth_time": 1772719599,
        },
        "budget": {
            "active": True,
            "client_id": "9zYkT7bXcQf2LmA",
            "sub": _SUB,
            "scope": "credits:spend",
            "iss": "https://id.example.org",
            "aud": "https://id.example.org",
            "exp": 1772723229,
            "iat": 1772719629,
            "token_type": "Bearer",
            "authorization_details": [{"type": "llm-inference", "budget": 100_000}],
            "budget_used": 41_250,
        },
        "dead": {"active": False},
    },
    "ResourceMetadata": {
        "metadata": {
            "resource": "https://id.example.org",
            "authorization_servers": ["https://id.example.org"],
            "scopes_supported": ["profile", "data:read"],
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": ["ES256", "RS256", "PS256", "EdDSA", "Ed25519"],
            "authorization_details_types_supported": ["credits", "llm-inference"],
            "resource_name": "Latchkey",
            "resource_documentation": "https://id.example.org/docs",
        }
    },
    "Userinfo": {
        "person": {
            "sub": _SUB,
            "email": "ada@example.com",
            "email_verified": True,
            "name": "Ada Lovelace",
            "picture": "https://id.example.org/picture/lk_pc_a-picture.svg",
        }
    },
    "Decision": {
        "allow": {"request_id": "a-request-id", "decision": "allow", "scopes": ["profile"], "spend_limit": 5_000_000},
        "deny": {"request_id": "a-request-id", "decision": "deny"},
    },
    "Redirect": {"allowed": {"redirect_to": "https://app.example/callback?code=a-code&state=a-state"}},
    "Metadata": {
        "metadata": {
            "issuer": "https://id.example.org",
            "authorization_endpoint": "https://id.example.org/oauth/authorize",
            "device_authorization_endpoint": "https://id.example.org/api/oauth/device_authorization",
            "pushed_authorization_request_endpoint": "https://id.example.org/api/oauth/par",
            "require_pushed_authorization_requests": False,
            "token_endpoint": "https://id.example.org/api/oauth/token",
            "revocation_endpoint": "https://id.example.org/api/oauth/revoke",
            "introspection_endpoint": "https://id.example.org/api/oauth/introspect",
            "introspection_endpoint_auth_methods_supported": _CONFIDENTIAL,
            "introspection_endpoint_auth_signing_alg_values_supported": _ALGORITHMS,
            "userinfo_endpoint": "https://id.example.org/api/oauth/userinfo",
            "end_session_endpoint": "https://id.example.org/oauth/logout",
            "jwks_uri": "https://id.example.org/.well-known/jwks.json",
            "scopes_supported": ["openid", "profile", "data:read"],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query", "form_post"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": [*_CONFIDENTIAL, "none"],
            "token_endpoint_auth_signing_alg_values_supported": _ALGORITHMS,
            "revocation_endpoint_auth_methods_supported": [*_CONFIDENTIAL, "none"],
            "revocation_endpoint_auth_signing_alg_values_supported": _ALGORITHMS,
            "code_challenge_methods_supported": ["S256"],
            "require_pkce": False,
            "authorization_response_iss_parameter_supported": True,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "EdDSA"],
            "dpop_signing_alg_values_supported": ["ES256", "RS256", "PS256", "EdDSA", "Ed25519"],
            "authorization_details_types_supported": ["credits", "llm-inference"],
            "acr_values_supported": ["1", "2", "phr"],
            "claims_supported": ["sub", "name", "email"],
            "claim_types_supported": ["normal"],
            "prompt_values_supported": ["none", "login", "consent", "select_account", "create"],
            "claims_parameter_supported": True,
            "request_parameter_supported": True,
            "request_uri_parameter_supported": False,
            "require_signed_request_object": False,
            "request_object_signing_alg_values_supported": _ALGORITHMS,
            "backchannel_logout_supported": True,
            "backchannel_logout_session_supported": True,
        }
    },
    "KeySet": {
        "keys": {
            "keys": [
                {
                    "kty": "EC",
                    "crv": "P-256",
                    "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
                    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
                    "kid": "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U",
                    "use": "sig",
                    "alg": "ES256",
                }
            ]
        }
    },
    "Document": {"note": _NOTE},
    "WrittenDocument": {"written": {"collection": "notes", **_ITEM}},
    "DocumentPage": {
        "ids": {"items": [_ITEM], "nextCursor": "bjE"},
        "with documents": {"items": [{**_ITEM, "data": _NOTE}], "nextCursor": None},
    },
    "DocumentUsage": {
        "usage": {
            "documents": {"used": 1, "limit": 10_000},
            "bytes": {"used": 49, "limit": 67_108_864},
            "maxDocumentBytes": 262_144,
            "collections": [{"name": "notes", "documents": 1, "bytes": 49}],
        }
    },
    "Balance": {
        "with a limit": {
            **{"spendable": 4_998_500, "held": 1500, "paid": 5_000_000, **_MONEY},
            "appLimit": {"limit": 2_000_000, "period": "month", "used": 1500, "resetsAt": _LATER},
        },
        "without": {"spendable": 0, "held": 0, "paid": 0, **_MONEY, "appLimit": None},
    },
    "Usage": {
        "by day": {"items": [{"day": "2026-01-31", **_USED}], **_MONEY},
        "by model": {"items": [{"model": "latchkey-echo", **_USED}], **_MONEY},
        "by app": {"items": [{"client_id": "calendar-app", **_USED}], **_MONEY},
    },
    "ConnectedApps": {
        "apps": {
            "apps": [
                {
                    "client_id": "calendar-app",
                    "name": "Calendar",
                    "homepage": "https://calendar.example",
                    "scopes": ["profile"],
                    "connectedAt": _AT,
                    "lastUsedAt": None,
                }
            ]
        }
    },
    **AI_EXAMPLES,
    "Status": {"well": {"status": "ok"}},
    "OpenAPI": {"document": {"openapi": "3.1.0", "info": {"title": "Latchkey", "version": "1"}, "paths": {}}},
    "Page": {"page": "<!doctype html><title>Allow Notes? · Latchkey</title>"},
}
"""Examples by the name of their schema."""

EVENTS = """\
event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1},\
"credits":{"charged":10,"remaining":4999990}}

"""
"""An example of a stream of events."""

OF_PARAMETERS: dict[str, Any] = {
    **{"from": "2026-01-01", "to": "2026-01-31", "group": "model"},
    "dpop": "the signed proof of this request",
    "dpop_jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I",
    "authorization_details": '[{"type":"credits","limit":3000000,"period":"month"}]',
    "collection": "notes",
    "docId": "n1",
    "registered": "9zYkT7bXcQf2LmA",
    "model": "latchkey-echo",
    "response": "resp_1",
    "openai-beta": "a-beta=v1",
    "prefix": "n",
    "limit": 50,
    "cursor": "bjE",
    "include": "data",
    "if-match": '"1767225600001"',
    "if-none-match": "*",
    "idempotency-key": "order-1042",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "interleaved-thinking-2025-05-14",
    "client_id": "notes-app",
    "request": "a.signed.request",
    "redirect_uri": "https://app.example/callback",
    "response_type": "code",
    "scope": "profile data:read",
    "state": "af0ifjsldkj-7rTqVbNwE3uPzYcXh5sKd9mLg2oQ1",
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
    "nonce": "n-0S6_WzA2Mj",
    "max_age": 3600,
    "acr_values": "2",
    "claims": '{"id_token":{"email":null}}',
    "id_token_hint": "an-id-token",
    "asking_client_id": "notes-app",
    "asking_state": "af0ifjsldkj",
    "post_logout_redirect_uri": "https://app.example/bye",
    "login_hint": "ada@example.com",
    "ui_locales": "pt-BR en",
    "response_mode": "query",
    "prompt": "consent",
    "resource": ["https://orders.example"],
}


def examples_of(schema: str) -> dict[str, Any]:
    """The examples of a schema, by name. Raises LookupError if it has none."""
    if schema not in BY_SCHEMA:
        raise LookupError(f"handlers/openapi/examples.py has no example of {schema}")
    return BY_SCHEMA[schema]


def as_form(example: dict[str, Any], form: Schema) -> dict[str, Any]:
    """The example as a form of this schema: lists and objects become JSON text."""
    parts = form.get("oneOf", [form])
    texts = {name for one in parts for name, field in one["properties"].items() if "contentMediaType" in field}
    return {name: json.dumps(value) if name in texts else value for name, value in example.items()}


def shown(examples: dict[str, Any]) -> dict[str, Any]:
    """The examples in OpenAPI's notation, or only the example if there is one."""
    if len(examples) == 1:
        return {"example": next(iter(examples.values()))}
    return {"examples": {name: {"value": value} for name, value in examples.items()}}


def of_error(code: str, envelope_of: str = "") -> dict[str, Any]:
    """The body of an error from the catalogue, in the envelope of an API of models."""
    if envelope_of == "openai":
        return openai_envelope(Refused(code))
    if envelope_of:
        return {**envelope(Refused(code)), "request_id": _REQUEST_ID}
    body: dict[str, Any] = {
        "error": PUBLIC_NAME.get(code, code),
        "error_description": CATALOGUE[code].description,
    }
    return {**body, "retryAfter": 17} if code == "rate_limited" else body
