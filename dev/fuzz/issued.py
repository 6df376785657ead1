"""What the server signs itself and reads again, right and wrong ones: ID tokens as hints, and JWT access tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from dev.fuzz.jwts import signed, wrong_jwts
from dev.fuzz.signed import spent_id_jag
from dev.fuzz.tokens import CALLBACK, VERIFIER, Cast
from handlers.oauth.delegated.token_exchange import ACCESS
from store.clock import wall
from store.crypto.seal import TokenKind, new_id
from store.names import EXCHANGE_GRANT
from store.oauth.tokens import s256

API = "https://orders.example"
HINTED = ("/oauth/authorize", "/oauth/logout")
"""Where a browser brings a hint, by GET and by POST."""
LONGEST_FIELD = 8_000


def _header(cast: Cast, typ: str) -> dict[str, Any]:
    return {"typ": typ, "alg": cast.signing.algorithm, "kid": cast.signing.kid}


def _claims(cast: Cast, audience: str) -> dict[str, Any]:
    now = int(wall.time())
    return {"iss": cast.base_url, "sub": cast.ada, "aud": audience, "iat": now, "exp": now + 3600}


def _of_id_token(cast: Cast) -> dict[str, Any]:
    """The claims of an ID token from a session that is over."""
    return {**_claims(cast, "web-app"), "auth_time": int(wall.time()), "sid": new_id(), "acr": "1", "amr": ["pwd"]}


def _of_access_token(cast: Cast) -> dict[str, Any]:
    """The claims of an access token without a row."""
    sealed = cast.sealed(TokenKind.ACCESS, "web-app")
    return {**_claims(cast, API), "client_id": "web-app", "jti": sealed, "scope": "orders:read"}


def hint(cast: Cast) -> str:
    """A right ID token, whose session is over."""
    return signed(cast.signing, _header(cast, "JWT"), _of_id_token(cast))


def dead_access(cast: Cast) -> str:
    """A right JWT access token, which is dead."""
    return signed(cast.signing, _header(cast, "at+jwt"), _of_access_token(cast))


def hinted(cast: Cast, target: str, text: str) -> dict[str, str]:
    """The parameters of a request with this hint."""
    if target == "/oauth/logout":
        return {"client_id": "web-app", "id_token_hint": text, "post_logout_redirect_uri": CALLBACK, "state": "s"}
    asked = {"client_id": "web-app", "redirect_uri": CALLBACK, "response_type": "code", "scope": "openid profile"}
    proven = {"code_challenge": s256(VERIFIER), "code_challenge_method": "S256"}
    return {**asked, **proven, "state": "a-state", "id_token_hint": text}


def hostile_hints(cast: Cast) -> Iterator[tuple[str, str, str]]:
    """Requests with every wrong hint: what each is, its target, the parameters."""
    for what, text in wrong_jwts(cast.signing, _header(cast, "JWT"), _of_id_token(cast)).items():
        for target in HINTED:
            yield what, target, urlencode(hinted(cast, target, text))


def hostile_access(cast: Cast) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Every wrong JWT access token: what each is, its target, the parameters; and the header field of a call, for a
    token that fits into one."""
    client = {"client_id": "web-app", "client_secret": cast.secret}
    for what, text in wrong_jwts(cast.signing, _header(cast, "at+jwt"), _of_access_token(cast)).items():
        for target in ("/api/oauth/introspect", "/api/oauth/revoke"):
            yield what, target, urlencode({"token": text, **client}), {}
        if len(text) < LONGEST_FIELD and text.isascii() and text.isprintable():
            yield what, "/api/oauth/userinfo", "", {"Authorization": f"Bearer {text}"}


def handed_on(cast: Cast) -> tuple[dict[str, str], dict[str, str]]:
    """The parameters of a token exchange, and of an identity provider's assertion that has ended, without the app's
    credentials."""
    exchanged = {
        "grant_type": EXCHANGE_GRANT,
        "subject_token": cast.sealed(TokenKind.ACCESS, "web-app"),
        **dict.fromkeys(("subject_token_type", "requested_token_type"), ACCESS),
        **{"scope": "profile", "name": "Grüße", "expires_in": "60", "audience": cast.base_url},
        "authorization_details": '[{"type": "credits", "limit": 5, "period": "total"}]',
    }
    return exchanged, spent_id_jag(cast)
