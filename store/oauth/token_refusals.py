"""Refusals of the token endpoint, by the words of its scripts. RFC 6749 5.2."""

from __future__ import annotations

from collections.abc import Mapping

from store.engine.scripts import Reply
from store.refused import Refused
from store.results import Window

NO_TARGET = "The person's consent does not cover this resource, or the resource is no longer there."

GONE_FOR_NOW = {
    "outsider": "The person is in none of the groups of this app any more.",
    "one_step": "This app now demands two-step verification: send the person to sign in again.",
}
"""Why a live refresh token gives no tokens at present, by the word of its script."""


def bad_code() -> Refused:
    """For a code that names no live grant of the app."""
    return Refused("invalid_grant", "The code is expired, used, or not one of this app's.")


def bad_refresh_token() -> Refused:
    """For a refresh token that names no live grant of the app."""
    return Refused("invalid_grant", "The refresh token is expired, used, revoked, or not one of this app's.")


def refuse_code(reply: Reply, window: Window) -> None:
    """Raises Refused if the answer refuses the exchange of a code."""
    _refuse(_CODE_REFUSALS, reply, window)


def refuse_refresh(reply: Reply, window: Window) -> None:
    """Raises Refused if the answer refuses a rotation."""
    _refuse(_REFRESH_REFUSALS, reply, window)


def refuse_exchange(reply: Reply, window: Window) -> None:
    """Raises Refused if the answer refuses a token exchange."""
    _refuse(_EXCHANGE_REFUSALS, reply, window)


def _refuse(refusals: Mapping[str, tuple[str, str]], reply: Reply, window: Window) -> None:
    if reply.word in refusals:
        code, description = refusals[reply.word]
        raise Refused(code, description, window=window)


_REFUSALS = {
    "invalid_target": ("invalid_target", NO_TARGET),
    "invalid_details": (
        "invalid_authorization_details",
        "The person did not grant exactly this budget. For a smaller one, exchange the token.",
    ),
}
_CODE_REFUSALS = _REFUSALS | {
    # RFC 6749 4.1.3: identical to the authorization request's.
    "redirect_mismatch": ("invalid_grant", "redirect_uri differs from the authorization request's."),
    # RFC 7636 4.6; RFC 9700 4.8.2: a verifier for a code without a challenge is a downgrade.
    "verifier_mismatch": ("invalid_grant", "code_verifier does not match the authorization request."),
    "key_mismatch": ("invalid_grant", "The authorization request named another key (dpop_jkt)."),
    "scope_withdrawn": ("invalid_grant", "The person has withdrawn the scopes of this code."),
}
_REFRESH_REFUSALS = _REFUSALS | {
    "invalid_scope": ("invalid_scope", "A refresh cannot widen the scope."),
    "scope_withdrawn": ("invalid_grant", "The person has withdrawn the scopes of this token."),
}
_EXCHANGE_REFUSALS = {
    "no_key": ("invalid_dpop_proof", "The subject token is bound to a key: the new token needs a proof."),
    "other_key": ("invalid_request", "The subject token is bound to another key."),
    "invalid_target": ("invalid_target", "The subject token is not for this resource."),
    "too_deep": ("invalid_request", "The subject token is already five exchanges away from the person's consent."),
    "invalid_scope": ("invalid_scope", "An exchange cannot widen the scope."),
    "too_long": ("invalid_request", "expires_in is longer than the subject token lives."),
    "invalid_details": (
        "invalid_authorization_details",
        "A part must be a total of a granted type, no larger than the budgets above it and only for their models.",
    ),
    "too_many": ("invalid_request", "The app has 100 delegated tokens of this person. End one, or wait."),
}
