"""The schemas of authorization details (RFC 9396): budgets, as answers have them."""

from __future__ import annotations

from handlers.oauth.consent_budgets import LEAST_SECONDS, MOST_SECONDS
from handlers.oauth.details import MAX_DETAILS
from handlers.openapi.shapes import COUNT, FILLED, Schema, listed, written
from store.credits.credits import MAX_AMOUNT
from store.oauth.budgets import BUDGET_TYPES, CREDITS, INFERENCE, PERIODS

_LIMIT: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_AMOUNT, "description": "micro-dollars"}
_MORE: Schema = {
    "models": {**listed(FILLED), "description": "the models that it is for; all without it"},
    "expires_at": {**COUNT, "description": "seconds since 1970; only if the person set an end"},
}
DETAILS: Schema = listed(
    {
        "oneOf": [
            written({"type": {"const": CREDITS}, "limit": _LIMIT, "period": {"enum": [*PERIODS]}}, _MORE),
            written({"type": {"const": INFERENCE}, "budget": _LIMIT}, _MORE),
        ]
    }
)
"""Granted details, one of a type."""
ASKED_DETAILS: Schema = {
    "type": "string",
    "maxLength": MAX_DETAILS,
    "description": "the budgets that the app asks for, as JSON (RFC 9396)",
}
CHOSEN: Schema = {
    "budgets": {
        "type": "object",
        "properties": {kind: {"type": "integer", "minimum": 1, "maximum": MAX_AMOUNT} for kind in BUDGET_TYPES},
        "additionalProperties": False,
        "description": "lower amounts than the app asks for, in micro-dollars",
    },
    "budgets_last": {
        "description": "seconds until the budgets end; 0: no end",
        "anyOf": [{"const": 0}, {"type": "integer", "minimum": LEAST_SECONDS, "maximum": MOST_SECONDS}],
    },
}
"""What a decision makes of them."""
