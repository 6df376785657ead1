"""An app that sends DPoP proofs (RFC 9449)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tornado.httpclient import HTTPResponse

from dev.fuzz.jwts import signed
from store.clock import wall
from store.crypto.dpop import TYPE, token_hash
from store.crypto.jose.private import PrivateKey
from store.crypto.seal import new_id
from tests.support.http.driver import App, Service, json_of, send

USERINFO, DOCUMENT = "/api/oauth/userinfo", "/api/v1/data/notes/n1"


@dataclass
class Device:
    """A key, and the latest nonce that the server gave it."""

    key: PrivateKey = field(default_factory=lambda: PrivateKey.generate("ES256"))
    nonce: str | None = None

    @property
    def jkt(self) -> str:
        """The thumbprint of the key."""
        return self.key.kid

    def proof(
        self, method: str, url: str, token: str = "", *, header: Mapping[str, Any] | None = None, **changes: Any
    ) -> str:
        """A proof for a request; a change to None leaves a claim out."""
        head = {"typ": TYPE, "alg": self.key.algorithm, "jwk": self.key.public.to_jwk(), **(header or {})}
        claims = {
            "jti": new_id(),
            "htm": method,
            "htu": url.partition("?")[0],
            "iat": int(wall.time()),
            "ath": token_hash(token) if token else None,
            "nonce": self.nonce,
            **changes,
        }
        return signed(self.key, head, {name: value for name, value in claims.items() if value is not None})

    async def send(
        self, url: str, method: str = "GET", *, token: str = "", proof: str | None = None, **more: Any
    ) -> HTTPResponse:
        """A request with a proof: a call with `token`, otherwise one to the authorization server."""
        headers = {"DPoP": proof if proof is not None else self.proof(method, url, token), **more.pop("headers", {})}
        if token:
            headers = {"Authorization": f"DPoP {token}", **headers}
        return await send(url, method, headers=headers, **more)


@dataclass
class BoundApp:
    """A registered app with a key."""

    app: App
    device: Device = field(default_factory=Device)

    def url(self, path: str) -> str:
        """The address of a path on the server."""
        return f"{self.app.base_url}{path}"

    async def token(self, *, proof: str | None = None, **fields: str | None) -> HTTPResponse:
        """POST /api/oauth/token with a proof. An empty `proof`: without one."""
        form = {"client_id": self.app.client_id, "client_secret": self.app.secret, **fields}
        kept = {name: value for name, value in form.items() if value is not None}
        if proof == "":
            return await send(self.url("/api/oauth/token"), "POST", form=kept)
        return await self.device.send(self.url("/api/oauth/token"), "POST", form=kept, proof=proof)

    async def exchange(self, code: str, *, proof: str | None = None) -> HTTPResponse:
        """Exchanges a code."""
        fields = {"grant_type": "authorization_code", "code": code, "code_verifier": "v" * 43}
        return await self.token(proof=proof, **fields, redirect_uri=self.app.redirect_uri)

    async def refresh(self, refresh_token: str, *, proof: str | None = None) -> HTTPResponse:
        """Rotates a refresh token."""
        return await self.token(proof=proof, grant_type="refresh_token", refresh_token=refresh_token)

    async def call(
        self, token: str, path: str = "/api/oauth/userinfo", method: str = "GET", **more: Any
    ) -> HTTPResponse:
        """A call with a bound token."""
        return await self.device.send(self.url(path), method, token=token, **more)


def error_of(response: HTTPResponse) -> tuple[int, str]:
    """Status and error code."""
    return response.code, json_of(response)["error"] if response.code >= 400 else ""


async def bound(service: Service, app: App | None = None, **changes: Any) -> tuple[BoundApp, dict[str, Any]]:
    """An app with a key, and its tokens."""
    made = BoundApp(app or service.web)
    response = await made.exchange(await service.code(made.app, **changes))
    assert response.code == 200, response.body
    return made, json_of(response)


async def spa(service: Service, client_id: str = "spa", **fields: Any) -> App:
    """A public app."""
    return await service.add_app(client_id, public=True, **fields)
