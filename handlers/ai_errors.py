"""Errors in the envelope of the Anthropic Messages API, for its SDKs."""

from __future__ import annotations

from typing import Any

from handlers.errors import CATALOGUE
from store.refused import Refused

TYPES = {
    "invalid_token": "authentication_error",
    "insufficient_scope": "permission_error",
    "not_found": "not_found_error",
    "payload_too_large": "request_too_large",
    "insufficient_credits": "billing_error",
    "app_spend_limit": "billing_error",
    "rate_limited": "rate_limit_error",
    "upstream_timeout": "timeout_error",
    "overloaded": "overloaded_error",
}


def envelope(refusal: Refused) -> dict[str, Any]:
    """The error as that API says it."""
    entry = CATALOGUE[refusal.code]
    kind = TYPES.get(refusal.code, "invalid_request_error" if entry.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": refusal.description or entry.description}}
