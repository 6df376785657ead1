"""Authlib in Flask. Django and Starlette take the same settings."""

from __future__ import annotations

# [show]
from typing import Any

from authlib.integrations.flask_client import OAuth, OAuthError
from flask import Flask, Response, redirect, request, session, url_for
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

ENDED: dict[str, Any] = {"http://schemas.openid.net/event/backchannel-logout": {}}


def make_site(issuer: str, client_id: str, client_secret: str, secret: str) -> Flask:
    site = Flask(__name__)
    site.secret_key = secret  # seals the cookies
    over: set[str] = set()  # sessions that have ended; keep them where all processes of the site see them
    oauth = OAuth(site)
    latchkey: Any = oauth.register(
        "latchkey",
        client_id=client_id,
        client_secret=client_secret,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={"code_challenge_method": "S256"},  # no scope here: the person may allow less
    )

    @site.get("/private")
    def private() -> Response | dict[str, Any]:
        if "person" in session and session["person"]["sid"] not in over:
            return dict(session["person"])
        back = url_for("callback", _external=True)
        answer: Response = latchkey.authorize_redirect(back, scope="openid profile")
        return answer

    @site.get("/callback")
    def callback() -> Any:
        if request.args.get("iss") != issuer:  # the answer of another server (RFC 9207); Authlib doesn't look
            return {"error": "another issuer"}, 400
        try:
            token = latchkey.authorize_access_token()
        except OAuthError as error:  # "access_denied": the person declined
            return {"error": error.error}, 403  # as JSON: this text comes from the address
        session["person"], session["id_token"] = token["userinfo"], token["id_token"]  # the claims, and the hint
        over.discard(token["userinfo"]["sid"])
        return redirect("/private")

    @site.get("/logout")
    def logout() -> Any:
        hint = session.pop("id_token", None)
        session.clear()
        return latchkey.logout_redirect(url_for("bye", _external=True), id_token_hint=hint)

    @site.get("/bye")
    def bye() -> str:
        return "You are signed out."

    @site.post("/backchannel-logout")
    def ended() -> tuple[str, int]:
        """Latchkey tells that a session has ended."""
        rules: Any = {"iss": {"value": issuer}, "aud": {"value": client_id}, "events": {"value": ENDED}, "exp": {}}
        try:
            keys = KeySet.import_key_set(latchkey.fetch_jwk_set(force=True))
            token = jwt.decode(request.form["logout_token"], keys, algorithms=["RS256"])
            rules = {name: {"essential": True, **rule} for name, rule in rules.items()}
            jwt.JWTClaimsRegistry(**rules).validate(token.claims)
        except JoseError:
            return "", 400
        over.add(token.claims["sid"])
        return "", 204

    return site
    # [/show]
