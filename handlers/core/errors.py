"""The error catalogue: every code that leaves this server, its HTTP status and default text. SPEC 7."""

from __future__ import annotations

from dataclasses import dataclass

from tornado.web import HTTPError

from store.crypto.passwords import HasherBusy
from store.errors import KeyMissing, StoreFull, StoreUnavailable, Unacknowledged
from store.phrases import Phrase
from store.refused import Refused, SignedOut, Unproved

REAUTH_FIRST = Phrase("Confirm it's you first.")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """An error, as clients see it."""

    status: int
    description: str


CATALOGUE: dict[str, CatalogueEntry] = {
    "invalid_request": CatalogueEntry(400, Phrase("A parameter is missing or malformed.")),
    "invalid_grant": CatalogueEntry(400, "The grant is expired, used or revoked, or does not match the request."),
    "invalid_scope": CatalogueEntry(400, Phrase("A scope is unknown or was not registered by the app.")),
    "invalid_authorization_details": CatalogueEntry(
        400, Phrase("This server doesn't understand how the app asks for a budget.")
    ),
    "invalid_target": CatalogueEntry(400, "The resource is unknown, or does not have these scopes."),
    "invalid_redirect_uri": CatalogueEntry(400, "A redirect URI cannot be registered."),
    "invalid_client_metadata": CatalogueEntry(400, "The client metadata cannot be registered."),
    "unauthorized_client": CatalogueEntry(400, "The app may not use this grant type."),
    "invalid_dpop_proof": CatalogueEntry(
        400, "The DPoP proof is missing, was used before, or does not match the request."
    ),
    "use_dpop_nonce": CatalogueEntry(400, "The DPoP proof needs the nonce of this answer's DPoP-Nonce header."),
    "invalid_client": CatalogueEntry(401, "Client authentication failed."),
    "invalid_token": CatalogueEntry(401, "The access token is expired, revoked or not valid."),
    "dpop_proof_refused": CatalogueEntry(
        401, "The DPoP proof is missing, was used before, or does not match the request."
    ),
    "dpop_nonce_required": CatalogueEntry(401, "The DPoP proof needs the nonce of this answer's DPoP-Nonce header."),
    "app_paused": CatalogueEntry(403, "The person has paused this app."),
    "insufficient_scope": CatalogueEntry(403, "The token lacks the scope that this call needs."),
    "insufficient_role": CatalogueEntry(403, "The role of this operator key does not allow this."),
    "rate_limited": CatalogueEntry(429, Phrase("Too many requests. Try again later.")),
    "access_denied": CatalogueEntry(403, Phrase("The person or the server denied the request.")),
    "unsupported_response_type": CatalogueEntry(400, "The only response type is code."),
    "unsupported_grant_type": CatalogueEntry(
        400,
        "The grant types are authorization_code, refresh_token, client_credentials, "
        "urn:ietf:params:oauth:grant-type:device_code, urn:ietf:params:oauth:grant-type:token-exchange and, where the "
        "operator trusts an issuer of assertions, urn:ietf:params:oauth:grant-type:jwt-bearer.",
    ),
    "authorization_pending": CatalogueEntry(400, "The person has not decided yet. Poll again after the interval."),
    "slow_down": CatalogueEntry(400, "This poll came too early. Wait 5 seconds longer before each of the next ones."),
    "device_denied": CatalogueEntry(400, "The person denied the request."),
    "expired_token": CatalogueEntry(400, "The device code has expired. Begin again if the person wants to."),
    "insufficient_credits": CatalogueEntry(402, "The person's credits do not cover this."),
    "app_spend_limit": CatalogueEntry(402, "This app has reached the person's spending limit for this month."),
    "budget_exhausted": CatalogueEntry(402, "The budget that the person granted this app does not cover this."),
    "model_not_allowed": CatalogueEntry(403, "The person granted this app a budget for other models."),
    "person_spend_limit": CatalogueEntry(402, "This person has reached the spending limit for today (UTC)."),
    "conflict": CatalogueEntry(409, "Another resource has this value already."),
    "idempotency_in_progress": CatalogueEntry(409, "The call with this Idempotency-Key is still in progress."),
    "idempotency_reply_gone": CatalogueEntry(
        409, "The call with this Idempotency-Key was made; its reply is no longer kept."
    ),
    "idempotency_mismatch": CatalogueEntry(422, "This Idempotency-Key was used with another request."),
    "not_implemented": CatalogueEntry(501, "This server does not support this operation."),
    "upstream_error": CatalogueEntry(502, "The model's server failed. Nothing was charged."),
    "upstream_timeout": CatalogueEntry(504, "The model's server took too long. Nothing was charged."),
    "overloaded": CatalogueEntry(529, "The model's server is overloaded. Nothing was charged."),
    "login_required": CatalogueEntry(401, Phrase("The person has to sign in.")),
    "unmet_authentication_requirements": CatalogueEntry(400, Phrase("The sign-in does not have the requested level.")),
    "request_not_supported": CatalogueEntry(400, "This app has no keys, so it can't sign requests."),
    "request_uri_not_supported": CatalogueEntry(400, "request_uri is not supported."),
    "invalid_request_object": CatalogueEntry(400, Phrase("The signed request is not valid.")),
    "invalid_request_uri": CatalogueEntry(
        400, Phrase("This sign-in has expired or was started in another browser. Go back to the app and start again.")
    ),
    "registration_not_supported": CatalogueEntry(400, "registration is not supported."),
    "interaction_required": CatalogueEntry(403, Phrase("The person has to show a second step.")),
    "consent_required": CatalogueEntry(403, Phrase("The person has to consent.")),
    "not_found": CatalogueEntry(404, Phrase("There is nothing here.")),
    "method_not_allowed": CatalogueEntry(405, Phrase("This address does not support this method.")),
    "precondition_failed": CatalogueEntry(412, "The document does not match the condition."),
    "document_too_large": CatalogueEntry(413, "The document is too large."),
    "quota_exceeded": CatalogueEntry(507, "The app has used all the storage it may have for this person."),
    "payload_too_large": CatalogueEntry(413, Phrase("The request is too large.")),
    "unsupported_media_type": CatalogueEntry(
        415, Phrase("Send application/json or application/x-www-form-urlencoded.")
    ),
    "temporarily_unavailable": CatalogueEntry(
        503, Phrase("The service can't do this right now. Before you try again, check whether it was done.")
    ),
    "server_error": CatalogueEntry(500, Phrase("Something went wrong on our side.")),
}

