"""A small site in Flask: signs people in with Latchkey, keeps their tokens, asks a model and keeps the answer.

    pip install flask authlib requests
    CLIENT_ID=… CLIENT_SECRET=… python examples/flask_app.py

docs/programs.md says how to register it.
"""

from __future__ import annotations

# [show]
import os
import secrets
from typing import Any

from authlib.integrations.flask_client import OAuth, OAuthError
from flask import Flask, redirect, request, session
from markupsafe import escape

LATCHKEY = os.environ.get("LATCHKEY", "http://localhost:8080")
SITE = os.environ.get("SITE", "http://localhost:3000")
SCOPE = "openid profile data:read data:write credits:spend"
DOCUMENT, MODELS = "v1/data/answers/last", "v1/ai/v1/chat/completions"
TOKENS: dict[str, Any] = {}  # by person; keep them in your database, encrypted

site = Flask(__name__)
site.secret_key = os.environ.get("SITE_SECRET", secrets.token_hex())  # signs the cookie
site.config.update(SESSION_COOKIE_NAME="notes", SESSION_COOKIE_SAMESITE="Lax")


def save(token: Any, **used: str) -> None:
    """Authlib calls this after a refresh. The old refresh token doesn't work any more."""
    TOKENS[session["sub"]] = token


latchkey: Any = OAuth(site).register(
    "latchkey",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    server_metadata_url=f"{LATCHKEY}/.well-known/openid-configuration",
    api_base_url=f"{LATCHKEY}/api/",
    client_kwargs={"code_challenge_method": "S256"},
    fetch_token=lambda: TOKENS[session["sub"]],
    update_token=save,
)


@site.get("/")
def home() -> Any:
    if session.get("sub") not in TOKENS:
        return latchkey.authorize_redirect(f"{SITE}/callback", scope=SCOPE)
    kept = latchkey.get(DOCUMENT)
    if kept.status_code == 401:  # the person has disconnected this site: sign in again
        del TOKENS[session["sub"]]
        return redirect("/")
    last = kept.json()["answer"] if kept.ok else "Nothing yet."
    form = "<form method=post action=/ask><input name=question required> <button>Ask</button></form>"
    return f"<h1>Hello {escape(session['name'])}</h1>{form}<p>Last answer: {escape(last)}</p>"


@site.get("/callback")
def callback() -> Any:
    if request.args.get("iss") != LATCHKEY:  # the answer of another server (RFC 9207)
        return "This answer comes from another server.", 400
    token = latchkey.authorize_access_token()
    person = latchkey.userinfo(token=token)
    session["sub"], session["name"] = person["sub"], person["name"]
    TOKENS[person["sub"]] = token
    return redirect("/")


@site.post("/ask")
def ask() -> Any:
    if session.get("sub") not in TOKENS:
        return redirect("/")
    question = [{"role": "user", "content": request.form["question"]}]
    answer = latchkey.post(MODELS, json={"model": "latchkey-echo", "max_tokens": 100, "messages": question})
    if not answer.ok:  # such as 402: the person has no credits left
        return escape(answer.json()["error"]["message"]), answer.status_code
    text = answer.json()["choices"][0]["message"]["content"]
    latchkey.put(DOCUMENT, json={"answer": text}).raise_for_status()
    return redirect("/")


@site.errorhandler(OAuthError)
def refused(error: OAuthError) -> Any:
    """The person declined, or the refresh token has ended."""
    if request.endpoint != "callback":  # anybody can make a link there, which must sign nobody out
        TOKENS.pop(session.pop("sub", ""), None)
    return f"{escape(error.error)}. <a href=/>Sign in</a>", 403


if __name__ == "__main__":
    # One request at a time: two at once would use the same refresh token.
    site.run(port=int(SITE.rpartition(":")[2]), threaded=False)
    # [/show]
