"""Apps that register themselves, as a program of the Model Context Protocol does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tornado.httpclient import HTTPResponse

from tests.support.http.driver import App, json_of, send

CALLBACK = "http://localhost:33418/callback"
NATIVE: dict[str, Any] = {
    "client_name": "Notes on the desktop",
    "redirect_uris": ["http://localhost/callback"],
    "token_endpoint_auth_method": "none",
}


@dataclass
class Registered(App):
    """A registered app, with what changes its registration."""

    access_token: str = ""

    async def manage(
        self, method: str, metadata: dict[str, Any] | None = None, token: str | None = None
    ) -> HTTPResponse:
        """A request to the address of the registration."""
        bearer = {"Authorization": f"Bearer {self.access_token if token is None else token}"}
        url = f"{self.base_url}/api/oauth/register/{self.client_id}"
        if metadata is None:
            return await send(url, method, headers=bearer)
        headers = {**bearer, "Content-Type": "application/json"}
        return await send(url, method, body=json.dumps(metadata), headers=headers)


async def post_registration(base_url: str, metadata: Any, token: str = "") -> HTTPResponse:
    """POST /api/oauth/register, with a registration token if there is one."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    return await send(f"{base_url}/api/oauth/register", "POST", body=json.dumps(metadata), headers=headers)


async def register(base_url: str, token: str = "", **metadata: Any) -> Registered:
    """A newly registered app: a native one, unless `metadata` say otherwise (None leaves a member out)."""
    asked = {name: value for name, value in {**NATIVE, **metadata}.items() if value is not None}
    response = await post_registration(base_url, asked, token)
    assert response.code == 201, response.body
    made = json_of(response)
    redirect_uri = CALLBACK if made["redirect_uris"] == NATIVE["redirect_uris"] else made["redirect_uris"][0]
    secret = made.get("client_secret")
    return Registered(base_url, made["client_id"], secret, redirect_uri, made["registration_access_token"])


PROBES_OF_CLIENTS: dict[str, tuple[Any, Any]] = {
    "dynamic_registration": ("token", lambda r: r.site.dynamic_registration),
    "client_metadata": ("on", lambda r: "on" if r.store.apps.documents else "off"),
    "client_documents_per_hour": (7, lambda r: r.store.limits.documents.limit),
    "self_registered_scopes": (("profile",), lambda r: r.store.self_registered.scopes),
    "self_registered_apps": (5, lambda r: r.store.self_registered.most),
    "registrations_per_hour": (6, lambda r: r.store.limits.registrations.limit),
}
"""Settings of these apps: another value, and what has it after a reload."""
