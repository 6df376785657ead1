"""Parses the requests of a test strictly."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from handlers.core.amounts import spend_limit
from handlers.core.params import Params
from store.apps.api_record import DEFAULT_LIFETIME, ApiRegistration, check_foreign, scopes_in
from store.apps.apis import check_signed, resolve_scopes
from store.apps.client_ids import check_new_client_id, new_client_id
from store.apps.client_keys import authentication_of
from store.apps.profiles import NONE, brought_along
from store.apps.registration import Registration
from store.apps.sectors import PUBLIC
from store.apps.webhooks import check_webhook_secret
from store.credits.credits import MAX_AMOUNT
from store.crypto.jose.algorithms import ES256, RS256
from store.names import normalise_email
from store.refused import Refused
from store.seed.reading import SECRET
from store.webhooks.event_types import EVERY, chosen_types
from testkit.rehearsal import AutoConsent, Decides

FARTHEST = 3660 * 86_400
"""The farthest travel in one call, in seconds."""


def answer_of(params: Params, standing: AutoConsent, known: Collection[str]) -> AutoConsent:
    """The person and their answer; by default the present person. `known`: every scope there is. Raises Refused."""
    decides = params.get("answer") or "allow"
    if decides not in ("allow", "deny", "ask"):
        raise Refused("invalid_request", "answer is allow, deny or ask.")
    email = params.get("email") or standing.email
    if not email and decides != "ask":
        raise Refused("invalid_request", "email is missing.")
    scopes = scopes_of(params, known) if params.value("scopes") is not None else None
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


def listed_scopes(params: Params) -> str:
    """`scopes`, an array or names separated by spaces, as the latter. Raises Refused."""
    value = params.value("scopes")
    return value if isinstance(value, str) else " ".join(params.texts("scopes") or ())


def scopes_of(params: Params, known: Collection[str]) -> tuple[str, ...]:
    """`scopes`, each once; empty if missing. `known`: every scope there is. Raises Refused("invalid_scope")."""
    names = tuple(dict.fromkeys(listed_scopes(params).split()))
    if unknown := [name for name in names if name not in known]:
        raise Refused("invalid_scope", f"There is no scope {unknown[0][:64]}.")
    return names


def api_of(params: Params, base_url: str) -> tuple[ApiRegistration, str | None]:
    """The API that the fields of its record describe, and its chosen secret. Raises Refused("invalid_request")."""
    lifetime = params.whole("tokenLifetime") if params.value("tokenLifetime") is not None else DEFAULT_LIFETIME
    identifier, secret = params.require("identifier"), chosen_secret(params)
    try:
        check_foreign(identifier, base_url)
        made = ApiRegistration(
            identifier=identifier,
            name=params.get("name") or "An API in a test",
            scopes=scopes_in(params.value("scopes")),
            token_format=params.get("tokenFormat") or "opaque",
            signing_alg=params.get("signingAlg") or ES256,
            token_lifetime=lifetime,
        )
    except ValueError as error:
        raise Refused("invalid_request", str(error)) from None
    return made, secret


def chosen_secret(params: Params) -> str | None:
    """`client_secret`, if the test chose one. Raises Refused("invalid_request")."""
    secret = params.get("client_secret")
    if secret is not None and not SECRET.fullmatch(secret):
        raise Refused("invalid_request", "client_secret is 32 to 256 of A-Z, a-z, 0-9, _ and -.")
    return secret


def registration_of(params: Params, apis: Sequence[ApiRegistration]) -> tuple[Registration, str | None]:
    """The app that the fields of the registration record describe, and its chosen secret. Its scopes may be those of
    `apis`. Raises Refused("invalid_request" or "invalid_scope")."""
    public = flag(params, "public", False) if params.value("public") is not None else None
    secret, signing = chosen_secret(params), params.get("webhook_secret")
    given = {
        name: params.whole(name)
        for name in ("refreshRetrySeconds", "refreshLifetimeDays")
        if params.value(name) is not None
    }
    try:
        own, theirs = resolve_scopes(listed_scopes(params) or "profile", apis)
    except ValueError as error:
        raise Refused("invalid_scope", str(error)) from None
    events = params.texts("webhookEvents")
    try:
        profile = params.get("profile") or NONE
        brought = brought_along(profile, [name for name in params.names() if params.value(name) is not None])
        usual = brought.pop("auth_method", None)
        method = params.get("authMethod") or (usual if public is None else None)
        keys, uri = params.value("jwks"), params.get("jwksUri") or ""
        proof = authentication_of(method, public, keys, uri)
        if signing is not None:
            check_webhook_secret(signing)
        fields = {
            "client_id": params.get("client_id") or new_client_id(),
            "name": params.get("name") or "An app in a test",
            "redirect_uris": tuple(params.texts("redirect_uris") or ()),
            "scopes": own,
            "api_scopes": theirs,
            "pkce_required": flag(params, "pkceRequired", False),
            "hosted_storage": flag(params, "hostedStorage", False),
            "iss_in_response": flag(params, "issInResponse", True),
            "refresh_retry_seconds": given.get("refreshRetrySeconds", 0),
            "refresh_lifetime_days": given.get("refreshLifetimeDays", 0),
            "id_token_alg": params.get("idTokenAlg") or RS256,
            "post_logout_redirect_uris": tuple(params.texts("postLogoutRedirectUris") or ()),
            "backchannel_logout_uri": params.get("backchannelLogoutUri") or "",
            "subject_type": params.get("subjectType") or PUBLIC,
            "require_pushed": flag(params, "requirePushed", False),
            "dpop_required": flag(params, "dpopRequired", False),
            "second_step": flag(params, "secondStep", False),
            "device_grant": flag(params, "deviceGrant", True),
            "homepage": params.get("homepage") or "",
            "webhook_url": params.get("webhookUrl") or "",
            "webhook_events": EVERY if events is None else chosen_types(events),
            "profile": profile,
            **proof,
            **brought,
        }
        made = Registration(**fields)
        if secret is not None and not made.has_secret:
            raise ValueError("Only an app that authenticates by a secret has a client_secret.")
        check_new_client_id(made.client_id)
        made.check_redirect_uris()
        check_signed(made, apis)
        return made, secret
    except ValueError as error:
        raise Refused("invalid_request", str(error)) from None
