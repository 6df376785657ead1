"""The tokens of a played person: a sign-in, a consent and an exchange in one call, by the product's own scripts."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from handlers.core.params import Params
from handlers.oauth.requests import check_api, check_request
from handlers.oauth.token import token_answer
from store import keys
from store.accounts.signin.sessions import SecondStepNeeded, Session
from store.apps.api_record import first_id
from store.apps.registration import Registration
from store.crypto.dpop import DpopProof
from store.crypto.seal import new_id
from store.errors import wrapped
from store.lifetimes import AUTHORIZE, OAUTH
from store.oauth.authorizations import Pending
from store.oauth.resources import OWN, scopes_of_apis, targets_of
from store.oauth.tokens import s256
from store.refused import Refused, SignedOut
from testkit.rehearsal import VISITOR, Rehearsal


@dataclass(frozen=True, slots=True)
class WantedTokens:
    """What a test asks for. Without `scopes`, everything that the app registered at these resources. `jkt` is the
    thumbprint of the key that the tokens are bound to, empty for bearer tokens; `nonce` goes into the ID token."""

    email: str
    client_id: str
    scopes: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    jkt: str = ""
    nonce: str = ""


async def issue(rehearsal: Rehearsal, wanted: WantedTokens) -> dict[str, Any]:
    """The token response that the app would get; without an ID token for a person who needs a passkey. Raises Refused
    as the authorization and the token endpoint would, StoreUnavailable."""
    store, base = rehearsal.store, rehearsal.site.base_url
    app = await rehearsal.active_app(wanted.client_id)
    if app.dpop_required and not wanted.jkt:
        raise Refused("invalid_request", "This app gets tokens that are bound to a key: name one.")
    verifier = secrets.token_urlsafe(48)
    sent: dict[str, Any] = {
        "response_type": "code",
        "scope": " ".join(wanted.scopes or registered_at(app, wanted.resources, base)),
        "state": "a-test",
        "code_challenge": s256(verifier),
        "code_challenge_method": "S256",
        "resource": list(wanted.resources),
        "nonce": wanted.nonce,
        "dpop_jkt": wanted.jkt,
    }
    request, _ = check_request(app, app.redirect_uris[0], Params(sent, typed=True), base)
    request = await check_api(store.apis, app, request)
    token_type = "DPoP" if wanted.jkt else "Bearer"
    try:
        session = await rehearsal.signed_in(wanted.email)
    except SecondStepNeeded:
        # Nobody here has the passkey. The operator can give these tokens, but no ID token without a sign-in.
        user, facts = await rehearsal.user(wanted.email), {"api": request.api, "jkt": wanted.jkt, "issuer": base}
        await store.self_registered.keep(app)
        minted = await store.tokens.mint(user, app, request.scopes, **facts)
        return await token_answer(rehearsal.site, app, minted, None, token_type)
    except SignedOut:
        raise Refused("not_found", "No such active person.") from None
    async with uncounted(rehearsal, session):
        begun = await store.authorizations.begin(session, request, always_ask=True)
        assert isinstance(begun, Pending)
        decided = await store.authorizations.decide(
            session, app, begun.request_id, allow=True, scopes=None, visitor=VISITOR
        )
        if decided.connected:
            store.app_stats.connected(app.client_id)
        assert decided.code is not None
        # No proof was sent, but each counts once, so this one has a number of its own.
        proof = DpopProof(wanted.jkt, new_id(), None) if wanted.jkt else None
        signer = await store.id_tokens.signer(app.id_token_alg) if "openid" in app.scopes else None
        response = await store.tokens.exchange(app, decided.code, request.redirect_uri, verifier, proof, issuer=base)
    return await token_answer(rehearsal.site, app, response, signer, token_type)


def registered_at(app: Registration, resources: Sequence[str], base: str) -> tuple[str, ...]:
    """The plain names of the scopes that the app registered at these resources; without any, all of its scopes."""
    targets = targets_of(resources, base)
    if targets == {OWN}:
        return app.scopes
    theirs = scopes_of_apis(app).values()
    names = (one.name for one in theirs if not targets or first_id(one.api) in targets)
    return (*app.scopes, *dict.fromkeys(names))


@asynccontextmanager
async def uncounted(rehearsal: Rehearsal, session: Session) -> AsyncIterator[None]:
    """A block whose requests count for no limit of the person: the test makes them, not the app."""
    client = rehearsal.store.client
    windows = [keys.limit(session.user, group.name) for group in (AUTHORIZE, OAUTH)]
    async with rehearsal.alone_with(session.user):
        with wrapped():
            kept = [(one, await client.get(one), await client.pttl(one)) for one in windows]
            await client.delete(*windows)
        try:
            yield
        finally:
            with wrapped():
                await client.delete(*windows)
                for window, figures, left in kept:
                    if figures is not None:
                        await client.set(window, figures, px=left)