UNAVAILABLE = "temporarily_unavailable"
NOT_LOGGED = frozenset(
    (
        *(
            "access_denied",
            "consent_required",
            "interaction_required",
            "login_required",
            "not_found",
            "precondition_failed",
            "server_error",
        ),
        *("authorization_pending", "device_denied", "expired_token", "slow_down", UNAVAILABLE),
    )
)
"""Codes that an app's log leaves out: a person's decision, what the app asked in order to find out, what devices hear
while they poll, and our own trouble."""
FULL = 30
"""Seconds before a retry if the store is full: an operator must make room first."""
NO_KEY = 30
"""Seconds before a retry without a secret key: an operator must give it to the server first."""

# These codes are renamed on the way out: the interface has one code for every malformed request, and the same codes for
# proofs at the token endpoint and at resource calls (RFC 9449 7.1), and for a denial on a page and at a poll.
PUBLIC_NAME = {
    "payload_too_large": "invalid_request",
    "unsupported_media_type": "invalid_request",
    "dpop_proof_refused": "invalid_dpop_proof",
    "dpop_nonce_required": "use_dpop_nonce",
    "device_denied": "access_denied",
}

_BY_STATUS = {400: "invalid_request", 403: "access_denied", 404: "not_found", 405: "method_not_allowed"}


def refusal_of(status: int, error: BaseException | None) -> Refused:
    """The catalogue's refusal for any exception of a handler."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, SignedOut):
        return Refused("login_required")
    if isinstance(error, StoreFull):
        return Refused("temporarily_unavailable", Phrase("The store is full. Nothing was done."), retry_after=FULL)
    if isinstance(error, Unproved):
        return Refused("access_denied", REAUTH_FIRST)
    if isinstance(error, KeyMissing):
        return Refused("temporarily_unavailable", retry_after=NO_KEY)
    if isinstance(error, (StoreUnavailable, HasherBusy)):
        return Refused("temporarily_unavailable", retry_after=1)
    if isinstance(error, HTTPError) or error is None:
        return Refused(_BY_STATUS.get(status, "invalid_request" if 400 <= status < 500 else "server_error"))
    return Refused("server_error")


def cause_of(error: BaseException | None) -> str:
    """The cause of an `UNAVAILABLE`, in one word for the metrics."""
    if isinstance(error, StoreUnavailable):
        return "replicas" if isinstance(error, Unacknowledged) else "full" if isinstance(error, StoreFull) else "store"
    if isinstance(error, KeyMissing):
        return "keys"
    return "passwords" if isinstance(error, HasherBusy) else "places"


def is_defect(error: BaseException | None) -> bool:
    """Whether the log needs a traceback: everything except expected errors."""
    expected = (Refused, SignedOut, Unproved, StoreUnavailable, KeyMissing, HasherBusy, HTTPError)
    return not isinstance(error, expected)
