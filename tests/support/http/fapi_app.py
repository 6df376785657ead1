"""An app with the profile `fapi2`: it proves itself by its key, pushes its requests and sends DPoP proofs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tornado.httpclient import HTTPResponse

from store.apps.profiles import FAPI2, PROFILES
from store.crypto.jose.algorithms import RS256
from tests.support.http.dpop_app import Device
from tests.support.http.driver import Browser, Service, answer_of, json_of, send
from tests.support.http.key_app import KeyApp, key_app, query_pairs

SETTINGS = PROFILES[FAPI2].switched_on(RS256)
"""The fields that the profile brings along."""
PAR = "/api/oauth/par"


@dataclass
class FapiApp:
    """The app's back end."""

    key: KeyApp
    device: Device

    @classmethod
    async def of(cls, service: Service, client_id: str = "", **fields: Any) -> FapiApp:
        """Registers an app with the profile."""
        made = await key_app(service, client_id, **{**SETTINGS, "profile": FAPI2, "scopes": SCOPES, **fields})
        return cls(made, Device())

    @property
    def client_id(self) -> str:
        return self.key.client_id

    async def push(self, *, proof: dict[str, str] | None = None, dpop: str = "", **changes: str | None) -> HTTPResponse:
        """Pushes a request; a change to None leaves a parameter out. `proof`: what proves the app, instead of a new
        assertion; `dpop`: a DPoP proof."""
        asked = {"scope": "openid profile", "nonce": "a-nonce", **changes}
        form = {**query_pairs(self.key.authorize_url(**asked)), **(self.key.proof() if proof is None else proof)}
        return await self.post("par", form, dpop)

    async def push_object(self, text: str) -> HTTPResponse:
        """Pushes a signed request."""
        return await self.post("par", {"client_id": self.client_id, "request": text, **self.key.proof()})

    async def post(self, endpoint: str, form: dict[str, str], dpop: str = "") -> HTTPResponse:
        """POST to an endpoint of `/api/oauth/`, with nothing added to the form."""
        headers = {"DPoP": dpop} if dpop else {}
        return await send(f"{self.key.base_url}/api/oauth/{endpoint}", "POST", form=form, headers=headers)

    def address(self, pushed: HTTPResponse) -> str:
        """The address that the browser is sent to with a pushed request."""
        assert pushed.code == 201, pushed.body
        asked = {"client_id": self.client_id, "request_uri": json_of(pushed)["request_uri"]}
        return f"/oauth/authorize?{urlencode(asked)}"

    async def answer(self, browser: Browser, **changes: Any) -> dict[str, str]:
        """The authorization response to a pushed request."""
        return answer_of(await browser.consent(self.address(await self.push(**changes))))

    async def code(self, service: Service, **changes: Any) -> str:
        """A code for Ada."""
        return (await self.answer(await service.signed_in(), **changes))["code"]

    async def token(
        self, *, proof: dict[str, str] | None = None, dpop: str | None = None, **fields: str | None
    ) -> HTTPResponse:
        """POST /api/oauth/token. `proof`: as in `push`; `dpop`: a DPoP proof instead of a new one, empty for none."""
        form = {"client_id": self.client_id, **(self.key.proof() if proof is None else proof), **fields}
        kept = {name: value for name, value in form.items() if value is not None}
        return await self.post("token", kept, self.dpop() if dpop is None else dpop)

    def dpop(self, endpoint: str = "token", **changes: Any) -> str:
        """A DPoP proof for an endpoint of `/api/oauth/`."""
        return self.device.proof("POST", f"{self.key.base_url}/api/oauth/{endpoint}", **changes)

    async def exchange(self, code: str, **changes: Any) -> HTTPResponse:
        """Exchanges a code; see `token`."""
        fields = {"grant_type": "authorization_code", "code": code, "code_verifier": "v" * 43}
        return await self.token(**{**fields, "redirect_uri": self.key.redirect_uri, **changes})

    async def refresh(self, refresh_token: str, **changes: Any) -> HTTPResponse:
        """Rotates a refresh token; see `token`."""
        return await self.token(grant_type="refresh_token", refresh_token=refresh_token, **changes)

    async def tokens(self, service: Service, **changes: Any) -> dict[str, Any]:
        """The tokens of a sign-in."""
        response = await self.exchange(await self.code(service, **changes))
        assert response.code == 200, response.body
        found: dict[str, Any] = json_of(response)
        return found

    async def call(self, token: str, path: str = "/api/oauth/userinfo", **more: Any) -> HTTPResponse:
        """A call with a bound token."""
        return await self.device.send(f"{self.key.base_url}{path}", token=token, **more)

    async def introspect(self, token: str) -> Any:
        """What the app learns about its token."""
        return json_of(await self.post("introspect", {"token": token, **self.key.proof()}))


SCOPES = ("openid", "profile", "data:read", "data:write")
