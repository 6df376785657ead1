"""POST /api/oauth/token. SPEC 4.3."""

from __future__ import annotations

import re

from handlers.core.api import ApiHandler
from handlers.core.params import Params
from store.apps.registration import Registration
from store.names import parse_scope
from store.oauth.tokens import TokenResponse, UnknownUser
from store.refused import Refused

# RFC 7636 4.1: 43 to 128 unreserved characters.
VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


class TokenHandler(ApiHandler):
    """Exchanges a code, or rotates a refresh token."""

    async def post(self) -> None:
        """Answers with the token response of SPEC 2.2."""
        params = self.body()
        grant_type = params.require("grant_type")
        if grant_type not in ("authorization_code", "refresh_token"):
            raise Refused("unsupported_grant_type")
        # Malformed requests are refused before the app is authenticated and before any window counts them.
        if grant_type == "authorization_code":
            code, redirect_uri = params.require("code"), params.require("redirect_uri")
            verifier = _check_verifier(params.get("code_verifier"))
            app = await self._app(params)
            call = self.store.tokens.exchange(app, code, redirect_uri, verifier)
        else:
            refresh_token, scopes = params.require("refresh_token"), _check_scope(params.get("scope"))
            app = await self._app(params)
            call = self.store.tokens.refresh(app, refresh_token, scopes)
        try:
            response = await call
        except UnknownUser as unknown:
            await self.refuse_unknown(unknown.refusal)
        self._write(response)

    async def _app(self, params: Params) -> Registration:
        app = await self.authenticate(params)
        assert app is not None
        return app

    def _write(self, response: TokenResponse) -> None:
        if response.window:
            self.write_window(response.window)
        self.set_header("Pragma", "no-cache")  # RFC 6749 5.1, in addition to Cache-Control: no-store
        self.write_json(
            {
                "access_token": response.access_token,
                "token_type": "Bearer",
                "expires_in": response.expires_in,
                "refresh_token": response.refresh_token,
                "scope": response.scope,
            }
        )


def _check_verifier(verifier: str | None) -> str | None:
    if verifier is not None and not VERIFIER.fullmatch(verifier):
        raise Refused("invalid_request", "code_verifier must be 43 to 128 unreserved characters.")
    return verifier


def _check_scope(scope: str | None) -> tuple[str, ...]:
    if scope is None:
        return ()
    try:
        return parse_scope(scope)
    except ValueError:
        raise Refused("invalid_scope") from None
