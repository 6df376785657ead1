"""The official Python SDK, unmodified, finds its way from the address of our MCP server to tools, more scopes and new
tokens."""

from __future__ import annotations

import time
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.auth import OAuthFlowError
from mcp_types import TextContent

from handlers.core.site import Site
from store.wiring import Store
from tests.support.http.driver import EMAIL, NAME, Service
from tests.support.http.mcp_app import LEGACY, MODERN, Assistant, mcp_site

pytestmark = [pytest.mark.gen_test(timeout=60)]
ERAS = pytest.mark.parametrize("mode", [pytest.param("auto", id=MODERN), pytest.param("legacy", id=LEGACY)])
NOTE = {"collection": "notes", "id": "a"}


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return mcp_site(memory_store, base_url)


async def called(client: Client, name: str, **arguments: Any) -> Any:
    """The structured answer of a tool, or the words of its error."""
    answer = await client.call_tool(name, arguments)
    [content] = answer.content
    assert isinstance(content, TextContent)
    return content.text if answer.is_error else answer.structured_content


@ERAS
async def test_an_assistant_that_knows_an_address_gets_all_the_way(service: Service, mode: str) -> None:
    await service.store.credits.grant(service.ada, 1_000_000)
    assistant = Assistant(service, service.web, await service.signed_in())
    async with assistant.connected(mode) as client:
        assert client.protocol_version == (LEGACY if mode == "legacy" else MODERN)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations}
        assert hints["get_document"].read_only_hint is True
        assert hints["delete_document"].destructive_hint is True
        assert hints["ask_model"].open_world_hint is True
        who = await called(client, "who_am_i")
        assert (who["name"], who["email"]) == (NAME, EMAIL)
        # Step-up: the tool's scope is named, and the person allows it.
        assert (await called(client, "save_document", **NOTE, content={"x": [1, None]}))["created"] is True
        found = await called(client, "get_document", **NOTE)
        assert found["content"] == {"x": [1, None]}
        read = await client.read_resource("latchkey://documents/notes/a")
        assert getattr(read.contents[0], "text", "") == '{"x":[1,null]}'
        asked = await called(client, "ask_model", prompt="Say hello", max_tokens=50)
        assert (asked["text"], asked["model"]) == ("Say hello", "latchkey-echo")
        assert (await called(client, "get_balance"))["spendable"] == 1_000_000 - asked["charged"] < 1_000_000
        assert "no such document" in await called(client, "delete_document", collection="notes", id="b")
    assert [one["scope"] for one in assistant.asked] == [
        "profile",
        "profile data:write",
        "profile data:write data:read",
        "profile data:write data:read credits:spend",
        "profile data:write data:read credits:spend credits:read",
    ]
    assert {one["resource"] for one in assistant.asked} == {f"{service.base_url}/mcp"}
    assert {one["code_challenge_method"] for one in assistant.asked} == {"S256"}


@ERAS
async def test_an_assistant_refreshes_its_token_and_asks_again_once_it_is_disconnected(
    service: Service, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = await service.signed_in()
    assistant = Assistant(service, service.web, browser)
    async with assistant.connected(mode) as client:
        before = assistant.storage.tokens
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + 3700)
        assert (await called(client, "who_am_i"))["name"] == NAME
        after = assistant.storage.tokens
        assert before is not None
        assert after is not None
        assert before.access_token != after.access_token
        assert len(assistant.asked) == 1
        monkeypatch.setattr(time, "time", now)
        page = await browser.get("/account/apps")
        await browser.submit(page, "/account/apps/web-app/revoke")
        assert (await called(client, "who_am_i"))["name"] == NAME
        assert len(assistant.asked) == 2


@ERAS
async def test_an_assistant_that_nobody_registered_registers_itself(service: Service, site: Site, mode: str) -> None:
    object.__setattr__(site, "dynamic_registration", "open")
    service.store.self_registered.scopes = ("openid", "profile", "email", "data:read", "data:write")
    assistant = Assistant(service, None, await service.signed_in())
    async with assistant.connected(mode) as client:
        assert (await called(client, "who_am_i"))["name"] == NAME
        assert (await called(client, "save_document", **NOTE, content=1))["created"] is True
        # What such an app may not ask for, it does not see.
        assert "ask_model" not in {tool.name for tool in (await client.list_tools()).tools}
    assert [one["scope"] for one in assistant.asked] == ["profile", "profile data:write"]


async def test_a_person_who_says_no_is_heard(service: Service) -> None:
    assistant = Assistant(service, service.web, await service.signed_in(), decision="deny")
    with pytest.raises(Exception, match=r"authorization code|unhandled errors") as raised:
        async with assistant.connected() as client:
            await client.list_tools()
    assert isinstance(raised.value, OAuthFlowError | ExceptionGroup)
    assert assistant.storage.tokens is None
