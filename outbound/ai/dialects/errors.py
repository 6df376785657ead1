"""Errors in the envelope of OpenAI's API, whose SDKs make their own exceptions of it, and errors of its servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from outbound.ai.failure import Code

_TYPES = {
    "invalid_token": ("authentication_error", "invalid_api_key"),
    "dpop_proof_refused": ("authentication_error", "invalid_dpop_proof"),
    "dpop_nonce_required": ("authentication_error", "use_dpop_nonce"),
    "payload_too_large": ("invalid_request_error", "request_too_large"),
    "app_paused": ("permission_error", "app_paused"),
    "insufficient_scope": ("permission_error", "insufficient_scope"),
    "not_found": ("invalid_request_error", "model_not_found"),
    "rate_limited": ("rate_limit_error", "rate_limit_exceeded"),
    "insufficient_credits": ("insufficient_quota", "insufficient_quota"),
    "app_spend_limit": ("insufficient_quota", "app_spend_limit"),
    "person_spend_limit": ("insufficient_quota", "person_spend_limit"),
    "budget_exhausted": ("insufficient_quota", "budget_exhausted"),
    "model_not_allowed": ("permission_error", "model_not_allowed"),
    "upstream_error": ("server_error", "upstream_error"),
    "upstream_timeout": ("server_error", "upstream_timeout"),
    "overloaded": ("server_error", "overloaded"),
}
_PATH = re.compile(r"[a-z_]{1,40}(?:(?:\.[a-z_]{1,40})|(?:\[[0-9]{1,6}\])){0,8}")
_BILLING = re.compile(r"credit balance|billing|organi[sz]ation|quota|account", re.IGNORECASE)
_SAID = {
    "context_length_exceeded": "The request is longer than this model reads.",
    "string_above_max_length": "A text of the request is longer than this model takes.",
    "unsupported_parameter": "A parameter is not supported by this model.",
    "unsupported_value": "A parameter has a value that this model does not take.",
    "invalid_function_parameters": "The schema of a tool is not one that this model takes.",
    "invalid_json_schema": "The JSON schema is not one that this model takes.",
    "invalid_image_format": "An image is not of a format that this model reads.",
    "image_too_large": "An image is too large for this model.",
}
"""What an app may read of a server's error, by the code of the error. The server's own text stays in our hands: it may
name accounts, addresses and keys."""


def envelope(code: str, status: int, message: str, param: str | None = None) -> dict[str, Any]:
    """An error of the catalogue, with its HTTP status, in that API's format."""
    kind, name = _TYPES.get(code, ("server_error" if status >= 500 else "invalid_request_error", code))
    return {"error": {"message": message, "type": kind, "param": param, "code": name}}


def read_failure(status: int, body: object) -> tuple[Code, str, str | None]:
    """The catalogue's code of a server's error, what an app may read of it, and the parameter it is about."""
    error = body.get("error") if isinstance(body, Mapping) else None
    error = error if isinstance(error, Mapping) else {}
    code, param = error.get("code"), error.get("param")
    if status in (429, 529):
        # The operator's own quota is used up: asking again does not help.
        return ("upstream_error" if code == "insufficient_quota" else "overloaded"), "", None
    if status not in (400, 413, 422) or _BILLING.search(str(error.get("message"))[:2000]):
        return "upstream_error", "", None
    where = param if isinstance(param, str) and _PATH.fullmatch(param) else None
    said = _SAID.get(code) if isinstance(code, str) else None
    said = said or "The model's server refused the request."
    return "invalid_request", f"{said} ({where})" if where else said, where
