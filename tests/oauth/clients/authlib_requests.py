"""Authlib on requests: OAuth2Session."""

# [show]
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session

# [/show]
from tests.oauth.clients.account import Account

# [show]


class Latchkey:
    def __init__(self, issuer: str, redirect_uri: str, scope: str, **client: Any) -> None:
        # client: client_id, client_secret (None for a public app) and, if it is not to be
        # client_secret_basic, token_endpoint_auth_method="client_secret_post"
        address = f"{issuer}/.well-known/oauth-authorization-server"
        self.server = requests.get(address, timeout=10).json()
        self.issuer, self.redirect_uri, self.scope, self.client = issuer, redirect_uri, scope, client

    def open(self, account: Account | None = None) -> OAuth2Session:
        return OAuth2Session(  # without scope=, which Authlib would ask for at each refresh
            **self.client,
            redirect_uri=self.redirect_uri,
            code_challenge_method="S256",
            token_endpoint=self.server["token_endpoint"],
            token=account and account.token,
            update_token=account and account.save,
            default_timeout=10,
        )

    def begin(self, session: dict[str, str]) -> str:
        """The address to send the browser to. `session` is what your framework keeps for it."""
        session["verifier"] = generate_token(48)
        url, session["state"] = self.open().create_authorization_url(
            self.server["authorization_endpoint"], code_verifier=session["verifier"], scope=self.scope
        )
        return str(url)

    def finish(self, session: dict[str, str], callback: str) -> Account:
        """`callback` is the address that the browser came back to, query and all."""
        state, verifier = session.pop("state"), session.pop("verifier")  # good for one answer
        answer = dict(parse_qsl(urlsplit(callback).query))
        if answer.get("state") != state or answer.get("iss") != self.issuer:
            raise ValueError("this answer belongs to no sign-in of this browser")
        if "error" in answer:
            raise OAuthError(answer["error"], answer.get("error_description"))
        return Account(self.open().fetch_token(code=answer["code"], code_verifier=verifier))

    def userinfo(self, account: Account) -> dict[str, Any]:
        with account.lock:  # one refresh at a time, and none where another thread has just made one
            client = self.open(account)
            client.ensure_active_token()
        answer = client.get(self.server["userinfo_endpoint"])
        answer.raise_for_status()
        return dict(answer.json())

    def refresh(self, account: Account) -> None:
        with account.lock:
            self.open(account).refresh_token()

    def revoke(self, account: Account) -> None:
        client = self.open(account)
        client.revoke_token(self.server["revocation_endpoint"], account.token["refresh_token"]).raise_for_status()


def code_of(error: Exception) -> str | None:
    if isinstance(error, OAuthError):
        return str(error.error)
    if isinstance(error, requests.HTTPError) and error.response is not None:
        code: str | None = error.response.json().get("error")
        return code
    return None


# [/show]
