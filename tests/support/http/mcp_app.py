"""An assistant that a person connects: the official Python SDK, unmodified, with its own OAuth client. A browser does
the person's part: it signs in and consents."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from runtime.mcp_wiring import open_mcp
from settings.declared import Settings
from store.wiring import Store
from tests.support.http.driver import App, Browser, Service, answer_of, json_of, send

MODERN, LEGACY = "2026-07-28", "2025-11-25"


def mcp_site(store: Store, base_url: str, **facts: Any) -> Site:
    """A site whose MCP server is on."""
    store.apis.mcp = True
    return Site(store, base_url, mcp=open_mcp(Settings(mcp="on"), base_url, "Latchkey"), **facts)


class Storage:
    """Where the SDK keeps what it has: in memory, with a client that an operator registered, or without one."""

    def __init__(self, app: App | None) -> None:
        self.tokens: OAuthToken | None = None
        self.client = (
            None
            if app is None
            else OAuthClientInformationFull(
                client_id=app.client_id,
                client_secret=app.secret,
                redirect_uris=[AnyUrl(app.redirect_uri)],
                token_endpoint_auth_method="client_secret_post" if app.secret else "none",
                issuer=app.base_url,
            )
        )

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Assistant:
    """An assistant that knows the address of an MCP server, and the app that it is registered as; without one it
    registers itself. `asked` has the authorization requests that the person answered."""

    def __init__(
        self, service: Service, app: App | None, browser: Browser, url: str = "", decision: str = "allow"
    ) -> None:
        self.service, self.browser, self.decision = service, browser, decision
        self.redirect_uri = app.redirect_uri if app else "http://localhost:8123/callback"
        self.url = url or f"{service.base_url}/mcp"
        self.storage = Storage(app)
        self.document: str | None = None
        """The URL of the assistant's metadata document, which is its client id where a server reads such documents."""
        self.asked: list[dict[str, str]] = []
        self._answer: dict[str, str] = {}

    async def go(self, url: str) -> None:
        """The person follows the address, and allows what is asked for."""
        parts = urlsplit(url)
        assert url.startswith(self.service.base_url)
        self.asked.append(dict(parse_qsl(parts.query)))
        self._answer = answer_of(await self.browser.consent(f"{parts.path}?{parts.query}", self.decision))

    async def back(self) -> AuthorizationCodeResult:
        """What the browser brings back to the assistant."""
        answer = self._answer
        return AuthorizationCodeResult(code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss"))

    @asynccontextmanager
    async def connected(self, mode: Any = "auto") -> AsyncIterator[Client]:
        """The SDK's client, which authorizes itself."""
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(self.redirect_uri)], client_name="Assistant")
        auth = OAuthClientProvider(self.url, metadata, self.storage, self.go, self.back, self.document)
        async with (
            httpx2.AsyncClient(auth=auth, timeout=20) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, cache=None) as client,
        ):
            yield client


def message(method: str, params: dict[str, Any] | None = None, *, version: str = LEGACY) -> dict[str, Any]:
    """A request with an id; of a new revision with what each of its requests says."""
    params = dict(params or {})
    if version == MODERN:
        fields = {"protocolVersion": MODERN, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in fields.items()}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def post(
    service: Service, token: str | None, body: Any, headers: dict[str, str | None] | None = None
) -> HTTPResponse:
    """One message as bytes or as JSON, with the headers of a client; None leaves a header out."""
    sent: dict[str, str | None] = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": LEGACY,
        "Authorization": f"Bearer {token}" if token else None,
        **(headers or {}),
    }
    kept = {name: value for name, value in sent.items() if value is not None}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await send(f"{service.base_url}/mcp", "POST", body=data, headers=kept)


async def call(service: Service, token: str | None, tool: str, **arguments: Any) -> HTTPResponse:
    """A call of a tool."""
    return await post(service, token, message("tools/call", {"name": tool, "arguments": arguments}))


async def result(service: Service, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a tool."""
    response = await call(service, token, tool, **arguments)
    assert response.code == 200, response.body
    found: dict[str, Any] = json_of(response)["result"]
    return found
