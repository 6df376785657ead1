"""Apps and APIs that hand on tokens by token exchange."""

from __future__ import annotations

import json
from typing import Any

from tornado.httpclient import HTTPResponse

from store.names import EXCHANGE_GRANT
from tests.support.http.driver import App, Service, json_of

TYPE = "urn:ietf:params:oauth:token-type:access_token"
JWT = "urn:ietf:params:oauth:token-type:jwt"
SPENDS = "profile credits:spend data:read"


def form_of(subject: str, **changes: Any) -> dict[str, Any]:
    """The parameters of an exchange; a change to None leaves one out, a list is sent as JSON text."""
    form = {"grant_type": EXCHANGE_GRANT, "subject_token": subject, "subject_token_type": TYPE, **changes}
    return {name: json.dumps(value) if isinstance(value, list) else value for name, value in form.items()}


async def exchange(app: App, subject: str, **changes: Any) -> HTTPResponse:
    """An app's exchange."""
    return await app.token(**form_of(subject, **changes))


async def handed(app: App, subject: str, **changes: Any) -> dict[str, Any]:
    """The answer to an exchange that succeeds."""
    response = await exchange(app, subject, **changes)
    assert response.code == 200, response.body
    answer: dict[str, Any] = json_of(response)
    return answer


async def refused(app: App, subject: str, **changes: Any) -> tuple[int, str]:
    """The status and the error code of an exchange that fails."""
    response = await exchange(app, subject, **changes)
    return response.code, json_of(response).get("error", "")


async def root_of(service: Service, app: App | None = None, details: list[Any] | None = None) -> str:
    """An access token from the person's consent, with these budgets."""
    asked: dict[str, Any] = {"authorization_details": json.dumps(details)} if details else {}
    tokens = await service.tokens(app, scope=SPENDS, prompt="consent", **asked)
    return str(tokens["access_token"])
