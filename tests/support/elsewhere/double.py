"""An identity provider for tests: it answers as OpenID Connect and the vendors' pages say, unless a test changes it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.testing import bind_unused_port

from store.clock import wall
from store.crypto.jose import jws
from store.crypto.jose.algorithms import half_hash
from store.crypto.jose.private import PrivateKey
from tests.support.http.key_app import key_for, set_of

CLIENT_ID, SECRET = "latchkey-client", "s:e%c+ret"


class ProviderDouble:
    """A provider on a port of its own. `claims` are what the next sign-in says of the person, beyond `sub`; `change`
    may change the claims of an ID token, and `sign` the whole token; `answers` replaces the answer of a path."""

    def __init__(self, path: str = "") -> None:
        listening, port = bind_unused_port()
        self.origin = f"http://localhost:{port}"
        self.issuer = self.origin + path
        self.keys: list[PrivateKey] = [key_for("ES256")]
        self.published: list[PrivateKey] = self.keys
        self.subject = "248289761001"
        self.claims: dict[str, Any] = {"email": "ada@elsewhere.example", "email_verified": True, "name": "Ada L"}
        self.metadata: dict[str, Any] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.userinfo: dict[str, Any] | None = None
        self.pending: dict[str, dict[str, str]] = {}
        self.change: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.asked: list[HTTPServerRequest] = []
        self.forms: list[dict[str, str]] = []
        self._server = HTTPServer(self._serve)
        self._server.add_socket(listening)

    async def close(self) -> None:
        self._server.stop()
        await self._server.close_all_connections()

    def seen(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(one.path == path for one in self.asked)

    def allows(self, url: str, **more: str) -> str:
        """The person signs in at the address that the browser was sent to: the path to come back to."""
        query = dict(parse_qsl(urlsplit(url).query))
        assert url.startswith(self.origin), url
        code = secrets.token_urlsafe(16)
        self.pending[code] = query
        back = urlsplit(query["redirect_uri"])
        answer = {"code": code, "state": query["state"], **more}
        return f"{back.path}?{urlencode(answer)}"

    def signed(self, claims: dict[str, Any]) -> str:
        return jws.sign(claims, self.keys[0], "JWT")

    def id_token(self, query: dict[str, str], access_token: str) -> str:
        now = int(wall.time())
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": query["client_id"],
            "exp": now + 600,
            "iat": now,
            "nonce": query.get("nonce"),
            "at_hash": half_hash(self.keys[0].algorithm, access_token),
            **self.claims,
        }
        return self.sign(self.change(claims))

    def _serve(self, request: HTTPServerRequest) -> None:
        self.asked.append(request)
        status, body = self.answers.get(request.path) or self._answer(request)
        headers = HTTPHeaders({"Content-Type": "application/json", "Content-Length": str(len(body))})
        assert request.connection is not None
        request.connection.write_headers(ResponseStartLine("HTTP/1.1", status, "OK"), headers, body)
        request.connection.finish()

    def _answer(self, request: HTTPServerRequest) -> tuple[int, bytes]:
        if request.path.endswith("/.well-known/openid-configuration"):
            return 200, json.dumps(self.document()).encode()
        match request.path:
            case "/jwks":
                return 200, set_of(*self.published)
            case "/token" | "/login/oauth/access_token":
                return self._token(request)
            case "/userinfo":
                return 200, json.dumps(self.userinfo or {}).encode()
        return 404, b"{}"

    def document(self) -> dict[str, Any]:
        """The discovery document."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "jwks_uri": f"{self.origin}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256", "RS256"],
            **({"userinfo_endpoint": f"{self.origin}/userinfo"} if self.userinfo is not None else {}),
            **self.metadata,
        }

    def _token(self, request: HTTPServerRequest) -> tuple[int, bytes]:
        form = dict(parse_qsl(request.body.decode()))
        self.forms.append(form)
        query = self.pending.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if (
            query is None
            or form["redirect_uri"] != query["redirect_uri"]
            or query.get("code_challenge") != challenge
            or query.get("code_challenge_method") != "S256"
        ):
            return 400, b'{"error":"invalid_grant","error_description":"<b>text of a stranger</b>"}'
        if not self._knows(request, form):
            return 401, b'{"error":"invalid_client"}'
        access_token = secrets.token_urlsafe(16)
        found = {"access_token": access_token, "token_type": "Bearer", "expires_in": 60}
        if "openid" in query["scope"].split() or "name" in query["scope"].split():
            found["id_token"] = self.id_token(query, access_token)
        return 200, json.dumps(found).encode()

    def _knows(self, request: HTTPServerRequest, form: dict[str, str]) -> bool:
        kind, _, text = request.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            name, _, secret = base64.b64decode(text).decode().partition(":")
            return (unquote_plus(name), unquote_plus(secret)) == (CLIENT_ID, SECRET)
        return form.get("client_id") == CLIENT_ID and form.get("client_secret") in (SECRET, form.get("client_secret"))
