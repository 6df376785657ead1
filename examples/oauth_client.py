"""The OAuth 2.0 an app has to speak to Latchkey: authorization code with PKCE, refresh, userinfo, revocation.

Plain HTTP with Tornado's client; nothing here is Latchkey's own, any OAuth library does the same.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.httputil import HTTPInputError
from tornado.web import HTTPError


class Trouble(HTTPError):
    """Something to tell the person: a message and the HTTP status of the page; `code` is the OAuth error, if any, and
    `typed` what the person wrote and should not lose."""

    def __init__(self, message: str, status: int = 400, code: str = "", typed: str = "") -> None:
        super().__init__(status)
        self.message, self.code, self.typed = message, code, typed


@dataclass
class Tokens:
    """What the token endpoint gave. The tokens stay on this side: `repr` and the pages leave them out."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    scope: str
    expires_at: float
    refreshes: int = 0
    budgets: list[dict[str, Any]] = field(default_factory=list)  # what the person granted (RFC 9396)

    def may(self, scope: str) -> bool:
        """Whether the person allowed this."""
        return scope in self.scope.split()


class OAuthClient:
    """One app at one server. `client_secret` None makes it a public client; `scopes` are separated by spaces."""

    def __init__(self, issuer: str, client_id: str, client_secret: str | None, redirect_uri: str, scopes: str) -> None:
        self.issuer, self.client_id, self.redirect_uri = issuer.rstrip("/"), client_id, redirect_uri
        self.scopes, self._secret = scopes, client_secret
        self._found: dict[str, Any] | None = None
        parts = urlsplit(issuer)
        self.origin = f"{parts.scheme}://{parts.netloc}"

    async def metadata(self) -> dict[str, Any]:
        """The server's own description (RFC 8414), read once. Raises Trouble when it cannot be had."""
        if self._found is None:
            found = self._object(await self._fetch(f"{self.issuer}/.well-known/oauth-authorization-server"))
            # RFC 8414 3.3: a description that speaks for another issuer must not be used.
            if found.get("issuer") != self.issuer:
                raise Trouble("The sign-in server describes itself under another address.", 502)
            self._found = found
        return self._found

    async def authorization_url(self, state: str, verifier: str, budgets: list[dict[str, Any]] | None = None) -> str:
        """Where to send the browser (RFC 6749 4.1.1), with the PKCE challenge (RFC 7636 4.3), and with the `budgets`
        that the person may grant (RFC 9396 2). Raises Trouble."""
        endpoint = (await self.metadata())["authorization_endpoint"]
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": self.scopes,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        if budgets:
            query["authorization_details"] = json.dumps(budgets)
        return f"{endpoint}?{urlencode(query)}"

    async def check_issuer(self, issuer: str) -> None:
        """RFC 9207 2.4: the answer in the browser must come from the server that was asked. Raises Trouble."""
        promised = (await self.metadata()).get("authorization_response_iss_parameter_supported")
        if issuer != self.issuer and (issuer or promised):
            raise Trouble("This answer comes from another sign-in server. (The iss does not match.)")

    async def exchange(self, code: str, verifier: str) -> Tokens:
        """RFC 6749 4.1.3: the code for tokens. Raises Trouble."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect_uri}
        return await self._ask_tokens(form | {"code_verifier": verifier})

    async def refresh(self, old: Tokens) -> Tokens:
        """RFC 6749 6: the refresh token for new tokens; the old one is used up. Raises Trouble."""
        new = await self._ask_tokens({"grant_type": "refresh_token", "refresh_token": old.refresh})
        new.refreshes = old.refreshes + 1
        return new

    async def hand_on(
        self, tokens: Tokens, name: str, scope: str, seconds: int, budgets: list[dict[str, Any]]
    ) -> Tokens:
        """RFC 8693 2.1: a smaller token for a helper, which the person sees under this name. Raises Trouble."""
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": tokens.access,
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "name": name,
            "scope": scope,
            "expires_in": str(seconds),
            "authorization_details": json.dumps(budgets),
        }
        return await self._ask_tokens(form, refreshable=False)

    async def revoke(self, tokens: Tokens) -> None:
        """RFC 7009: end both tokens. Raises Trouble when the server does not confirm it."""
        endpoint = (await self.metadata())["revocation_endpoint"]
        for token, hint in ((tokens.refresh, "refresh_token"), (tokens.access, "access_token")):
            response = await self._post(endpoint, {"token": token, "token_type_hint": hint})
            if response.code != 200:
                raise self._trouble(response)

    async def person(self, tokens: Tokens) -> dict[str, Any]:
        """The userinfo answer; empty when the person did not share a profile. Raises Trouble."""
        endpoint = (await self.metadata())["userinfo_endpoint"]
        response = await self._fetch(endpoint, headers={"Authorization": f"Bearer {tokens.access}"})
        if response.code == 403:
            return {}
        return self._object(response)

    async def call(
        self,
        tokens: Tokens,
        url: str,
        body: dict[str, Any] | None = None,
        seconds: float = 10,
        *,
        method: str = "",
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """A call of an API with the access token (RFC 6750 2.1), a POST where there is a body; the JSON object it
        answers, empty for 204. Raises Trouble."""
        return self._object(await self._fetch(url, **_call(tokens, body, seconds, method, headers)))

    async def stream(
        self, tokens: Tokens, url: str, body: dict[str, Any], arrived: Callable[[bytes], None], seconds: float
    ) -> None:
        """A call whose answer goes to `arrived` piece by piece. When cancelled, it hangs up at the next piece. Raises
        Trouble; `arrived` gets no byte of a refusal."""
        begun: list[bytes] = []
        cancelled = False

        def take(piece: bytes) -> None:
            if cancelled:
                # Tornado's client reads on for who no longer waits; what it takes for broken input it cuts off.
                raise HTTPInputError("nobody listens any more")
            begun.append(piece)
            arrived(piece)

        call = asyncio.ensure_future(self._fetch(url, streaming_callback=take, **_call(tokens, body, seconds)))
        call.add_done_callback(lambda call: call.cancelled() or call.exception())  # which may come when nobody waits
        try:
            await asyncio.wait([call])
        except asyncio.CancelledError:
            cancelled = True
            raise
        response = call.result()
        if response.code != 200:
            raise self._trouble(response, b"".join(begun))

    async def _ask_tokens(self, form: dict[str, str], *, refreshable: bool = True) -> Tokens:
        needed = {"access_token", "refresh_token"} if refreshable else {"access_token"}
        answer = self._object(await self._post((await self.metadata())["token_endpoint"], form))
        # RFC 6749 7.1: a token of an unknown type must not be used.
        if str(answer.get("token_type")).lower() != "bearer" or not needed <= answer.keys():
            raise Trouble("The sign-in server sent tokens this app does not understand.", 502)
        expires_at = time.time() + int(answer.get("expires_in", 0))
        scope, budgets = answer.get("scope", self.scopes), answer.get("authorization_details", [])
        return Tokens(answer["access_token"], answer.get("refresh_token", ""), scope, expires_at, budgets=budgets)

    async def _post(self, url: str, form: dict[str, str]) -> HTTPResponse:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self._secret is None:
            form = form | {"client_id": self.client_id}
        else:
            # RFC 6749 2.3.1: id and secret are form-encoded before they are joined.
            pair = f"{quote_plus(self.client_id)}:{quote_plus(self._secret)}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        return await self._fetch(url, method="POST", headers=headers, body=urlencode(form))

    async def _fetch(self, url: str, **options: Any) -> HTTPResponse:
        request = HTTPRequest(
            url, **{"follow_redirects": False, "request_timeout": 10, "connect_timeout": 5, **options}
        )
        try:
            return await AsyncHTTPClient().fetch(request, raise_error=False)
        except (OSError, ValueError, HTTPClientError) as error:
            raise Trouble(f"The sign-in server cannot be reached ({type(error).__name__}).", 502) from None

    def _object(self, response: HTTPResponse) -> dict[str, Any]:
        if response.code == 204:
            return {}
        if response.code not in (200, 201):
            raise self._trouble(response)
        answer = _json(response.body)
        if not answer:
            raise Trouble("The sign-in server sent no JSON object.", 502)
        return answer

    def _trouble(self, response: HTTPResponse, body: bytes | None = None) -> Trouble:
        answer = _json(response.body if body is None else body)
        code = str(answer.get("error", response.code))
        wait = f" Try again in {answer['retryAfter']} seconds." if "retryAfter" in answer else ""
        words = f"The sign-in server answered {code}: {answer.get('error_description', 'no description')}{wait}"
        return Trouble(words, 502, code)


def _call(
    tokens: Tokens, body: dict[str, Any] | None, seconds: float, method: str = "", headers: dict[str, str] | None = None
) -> dict[str, Any]:
    sent = {"Authorization": f"Bearer {tokens.access}", **(headers or {})}
    options: dict[str, Any] = {"headers": sent, "request_timeout": seconds}
    if body is not None:
        sent["Content-Type"] = "application/json"
        options |= {"method": "POST", "body": json.dumps(body)}
    return options | ({"method": method} if method else {})


def _json(body: bytes | None) -> dict[str, Any]:
    try:
        answer = json.loads(body or b"")
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
