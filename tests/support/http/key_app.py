"""An app that proves itself with its key."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson
from tornado.httpclient import HTTPResponse

from dev.fuzz.jwts import signed
from store.apps.client_keys import registered_keys
from store.clock import wall
from store.crypto.jose.private import PrivateKey
from tests.support.http.driver import App, Service, send

_numbers = count(1)
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@cache
def key_for(algorithm: str, number: int = 0) -> PrivateKey:
    """A key that tests share, because RSA takes long to make. PS256 uses a key of RS256."""
    return PrivateKey.generate("RS256" if algorithm == "PS256" else algorithm)


def set_of(*keys: PrivateKey | Mapping[str, Any]) -> bytes:
    """The JSON Web Key Set of these keys."""
    return orjson.dumps({"keys": [key.public.to_jwk() if isinstance(key, PrivateKey) else dict(key) for key in keys]})


@dataclass
class KeyApp(App):
    """A registered app with `private_key_jwt`, and its back end."""

    key: PrivateKey = field(default_factory=lambda: key_for("ES256"))

    def claims(self, **changes: Any) -> dict[str, Any]:
        """The claims of an assertion for the issuer; a change to None leaves one out."""
        now = int(wall.time())
        made = {
            **{"iss": self.client_id, "sub": self.client_id, "aud": self.base_url, "iat": now, "exp": now + 60},
            **{"jti": secrets.token_urlsafe(16), **changes},
        }
        return {name: value for name, value in made.items() if value is not None}

    def assertion(self, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A new assertion."""
        return signed(
            self.key,
            {"typ": "JWT", "alg": self.key.algorithm, "kid": self.key.kid, **(header or {})},
            self.claims(**changes),
        )

    def request_object(self, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A signed request with PKCE, as RFC 9101 has it; a change to None leaves a claim out."""
        now = int(wall.time())
        claims = {
            **{"iss": self.client_id, "aud": self.base_url, "iat": now, "exp": now + 300},
            **query_pairs(self.authorize_url()),
            **changes,
        }
        typed = {"typ": "oauth-authz-req+jwt", "alg": self.key.algorithm, "kid": self.key.kid, **(header or {})}
        kept = {name: value for name, value in claims.items() if value is not None}
        return signed(self.key, {name: value for name, value in typed.items() if value is not None}, kept)

    def signed_url(self, text: str | None = None, **beside: str) -> str:
        """The address of a signed request, with parameters beside it."""
        asked = {"client_id": self.client_id, "request": text or self.request_object(), **beside}
        return f"/oauth/authorize?{urlencode(asked)}"

    def proof(self, assertion: str | None = None) -> dict[str, str]:
        """The parameters that prove the app."""
        return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion or self.assertion()}

    async def token(self, **fields: str | None) -> HTTPResponse:
        """POST /api/oauth/token with a new assertion; None leaves a field out."""
        form = {"client_id": self.client_id, **self.proof(), **fields}
        kept = {name: value for name, value in form.items() if value is not None}
        return await send(f"{self.base_url}/api/oauth/token", "POST", form=kept)

    async def post(self, endpoint: str, **fields: str) -> HTTPResponse:
        """POST to an endpoint of `/api/oauth/`, without a proof unless given."""
        return await send(f"{self.base_url}/api/oauth/{endpoint}", "POST", form=fields)


def query_pairs(url: str) -> dict[str, str]:
    """The query of an address, each parameter once."""
    return dict(parse_qsl(urlsplit(url).query))


async def key_app(service: Service, client_id: str = "", algorithm: str = "ES256", **fields: Any) -> KeyApp:
    """Registers an app with a key, under a name of its own unless given."""
    key = fields.pop("key", None) or key_for(algorithm)
    jwks = "" if "jwks_uri" in fields else registered_keys(set_of(key))
    app = await service.add_app(
        client_id or f"key-app-{next(_numbers)}", **{"private_key_jwt": True, "jwks": jwks, **fields}
    )
    assert app.secret is None or "private_key_jwt" in fields
    return KeyApp(app.base_url, app.client_id, app.secret, app.redirect_uri, key)
