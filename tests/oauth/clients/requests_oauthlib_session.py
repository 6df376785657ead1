"""requests-oauthlib: OAuth2Session."""

# [show]
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient
from requests_oauthlib import OAuth2Session

# [/show]
from tests.oauth.clients.account import Account

# [show]


class Latchkey:
    def __init__(
        self,
        issuer: str,
        redirect_uri: str,
        scope: str,
        client_id: str,
        client_secret: str | None = None,  # none: a public app, with in_body=True
        in_body: bool = False,  # client_secret_post; else client_secret_basic
    ) -> None:
        # With http:// (localhost) this library wants OAUTHLIB_INSECURE_TRANSPORT=1 in the environment.
        address = f"{issuer}/.well-known/oauth-authorization-server"
        self.server = requests.get(address, timeout=10).json()
        self.issuer, self.redirect_uri, self.scope = issuer, redirect_uri, scope
        self.client_id, self.client_secret, self.in_body = client_id, client_secret, in_body

    def open(self, account: Account | None = None, **more: Any) -> OAuth2Session:
        body = {"client_id": self.client_id, "client_secret": self.client_secret}
        return OAuth2Session(
            self.client_id,
            redirect_uri=self.redirect_uri,
            token=account and account.token,
            auto_refresh_url=self.server["token_endpoint"],
            auto_refresh_kwargs={name: value for name, value in body.items() if value},
            token_updater=account and account.save,
            **more,
        )

    def begin(self, session: dict[str, str]) -> str:
        pkce = WebApplicationClient(self.client_id)
        session["verifier"] = pkce.create_code_verifier(64)
        # Only this session gets the scope: the others would ask for all of it at each refresh.
        url, session["state"] = self.open(scope=self.scope).authorization_url(
            self.server["authorization_endpoint"],
            code_challenge=pkce.create_code_challenge(session["verifier"], "S256"),
            code_challenge_method="S256",
        )
        return str(url)

    def finish(self, session: dict[str, str], callback: str) -> Account:
        if dict(parse_qsl(urlsplit(callback).query)).get("iss") != self.issuer:
            raise ValueError("this is the answer of another server")
        # It looks at state and error itself.
        token = self.open(state=session.pop("state")).fetch_token(
            self.server["token_endpoint"],
            authorization_response=callback,
            code_verifier=session.pop("verifier"),
            client_secret=self.client_secret,
            include_client_id=self.in_body,
            timeout=10,
        )
        return Account(token)

    def userinfo(self, account: Account) -> dict[str, Any]:
        with account.lock:  # one refresh at a time
            answer = self.open(account).get(self.server["userinfo_endpoint"], timeout=10)
        answer.raise_for_status()
        return dict(answer.json())

    def refresh(self, account: Account) -> None:
        with account.lock:
            account.save(self.open(account).refresh_token(self.server["token_endpoint"], timeout=10))

    def revoke(self, account: Account) -> None:
        form = {"token": account.token["refresh_token"]}  # the library has nothing for it
        requests.post(self.server["revocation_endpoint"], form, timeout=10).raise_for_status()


def code_of(error: Exception) -> str | None:
    if isinstance(error, OAuth2Error):
        return str(error.error)
    if isinstance(error, requests.HTTPError) and error.response is not None:
        code: str | None = error.response.json().get("error")
        return code
    return None


# [/show]
