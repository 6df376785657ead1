"""Parses the requests of a test strictly."""

from __future__ import annotations

import re
from typing import cast

from handlers.core.amounts import spend_limit
from handlers.core.params import Params
from store.apps.client_ids import check_free_of_people, new_client_id
from store.apps.registration import Registration
from store.apps.sectors import PUBLIC
from store.apps.webhooks import check_webhook_secret
from store.credits.credits import MAX_AMOUNT
from store.crypto.jose.algorithms import RS256
from store.names import normalise_email, parse_scope
from store.refused import Refused
from testkit.rehearsal import AutoConsent, Decides

FARTHEST = 3660 * 86_400
"""The farthest travel in one call, in seconds."""
_SECRET = re.compile(r"[A-Za-z0-9_-]{32,256}")


def answer_of(params: Params, standing: AutoConsent) -> AutoConsent:
    """The person and their answer; by default the present person. Raises Refused."""
    decides = params.get("answer") or "allow"
    if decides not in ("allow", "deny", "ask"):
        raise Refused("invalid_request", "answer is allow, deny or ask.")
    email = params.get("email") or standing.email
    if not email and decides != "ask":
        raise Refused("invalid_request", "email is missing.")
    scopes = scopes_of(params) if params.value("scopes") is not None else None
    return AutoConsent(checked_email(email) if email else "", cast(Decides, decides), scopes, spend_limit(params))


def checked_email(text: str) -> str:
    """The address in its stored form. Raises Refused("invalid_request")."""
    try:
        return normalise_email(text)
    except ValueError as error:
        raise Refused("invalid_request", str(error)) from None


def email_of(params: Params) -> str:
    """The address of the person in the request. Raises Refused("invalid_request")."""
    return checked_email(params.require("email"))


def number(params: Params, name: str) -> float:
    """A number of time units; 0 if missing. Raises Refused("invalid_request")."""
    value = params.value(name)
    if value is None:
        return 0
    if type(value) not in (int, float) or not 0 <= value <= FARTHEST:
        raise Refused("invalid_request", f"{name} must be a number, not below zero: travel goes forward.")
    return float(value)


def flag(params: Params, name: str, default: bool) -> bool:
    """A boolean. Raises Refused("invalid_request")."""
    value = params.value(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Refused("invalid_request", f"{name} must be true or false.")
    return value


def amount_of(params: Params, name: str, least: int) -> int:
    """An amount in micro-dollars. Raises Refused("invalid_request")."""
    value = params.whole(name)
    if not least <= value <= MAX_AMOUNT:
        raise Refused("invalid_request", f"{name} must be {least} to {MAX_AMOUNT} micro-dollars.")
    return value


def scopes_of(params: Params) -> tuple[str, ...]:
    """`scopes`: an array, or names separated by spaces; empty if missing. Raises Refused."""
    value = params.value("scopes")
    if not isinstance(value, str):
        value = " ".join(params.texts("scopes") or ())
    try:
        return parse_scope(value) if value else ()
    except ValueError as error:
        raise Refused("invalid_scope", str(error)) from None


def registration_of(params: Params) -> tuple[Registration, str | None]:
    """The app that the fields of the registration record describe, and its chosen secret. Raises
    Refused("invalid_request" or "invalid_scope")."""
    public, secret = flag(params, "public", False), params.get("client_secret")
    if secret is not None and (public or not _SECRET.fullmatch(secret)):
        raise Refused("invalid_request", "client_secret is 32 to 256 of A-Z, a-z, 0-9, _ and -; a public app has none.")
    signing = params.get("webhook_secret")
    given = {
        name: params.whole(name)
        for name in ("refreshRetrySeconds", "refreshLifetimeDays")
        if params.value(name) is not None
    }
    try:
        if signing is not None:
            check_webhook_secret(signing)
        made = Registration(
            client_id=params.get("client_id") or new_client_id(),
            name=params.get("name") or "An app in a test",
            redirect_uris=tuple(params.texts("redirect_uris") or ()),
            scopes=scopes_of(params) or ("profile",),
            public=public,
            pkce_required=flag(params, "pkceRequired", False),
            hosted_storage=flag(params, "hostedStorage", False),
            iss_in_response=flag(params, "issInResponse", True),
            refresh_retry_seconds=given.get("refreshRetrySeconds", 0),
            refresh_lifetime_days=given.get("refreshLifetimeDays", 0),
            id_token_alg=params.get("idTokenAlg") or RS256,
            post_logout_redirect_uris=tuple(params.texts("postLogoutRedirectUris") or ()),
            backchannel_logout_uri=params.get("backchannelLogoutUri") or "",
            subject_type=params.get("subjectType") or PUBLIC,
            dpop_required=flag(params, "dpopRequired", False),
            homepage=params.get("homepage") or "",
            webhook_url=params.get("webhookUrl") or "",
        )
        check_free_of_people(made.client_id)
        made.check_redirect_uris()
        return made, secret
    except ValueError as error:
        raise Refused("invalid_request", str(error)) from None
