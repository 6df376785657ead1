"""Assertions of identity providers at the token endpoint. RFC 7523 2.1, RFC 7521 4.1, and the ID-JAG draft."""

from __future__ import annotations

from contextlib import suppress
from typing import NoReturn

from handlers.core.api import ApiHandler
from handlers.core.auth.dpop import read_proof
from handlers.core.params import Params
from handlers.oauth.details import check_details
from handlers.oauth.requests import IGNORED, MAX_SCOPE, bounded
from store.apps.registration import Registration
from store.clock import wall
from store.crypto.jose import jws
from store.crypto.jose.refusal import JoseError
from store.errors import StoreError
from store.names import ASSERTION_GRANT
from store.oauth.assertions.assertion_grants import AssertedToken
from store.oauth.assertions.id_jag import ID_JAG, AssertionClaims, check_id_jag
from store.oauth.assertions.issuers import TrustedIssuer
from store.oauth.budgets import details_of
from store.oauth.resources import target_of
from store.refused import Refused

PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"
RETRY_SECONDS = 10
WHY = {
    "issuer": "no such issuer is trusted here",
    "client": "the issuer may not connect this app",
    "unknown_key": "the issuer has no such key",
    "signature": "the signature is wrong",
    "alg": "the issuer may not sign with this alg",
    "typ": f"typ is {ID_JAG}",
    "iss": "iss is not the issuer",
    "aud": "aud is the issuer identifier of this server, and nothing else",
    "client_id": "client_id is not the app that sends it",
    "exp": "exp is missing, or more than an hour away",
    "expired": "it has expired",
    "iat": "iat is missing, or more than an hour ago",
    "not_yet": "nbf or iat is in the future",
    "jti": "jti is missing or too long",
    "tenant": "the tenant is not the one of this server",
    "authorization_details": "it has authorization_details, which an assertion can't give here",
    "aud_tenant": "this server has no tenants",
    "email": "email is missing or malformed",
    "email_verified": "the issuer has not verified the address",
    "domain": "the issuer does not speak for addresses of this domain",
    "cnf": "cnf has a jkt and nothing else",
    "too_long": "it is too long",
}
"""Why an assertion is refused, for people, by the reason of a JoseError."""


async def accept_assertion(handler: ApiHandler, params: Params) -> None:
    """Answers an assertion with an access token (RFC 7521 4.1). Raises Refused."""
    site, store = handler.site, handler.store
    if not site.issuers.all:
        raise Refused("unsupported_grant_type")
    text, names = params.require("assertion"), bounded(params, "scope", MAX_SCOPE).split()
    target = target_of(params.several("resource"), site.base_url)
    if check_details(params, site.models.find):
        raise Refused("invalid_authorization_details", "An assertion gives no budget.")
    app = await _app(handler, params)
    window = await store.client_windows.take(app.client_id, app.calls_per_minute)
    try:
        trusted, claims = await _checked(handler, app, text)
        proof = None
        if app.dpop_required or claims.jkt or "DPoP" in handler.request.headers:
            handler.expect_proof()
            proof = read_proof(handler.request, site, app.rules)
        await store.subjects.prepare(app.sector)
        await store.self_registered.keep(app)
        wanted = tuple(dict.fromkeys(name for name in names if name != IGNORED))
        issued = await store.assertion_grants.issue(app, trusted, claims, target, wanted, site.base_url, proof)
    except Refused as refusal:
        refusal.window = refusal.window or window
        raise
    with suppress(StoreError):  # the next token notes it; this one must reach the app
        await store.self_registered.used(app)
    handler.write_window(window)
    _write(handler, issued, "DPoP" if proof else "Bearer")


async def _app(handler: ApiHandler, params: Params) -> Registration:
    """The app, which an issuer may connect, and which proves itself."""
    named = handler.client_id_of(params)
    # An app of a metadata document may begin here, if the operator named it.
    handler.begins = named is not None and handler.site.issuers.know(named)
    app = await handler.authenticate(params)
    assert app is not None
    # The draft, 8.1: for confidential clients only.
    if app.public or not handler.site.issuers.know(app.wire_id):
        raise Refused("unauthorized_client")
    return app


async def _checked(handler: ApiHandler, app: Registration, text: str) -> tuple[TrustedIssuer, AssertionClaims]:
    site, now = handler.site, wall.time()
    try:
        trusted = site.issuers.find(jws.unverified_sender(text).iss)
        if trusted is None:
            raise JoseError("issuer")
        if app.wire_id not in trusted.clients:
            raise JoseError("client")
        claims = await site.issuer_keys.verified(
            trusted, lambda known: check_id_jag(text, known, trusted, site.base_url, app.wire_id, now, app.rules)
        )
    except JoseError as error:
        _refuse(handler, app, error)
    return trusted, claims


def _refuse(handler: ApiHandler, app: Registration, error: JoseError) -> NoReturn:
    handler.store.security.note("assertion_refused", client=app.client_id, detail=error.reason)
    if error.reason == "no_keys":
        # The assertion may be right, so the app should come again with it.
        why = "The keys of the issuer could not be read. Try again later."
        raise Refused("temporarily_unavailable", why, retry_after=RETRY_SECONDS)
    why = WHY.get(error.reason, "it is malformed")
    raise Refused("invalid_grant", f"The assertion is refused: {why}.", value=error.reason)


def _write(handler: ApiHandler, issued: AssertedToken, token_type: str) -> None:
    handler.set_header("Pragma", "no-cache")  # RFC 6749 5.1
    answer = {
        "access_token": issued.access_token,
        "token_type": token_type,
        "expires_in": issued.expires_in,
        "scope": issued.scope,
    }
    if issued.budgets:
        answer["authorization_details"] = details_of(issued.budgets)
    handler.write_json(answer)


def supported(on: bool) -> tuple[list[str], dict[str, list[str]]]:
    """What the metadata says of this grant: grant types, and members of their own (the draft, 7.2)."""
    return ([ASSERTION_GRANT], {"authorization_grant_profiles_supported": [PROFILE]}) if on else ([], {})
