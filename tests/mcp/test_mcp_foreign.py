"""The MCP server in docs/agents/mcp.md: somebody else's, whose tokens come from us and are introspected here."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from handlers.core.site import Site
from store.apps.api_record import ApiRegistration, ApiScope
from store.wiring import Store
from tests.support.http.api_shop import at
from tests.support.http.driver import Service, send
from tests.support.http.mcp_app import Assistant, call, mcp_site

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "agents" / "mcp.md"
SCOPES = (ApiScope("orders:read", "See your orders"), ApiScope("orders:write", "Place orders", care=True))


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return mcp_site(memory_store, base_url)


async def listens(port: int) -> bool:
    """Whether something takes connections at a port of this machine."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


@asynccontextmanager
async def orders(service: Service, folder: Path) -> AsyncIterator[ApiRegistration]:
    """The server of the page, in a process of its own."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    made = ApiRegistration(f"http://127.0.0.1:{port}/mcp", "Orders", SCOPES)
    api, secret = await service.store.apis.create(made)
    [program] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (folder / "orders.py").write_text(program)
    facts = {"LATCHKEY": service.base_url, "ADDRESS": api.identifier, "CLIENT_ID": api.client_id}
    env = {**os.environ, **facts, "CLIENT_SECRET": secret, "PORT": str(port)}
    process = await asyncio.create_subprocess_exec(sys.executable, str(folder / "orders.py"), env=env)
    try:
        async with asyncio.timeout(30):
            while not await listens(port):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        yield api
    finally:
        process.terminate()
        await process.wait()


async def test_an_assistant_uses_somebody_elses_mcp_server_with_tokens_of_ours(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with orders(service, tmp_path) as api:
        app = await service.add_app("assistant", api_scopes=at(api, "orders:read", "orders:write"), public=True)
        browser = await service.signed_in()
        assistant = Assistant(service, app, browser, api.identifier)
        async with assistant.connected() as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == {"list_orders", "place_order"}
            found = await client.call_tool("list_orders", {})
            assert found.structured_content == {"result": [f"the first order of {service.ada}"]}
            placed = await client.call_tool("place_order", {"what": "tea"})
            assert placed.structured_content == {"result": f"tea for {service.ada}"}
            assert [one["scope"] for one in assistant.asked] == ["orders:read", "orders:read orders:write"]
            assert {one["resource"] for one in assistant.asked} == {api.identifier}
            # The token works there only.
            tokens = assistant.storage.tokens
            assert tokens is not None
            assert (await call(service, tokens.access_token, "who_am_i")).code == 401
            now = time.time
            monkeypatch.setattr(time, "time", lambda: now() + 700)
            assert (await client.call_tool("list_orders", {})).is_error is False
            monkeypatch.setattr(time, "time", now)
            assert len(assistant.asked) == 2
            assert assistant.storage.tokens != tokens
            # A token that the person ended is refused at once, and the person is asked again.
            page = await browser.get("/account/apps")
            await browser.submit(page, "/account/apps/assistant/revoke")
            assert (await client.call_tool("list_orders", {})).is_error is False
            assert len(assistant.asked) == 3
        # A token for our own MCP server is no token there.
        ours = await service.tokens(browser=browser, scope="profile", resource=f"{service.base_url}/mcp")
        headers = {"Authorization": f"Bearer {ours['access_token']}", "Content-Type": "application/json"}
        body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
        assert (await send(api.identifier, "POST", body=body, headers=headers, described=False)).code == 401
