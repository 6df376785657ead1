"""Signs a person in at the command line with the code of a device (RFC 8628), on Python's standard library alone.

    python examples/device_login.py http://localhost:8080 CLIENT_ID

With the package segno it shows a QR code too.
"""

from __future__ import annotations

# [show]
import json
import sys
import time
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"


def ask(url: str, fields: dict[str, str] | None = None, token: str = "") -> Any:
    """A JSON answer, an error too."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = Request(url, urlencode(fields).encode() if fields else None, headers)  # noqa: S310  # your own server
    try:
        with urlopen(request, timeout=10) as response:  # noqa: S310  # your own server
            return json.load(response)
    except HTTPError as error:
        return json.load(error)


def sign_in(issuer: str, client_id: str, scope: str) -> Any:
    """Shows the code and waits for the person. Returns the token response, or the error that ended it."""
    server = ask(f"{issuer}/.well-known/oauth-authorization-server")
    codes = ask(server["device_authorization_endpoint"], {"client_id": client_id, "scope": scope})
    if "error" in codes:
        return codes
    show(codes)
    poll = {"grant_type": GRANT_TYPE, "device_code": codes["device_code"], "client_id": client_id}
    interval = codes["interval"]
    while True:
        time.sleep(interval)
        answer = ask(server["token_endpoint"], poll)
        if answer.get("error") == "slow_down":
            interval += 5
        elif answer.get("error") == "rate_limited":
            interval = max(interval, answer["retryAfter"])
        elif answer.get("error") != "authorization_pending":
            return answer


# [/show]


def show(codes: Any) -> None:
    """What the person has to do, in words and as a QR code."""
    print(f"Open {codes['verification_uri']} and enter {codes['user_code']}", flush=True)
    try:
        import segno
    except ImportError:
        return
    segno.make(codes["verification_uri_complete"]).terminal(compact=True)


def main() -> None:
    """Signs in, and greets the person."""
    issuer, client_id = sys.argv[1].rstrip("/"), sys.argv[2]
    answer = sign_in(issuer, client_id, "profile")
    if "error" in answer:
        sys.exit(f"{answer['error']}: {answer['error_description']}")
    person = ask(f"{issuer}/api/oauth/userinfo", token=answer["access_token"])
    print(f"Hello {person['name']}!")


if __name__ == "__main__":
    main()
