"""Enterprise-managed authorization: the official SDKs' providers for it, unmodified, present assertions of a company's
identity provider, and the person sees no page."""

from __future__ import annotations

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthTokenError
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from handlers.core.site import Site
from store.wiring import Store
from tests.oauth.assertions.identity_provider import MOST, Enterprise
from tests.support.http.driver import NAME, App, Service
from tests.support.http.mcp_app import Storage, mcp_site
from tests.support.processes.npm import packages

pytestmark = [pytest.mark.gen_test(timeout=60)]
NODE = Path(__file__).parent / "node"


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return mcp_site(memory_store, base_url)


class Assistant:
    """An assistant of the company. `asked` has what it asked the identity provider for."""

    def __init__(self, enterprise: Enterprise, app: App) -> None:
        self.enterprise, self.app = enterprise, app
        self.url = f"{app.base_url}/mcp"
        self.storage = Storage(None)
        self.asked: list[tuple[str, str]] = []

    async def _assertion(self, audience: str, resource: str) -> str:
        self.asked.append((audience, resource))
        return self.enterprise.assertion(aud=audience, resource=resource)

    @asynccontextmanager
    async def connected(self, method: Any = "client_secret_post") -> AsyncIterator[Client]:
        """The SDK's client, which authorizes itself."""
        auth = IdentityAssertionOAuthProvider(
            server_url=self.url,
            storage=self.storage,
            client_id=self.app.client_id,
            client_secret=self.app.secret or "",
            issuer=self.app.base_url,
            assertion_provider=self._assertion,
            scope="profile",
            token_endpoint_auth_method=method,
        )
        async with (
            httpx2.AsyncClient(auth=auth, timeout=20) as http,
            Client(streamable_http_client(self.url, http_client=http), cache=None) as client,
        ):
            yield client


async def called(client: Client, name: str, **arguments: Any) -> Any:
    """The structured answer of a tool, or the words of its error."""
    answer = await client.call_tool(name, arguments)
    [content] = answer.content
    assert isinstance(content, TextContent)
    return content.text if answer.is_error else answer.structured_content


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
async def test_an_assistant_of_a_company_gets_in_without_a_page(
    enterprise: Enterprise, service: Service, method: str
) -> None:
    mcp = f"{service.base_url}/mcp"
    enterprise.trusts(resources=((mcp, MOST),))
    assistant = Assistant(enterprise, service.web)
    async with assistant.connected(method) as client:
        assert (await called(client, "who_am_i"))["name"] == NAME
        # Step-up: another assertion, and the scope that the tool needs.
        note = {"collection": "notes", "id": "a"}
        assert (await called(client, "save_document", **note, content=1))["created"] is True
        assert "credits:spend" in str(await _failed(client, "ask_model", prompt="Hello", max_tokens=5))
    assert set(assistant.asked) == {(service.base_url, mcp)}
    assert assistant.storage.tokens is not None
    assert assistant.storage.tokens.refresh_token is None
    page = (await (await service.signed_in()).get("/account/apps")).body.decode()
    assert "Example Works" in page


async def _failed(client: Client, name: str, **arguments: Any) -> Any:
    """The error of a tool that the company does not allow."""
    try:
        return await called(client, name, **arguments)
    except Exception as error:
        return error


async def test_an_assertion_for_another_server_gets_nowhere(enterprise: Enterprise, service: Service) -> None:
    enterprise.trusts(resources=((service.base_url, MOST),))
    with pytest.raises(Exception, match=r"invalid_grant|unhandled errors") as raised:
        async with Assistant(enterprise, service.web).connected() as client:
            await client.list_tools()
    assert isinstance(raised.value, OAuthTokenError | ExceptionGroup)


@pytest.mark.slow
async def test_the_typescript_sdk_gets_its_assertion_and_gets_in(enterprise: Enterprise, service: Service) -> None:
    mcp = f"{service.base_url}/mcp"
    enterprise.trusts(resources=((mcp, MOST),))
    packages(NODE)
    command = str(shutil.which("node"))
    process = await asyncio.create_subprocess_exec(command, "enterprise.mjs", cwd=NODE, stdin=PIPE, stdout=PIPE)
    job = {
        **{"url": mcp, "idp": enterprise.provider.url, "issuer": service.base_url},
        **{"clientId": "web-app", "clientSecret": service.web.secret},
        # The identity provider of this test knows by its ID token which app is meant.
        "idToken": json.dumps({"client_id": "web-app"}),
    }
    said, _ = await asyncio.wait_for(process.communicate(json.dumps(job).encode() + b"\n"), 40)
    found = json.loads(said)
    assert "failed" not in found, found["failed"]
    assert found["who"]["name"] == NAME
    assert "refresh_token" not in found["tokens"]
    [asked] = enterprise.provider.exchanged
    assert (asked["audience"], asked["resource"]) == (service.base_url, mcp)
