"""Authlib in Flask. Django and Starlette take the same settings."""

from __future__ import annotations

from typing import Any

# [show]
from authlib.integrations.flask_client import OAuth
from flask import Flask, Response, redirect, session, url_for


def make_site(issuer: str, client_id: str, client_secret: str, secret: str) -> Flask:
    site = Flask(__name__)
    site.secret_key = secret  # seals the cookies
    oauth = OAuth(site)
    latchkey: Any = oauth.register(
        "latchkey",
        client_id=client_id,
        client_secret=client_secret,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={"scope": "openid profile", "code_challenge_method": "S256"},
    )

    @site.get("/private")
    def private() -> Response | dict[str, Any]:
        if "person" in session:
            return dict(session["person"])
        answer: Response = latchkey.authorize_redirect(url_for("callback", _external=True))
        return answer

    @site.get("/callback")
    def callback() -> Any:
        session["person"] = latchkey.authorize_access_token()["userinfo"]  # the claims of the ID token
        return redirect("/private")

    return site
    # [/show]
