"""Errors in the formats of the Messages API and of the OpenAI API, for their SDKs."""

from __future__ import annotations

import math
from typing import Any

from handlers.core.errors import CATALOGUE, PUBLIC_NAME
from outbound.ai.dialects import errors as openai
from store.refused import Refused

TYPES = {
    "invalid_token": "authentication_error",
    "dpop_proof_refused": "authentication_error",
    "dpop_nonce_required": "authentication_error",
    "app_paused": "permission_error",
    "insufficient_scope": "permission_error",
    "not_found": "not_found_error",
    "payload_too_large": "request_too_large",
    "insufficient_credits": "billing_error",
    "app_spend_limit": "billing_error",
    "person_spend_limit": "billing_error",
    "budget_exhausted": "billing_error",
    "model_not_allowed": "permission_error",
    "rate_limited": "rate_limit_error",
    "upstream_timeout": "timeout_error",
    "overloaded": "overloaded_error",
}
OTHERS = ("invalid_request_error", "api_error")
"""The types of all other errors: the app's fault, and ours."""


def kind_of(code: str) -> str:
    """The Messages API's type for an error of the catalogue."""
    return TYPES.get(code, OTHERS[CATALOGUE[code].status >= 500])


def envelope(refusal: Refused) -> dict[str, Any]:
    """The error in that API's format. `code` is ours: several codes share a type, and SDKs pass other members on."""
    message = refusal.description or CATALOGUE[refusal.code].description
    code = PUBLIC_NAME.get(refusal.code, refusal.code)
    return {"type": "error", "error": {"type": kind_of(refusal.code), "message": message, "code": code}}


CHARGED = {
    "upstream_error": "The model's server failed in the middle of the call. What it had used until then was charged.",
    "upstream_timeout": "The call took too long. What it had used until then was charged.",
    "overloaded": "The model's server gave up in the middle of the call. What it had used until then was charged.",
}
"""What an app learns of a call that failed after it was accepted, by code."""


def seconds_of(retry_after: float | None) -> int | None:
    """Whole seconds after which a retry makes sense, at least one."""
    return None if retry_after is None else max(1, math.ceil(retry_after))


def openai_envelope(refusal: Refused) -> dict[str, Any]:
    """The error in the format of the OpenAI API; `param` names the field that is wrong."""
    entry = CATALOGUE[refusal.code]
    return openai.envelope(refusal.code, entry.status, refusal.description or entry.description, refusal.param)
