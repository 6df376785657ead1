"""POST /api/oauth/token. SPEC 4.3, OpenID Connect Core 3.1.3, 12, RFC 8628 3.4, RFC 8693 2, RFC 7523
2.1."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Any

from handlers.core.api import ApiHandler
from handlers.core.params import Params
from handlers.core.site import Site
from handlers.oauth.delegated.assertion_grant import accept_assertion
from handlers.oauth.delegated.token_exchange import exchange_token
from handlers.oauth.details import check_details
from handlers.oauth.device.authorization import check_device_grant
from handlers.oauth.requests import IGNORED, MAX_SCOPE, bounded, without_ungiven
from store.apps.registration import Registration
from store.crypto.dpop import DpopProof
from store.crypto.signing_keys import Signer
from store.errors import StoreError
from store.names import ASSERTION_GRANT, EXCHANGE_GRANT, parse_scope
from store.oauth.budgets import details_of
from store.oauth.device_requests import GRANT_TYPE
from store.oauth.id_tokens import TYPE, id_token_claims
from store.oauth.resources import apart, api_of, plain_names, target_of
from store.oauth.tokens import TokenResponse
from store.refused import Refused, UnknownUser

# RFC 7636 4.1: 43 to 128 unreserved characters.
VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


class TokenHandler(ApiHandler):
    """Exchanges a code, rotates a refresh token, or answers the poll of a device."""

    door = "token"

    async def post(self) -> None:
        """Answers with the token response of SPEC 2.2."""
        if "DPoP" in self.request.headers:
            self.expect_proof()
        params = self.body()
        grant_type = params.require("grant_type")
        if grant_type == "client_credentials":
            await self._for_itself(params)
            return
        if grant_type == EXCHANGE_GRANT:
            await exchange_token(self, params)
            return
        if grant_type == ASSERTION_GRANT:
            await accept_assertion(self, params)
            return
        if grant_type not in ("authorization_code", "refresh_token", GRANT_TYPE):
            raise Refused("unsupported_grant_type")
        # Malformed requests are refused before the app is authenticated and before any window counts them.
        base = self.site.base_url
        target = target_of(params.several("resource"), base)
        details = check_details(params, self.site.models.find, granted=True)
        if grant_type == "authorization_code":
            code, redirect_uri = params.require("code"), params.require("redirect_uri")
            verifier = _check_verifier(params.get("code_verifier"))
            app = await self._app(params)
            proof = self.sent_proof(app, required=app.dpop_required)
            call = partial(self.store.tokens.exchange, app, code, redirect_uri, verifier, proof)
        elif grant_type == GRANT_TYPE:
            device_code, app = params.require("device_code"), await self._app(params)
            check_device_grant(app)
            proof = self.sent_proof(app, required=app.dpop_required)
            call = partial(self.store.device_requests.exchange, app, device_code, proof)
        else:
            refresh_token, names = params.require("refresh_token"), bounded(params, "scope", MAX_SCOPE)
            app = await self._app(params)
            wanted, proof = _check_scope(app, names), self.sent_proof(app, required=app.dpop_required)
            call = partial(self.store.tokens.refresh, app, refresh_token, wanted, proof)
        # What signs and names comes first: after the exchange, a store that is away would cost the person the tokens.
        signer = await self.store.id_tokens.signer(app.id_token_alg) if "openid" in app.scopes else None
        await self.store.subjects.prepare(app.sector)
        try:
            response = await call(target=api_of(app, target), issuer=base, details=details)
        except UnknownUser as unknown:
            await self.refuse_unknown(unknown.refusal)
        with suppress(StoreError):  # the next token notes it; this one must reach the app
            await self.store.self_registered.used(app)
        await self._write(app, response, signer, _type(proof))

    async def _for_itself(self, params: Params) -> None:
        """A token for an API, without a person. RFC 6749 4.4, RFC 8707 2.2."""
        # A budget is a person's.
        if check_details(params, self.site.models.find, granted=True):
            raise Refused("invalid_authorization_details", "An app has no budget without a person.")
        base, names = self.site.base_url, bounded(params, "scope", MAX_SCOPE).split()
        target = target_of(params.several("resource"), base)
        app = await self._app(params)
        proof = self.sent_proof(app, required=app.dpop_required)
        issued = await self.store.app_tokens.issue(app, target, names, base, proof)
        self.write_window(issued.window)
        self.set_header("Pragma", "no-cache")
        facts = {"token_type": _type(proof), "expires_in": issued.expires_in, "scope": issued.scope}
        self.write_json({"access_token": issued.access_token, **facts})

    async def _app(self, params: Params) -> Registration:
        app = await self.authenticate(params)
        assert app is not None
        return app

    async def _write(self, app: Registration, response: TokenResponse, signer: Signer | None, token_type: str) -> None:
        if response.window:
            self.write_window(response.window)
        self.set_header("Pragma", "no-cache")  # RFC 6749 5.1, in addition to Cache-Control: no-store
        self.write_json(await token_answer(self.site, app, response, signer, token_type))


async def token_answer(
    site: Site, app: Registration, response: TokenResponse, signer: Signer | None, token_type: str
) -> dict[str, Any]:
    """The token response as the app gets it. `signer` signs the ID token; None for an app without `openid`."""
    answer: dict[str, Any] = {
        "access_token": response.access_token,
        "token_type": token_type,
        "expires_in": response.expires_in,
        "refresh_token": response.refresh_token,
        "scope": response.scope,
    }
    if response.budgets:
        answer["authorization_details"] = details_of(response.budgets)
    if response.sign_in and signer:
        picture = f"{site.base_url}/picture/{site.store.profiles.address(response.sign_in.profile)}"
        sub = await site.store.subjects.of(app.client_id, app.sector, response.sign_in.profile.user)
        sid = response.sign_in.sid and await site.store.subjects.session(app.sector, response.sign_in.sid)
        claims = id_token_claims(response, sub, sid, app.wire_id, app.id_token_alg, site.base_url, picture)
        answer["id_token"] = signer.sign(claims, TYPE)
    return answer


def _type(proof: DpopProof | None) -> str:
    """RFC 9449 5: how the access token is presented."""
    return "DPoP" if proof else "Bearer"


def _check_verifier(verifier: str | None) -> str | None:
    if verifier is not None and not VERIFIER.fullmatch(verifier):
        raise Refused("invalid_request", "code_verifier must be 43 to 128 unreserved characters.")
    return verifier


def _check_scope(app: Registration, text: str) -> tuple[str, ...]:
    """The scopes of a refresh, by plain names; empty for all. `offline_access` is ignored, as in the authorization
    request. Raises Refused("invalid_scope") for a name that is neither ours nor of an API of this app."""
    if not text:
        return ()
    own, others = apart([word for word in text.split(" ") if word != IGNORED])
    if not set(others) <= set(plain_names(app.api_scopes)):
        raise Refused("invalid_scope")
    known = without_ungiven(app.scopes, app.grantable, parse_scope(" ".join(own)) if own else ())
    return known + tuple(dict.fromkeys(others))
