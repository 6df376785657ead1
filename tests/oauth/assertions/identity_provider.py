"""A small identity provider of a company: it publishes its keys, and makes assertions (ID-JAG) about its people."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Mapping
from typing import Any

from tornado.httpclient import HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from dev.fuzz.jwts import signed
from handlers.core.site import Site
from outbound.address_policy import AddressPolicy
from outbound.fetching import Fetcher
from outbound.issuer_keys import IssuerKeys
from store.clock import wall
from store.crypto.jose.private import PrivateKey
from store.names import ASSERTION_GRANT
from store.oauth.assertions.issuers import TrustedIssuer, TrustedIssuers
from tests.support.http.driver import EMAIL, App, Service, json_of
from tests.support.http.key_app import key_for, set_of

ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG_TYPE = "urn:ietf:params:oauth:token-type:id-jag"
MOST = ("profile", "email", "data:read", "data:write", "apps:read")


class IdentityProvider:
    """Listens on loopback. `keys` are published, the first signs. `audience` is the server that takes its assertions;
    `asked` has the paths that were asked for. `away`: it answers nothing but errors."""

    def __init__(self, audience: str, listening: socket.socket | None = None) -> None:
        self.audience = audience
        self.keys: list[PrivateKey] = [key_for("ES256")]
        self.asked: list[str] = []
        self.exchanged: list[dict[str, str]] = []
        self.away = False
        listening = listening or bind_sockets(0, "127.0.0.1")[0]
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._server = HTTPServer(Application([(r"(/.*)", _Answer, {"of": self})]))
        self._server.add_socket(listening)

    async def close(self) -> None:
        """Stops listening."""
        self._server.stop()
        await self._server.close_all_connections()

    def metadata(self) -> dict[str, Any]:
        """What its discovery document says."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "identity_chaining_requested_token_types_supported": [ID_JAG_TYPE],
        }

    def claims(self, client_id: str, **changes: Any) -> dict[str, Any]:
        """The claims of a new assertion about Ada; a change to None leaves one out."""
        now = int(wall.time())
        made = {
            **{"iss": self.url, "sub": "U019488227", "aud": self.audience, "client_id": client_id},
            **{"iat": now, "exp": now + 300, "jti": secrets.token_urlsafe(16), "email": EMAIL},
            **changes,
        }
        return {name: value for name, value in made.items() if value is not None}

    def assertion(self, client_id: str, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A new assertion."""
        key = self.keys[0]
        typed = {"typ": "oauth-id-jag+jwt", "alg": key.algorithm, "kid": key.kid, **(header or {})}
        return signed(
            key, {name: value for name, value in typed.items() if value is not None}, self.claims(client_id, **changes)
        )

    def trusted(self, *clients: str, **changes: Any) -> TrustedIssuer:
        """This issuer as an operator trusts it, for these apps."""
        facts = {
            **{"name": "Example Works", "domains": ("example.com",), "clients": clients},
            **{"resources": ((self.audience, MOST),), **changes},
        }
        return TrustedIssuer(self.url, **facts)


class _Answer(RequestHandler):
    def initialize(self, of: IdentityProvider) -> None:
        self.of = of

    def get(self, path: str) -> None:
        """Its metadata and its keys."""
        self.of.asked.append(path)
        if self.of.away:
            self.send_error(503)
        elif path == "/keys":
            self.set_header("Content-Type", "application/json")
            self.finish(set_of(*self.of.keys))
        elif path.startswith(("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")):
            self.finish(self.of.metadata())
        else:
            self.send_error(404)

    def post(self, path: str) -> None:
        """A token exchange (RFC 8693) of an ID token for an assertion."""
        self.of.asked.append(path)
        form = {name: self.get_body_argument(name) for name in self.request.body_arguments}
        self.of.exchanged.append(form)
        known: dict[str, Any] = {name: form[name] for name in ("scope", "resource") if name in form}
        made = self.of.assertion(json.loads(form["subject_token"])["client_id"], aud=form["audience"], **known)
        self.finish({"access_token": made, "issued_token_type": ID_JAG_TYPE, "token_type": "N_A", "expires_in": 300})


def keys_of_tests() -> IssuerKeys:
    """Fetches keys from this machine, too."""
    return IssuerKeys(Fetcher(AddressPolicy(loopback=True)))


async def present(app: App, assertion: str, **fields: str | None) -> HTTPResponse:
    """An app's request with an assertion."""
    return await app.token(grant_type=ASSERTION_GRANT, assertion=assertion, **fields)


async def granted(app: App, assertion: str, **fields: str | None) -> dict[str, Any]:
    """The answer to an assertion that counts."""
    response = await present(app, assertion, **fields)
    assert response.code == 200, response.body
    answer: dict[str, Any] = json_of(response)
    return answer


async def refused(app: App, assertion: str, **fields: str | None) -> tuple[int, str, str]:
    """The status, the code and the description of a refused request."""
    response = await present(app, assertion, **fields)
    found = json_of(response)
    return response.code, found.get("error", ""), found.get("error_description", "")


class Enterprise:
    """The service, an identity provider that it trusts for the app `web-app`, and the site."""

    service: Service
    provider: IdentityProvider
    site: Site

    @classmethod
    async def make(cls, service: Service, site: Site, **changes: Any) -> Enterprise:
        """Starts the identity provider."""
        self = cls()
        self.service, self.site = service, site
        self.provider = IdentityProvider(service.base_url)
        object.__setattr__(site, "issuer_keys", keys_of_tests())
        self.trusts(**changes)
        return self

    def trusts(self, *clients: str, **changes: Any) -> None:
        """Changes what the operator's file says."""
        object.__setattr__(
            self.site, "issuers", TrustedIssuers((self.provider.trusted(*(clients or ("web-app",)), **changes),))
        )

    def assertion(self, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A new assertion for the app."""
        return self.provider.assertion(changes.pop("client_id", "web-app"), header, **changes)
