"""Authlib on httpx: AsyncOAuth2Client."""

# [show]
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2 as httpx  # what Authlib takes where it is installed; plain httpx works alike
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client

# [/show]
from tests.oauth.clients.account import Account

# [show]


class Latchkey:
    def __init__(self, issuer: str, redirect_uri: str, scope: str, **client: Any) -> None:
        address = f"{issuer}/.well-known/oauth-authorization-server"
        self.server = httpx.get(address, timeout=10).json()
        self.issuer, self.redirect_uri, self.scope, self.client = issuer, redirect_uri, scope, client

    def open(self, account: Account | None = None) -> AsyncOAuth2Client:
        async def save(token: dict[str, Any], **_: Any) -> None:
            if account:
                account.save(token)

        return AsyncOAuth2Client(
            **self.client,
            redirect_uri=self.redirect_uri,
            code_challenge_method="S256",
            token_endpoint=self.server["token_endpoint"],
            token=account and account.token,
            update_token=save,
            timeout=10,
        )

    async def begin(self, session: dict[str, str]) -> str:
        session["verifier"] = generate_token(48)
        async with self.open() as client:
            url, session["state"] = client.create_authorization_url(
                self.server["authorization_endpoint"], code_verifier=session["verifier"], scope=self.scope
            )
        return str(url)

    async def finish(self, session: dict[str, str], callback: str) -> Account:
        state, verifier = session.pop("state"), session.pop("verifier")  # good for one answer
        answer = dict(parse_qsl(urlsplit(callback).query))
        if answer.get("state") != state or answer.get("iss") != self.issuer:
            raise ValueError("this answer belongs to no sign-in of this browser")
        if "error" in answer:
            raise OAuthError(answer["error"], answer.get("error_description"))
        async with self.open() as client:
            return Account(await client.fetch_token(code=answer["code"], code_verifier=verifier))

    async def userinfo(self, client: AsyncOAuth2Client) -> dict[str, Any]:
        """`client` is open(account), one for a person: it refreshes first where need be, once for all its calls."""
        answer = await client.get(self.server["userinfo_endpoint"])
        answer.raise_for_status()
        return dict(answer.json())

    async def refresh(self, client: AsyncOAuth2Client) -> None:
        await client.refresh_token()

    async def revoke(self, client: AsyncOAuth2Client) -> None:
        (await client.revoke_token(self.server["revocation_endpoint"])).raise_for_status()


def code_of(error: Exception) -> str | None:
    if isinstance(error, OAuthError):
        return str(error.error)
    if isinstance(error, httpx.HTTPStatusError):
        code: str | None = error.response.json().get("error")
        return code
    return None


# [/show]
