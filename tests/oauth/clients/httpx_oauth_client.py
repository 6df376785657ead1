"""httpx-oauth: its client for a server that is discovered."""

# [show]
import asyncio
import base64
import hashlib
import secrets
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from httpx_oauth.clients.openid import OpenID
from httpx_oauth.exceptions import GetProfileError
from httpx_oauth.oauth2 import OAuth2RequestError, OAuth2Token

# [/show]
from tests.oauth.clients.account import Account

# [show]


class Latchkey:
    def __init__(self, issuer: str, redirect_uri: str, scope: str, client_id: str, client_secret: str = "") -> None:
        # Despite its name, OpenID takes the document of any OAuth server. A public app has no client_secret.
        # It picks client_secret_basic; for the other, set client.token_endpoint_auth_method = "client_secret_post".
        address = f"{issuer}/.well-known/oauth-authorization-server"
        self.client = OpenID(client_id, client_secret, address, base_scopes=scope.split())
        self.issuer, self.redirect_uri = issuer, redirect_uri
        self.one_at_a_time = asyncio.Lock()  # better one for each person

    async def begin(self, session: dict[str, str]) -> str:
        session["state"], session["verifier"] = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        digest = hashlib.sha256(session["verifier"].encode()).digest()
        return await self.client.get_authorization_url(
            self.redirect_uri,
            state=session["state"],
            code_challenge=base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            code_challenge_method="S256",
        )

    async def finish(self, session: dict[str, str], callback: str) -> Account:
        state, verifier = session.pop("state"), session.pop("verifier")  # good for one answer
        answer = dict(parse_qsl(urlsplit(callback).query))
        if answer.get("state") != state or answer.get("iss") != self.issuer:
            raise ValueError("this answer belongs to no sign-in of this browser")
        if "error" in answer:
            raise Declined(answer["error"])
        return Account(await self.client.get_access_token(answer["code"], self.redirect_uri, verifier))

    async def userinfo(self, account: Account) -> dict[str, Any]:
        async with self.one_at_a_time:
            if OAuth2Token(account.token).is_expired():
                await self.refresh(account)
        return await self.client.get_profile(account.token["access_token"])

    async def refresh(self, account: Account) -> None:
        account.save(await self.client.refresh_token(account.token["refresh_token"]))

    async def revoke(self, account: Account) -> None:
        await self.client.revoke_token(account.token["refresh_token"])


class Declined(Exception):
    """Latchkey sent the browser back without a code."""


def code_of(error: Exception) -> str | None:
    if isinstance(error, Declined):
        return str(error)
    if isinstance(error, OAuth2RequestError | GetProfileError) and error.response is not None:
        code: str | None = error.response.json().get("error")
        return code
    return None


# [/show]
