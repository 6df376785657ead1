"""Valid requests, for mutation, of apps whose client id is the URL of a metadata document: one that was read before,
some that have none, and some where nothing may be fetched from."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from dev.fuzz.messages import FORM, JSON, Message, message
from dev.fuzz.tokens import VERIFIER, Cast
from store.crypto.seal import TokenKind
from store.names import DEVICE_GRANT
from tests.support.http.documented_app import URL, WEB
from tests.support.processes.proven_domain import DOMAIN

NEVER_READ = (
    f"https://{DOMAIN}/another.json",
    f"https://{DOMAIN}/a%2Fb;c=d/" + "x" * 200,
    "https://10.0.0.1/client.json",
    "https://[::ffff:127.0.0.1]/client.json",
    "https://elsewhere.example:8443/client.json",
)


def documented(cast: Cast) -> list[Message]:
    """All of these requests."""
    form, signed_in = {"Content-Type": FORM}, {"Cookie": f"latchkey_session={cast.session}"}
    made = []
    for url in (URL, *NEVER_READ):
        asked = {
            "client_id": url,
            "redirect_uri": WEB,
            "response_type": "code",
            "code_challenge": "c" * 43,
            "code_challenge_method": "S256",
        }
        code = {"grant_type": "authorization_code", "code": cast.sealed(TokenKind.CODE, url), "redirect_uri": WEB}
        poll = {"grant_type": DEVICE_GRANT, "device_code": cast.sealed(TokenKind.DEVICE_CODE, url)}
        made += [
            message("GET", f"/oauth/authorize?{urlencode(asked)}", signed_in),
            message("POST", "/api/oauth/par", form, urlencode({**asked, "scope": "admin"})),
            message("POST", "/api/oauth/device_authorization", form, urlencode({"client_id": url, "scope": "profile"})),
            message("POST", "/api/oauth/token", form, urlencode({**code, "code_verifier": VERIFIER, "client_id": url})),
            message("POST", "/api/oauth/token", {"Content-Type": JSON}, json.dumps({**poll, "client_id": url})),
        ]
    return made
