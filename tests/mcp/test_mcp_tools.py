"""The tools: what they do is what our ordinary calls do, and costs the same."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handlers.core.application import Latchkey
from handlers.core.site import Site
from handlers.mcp import messages
from runtime.mcp_wiring import open_mcp
from settings.declared import Settings
from store import keys
from tests.support.http.dpop_app import BoundApp
from tests.support.http.driver import ALL_SCOPES, Service, json_of, send
from tests.support.http.mcp_app import call, message, post, result
from tests.support.http.upstream import TEXT, USAGE, Plan, ScriptedUpstream, failing
from tests.support.store.ai_spender import MODEL, Spender, at_rest, cost, reached
from tests.support.store.windows import full

pytestmark = [pytest.mark.gen_test]
NOTE = {"collection": "notes", "id": "a"}


@pytest.fixture
def site(ai_site: Site) -> Site:
    ai_site.store.apis.mcp = True
    object.__setattr__(ai_site, "mcp", open_mcp(Settings(mcp="on"), ai_site.base_url, "Latchkey"))
    return ai_site


async def spender(service: Service, amount: int = 1_000_000, *scopes: str) -> Spender:
    """Ada's token for the MCP server."""
    app = await service.store.apps.find("web-app")
    assert app is not None
    tokens = await service.store.tokens.mint(service.ada, app, scopes or ALL_SCOPES, api="mcp")
    await service.store.credits.grant(service.ada, amount)
    return Spender(service, service.web, service.ada, tokens.access_token, service.base_url)


async def said(service: Service, token: str, tool: str, **arguments: Any) -> str:
    """The words of a tool's error."""
    answer = await result(service, token, tool, **arguments)
    assert answer["isError"] is True, answer
    assert "structuredContent" not in answer
    return str(answer["content"][0]["text"])


async def test_documents_are_those_of_the_app_and_the_person(service: Service) -> None:
    token = (await spender(service)).token
    ours = (await service.tokens(scope="data:read data:write"))["access_token"]
    saved = await result(service, token, "save_document", **NOTE, content={"text": "Grüße", "none": None, "n": 10**18})
    record = saved["structuredContent"]
    assert json.loads(saved["content"][0]["text"]) == record
    response = await send(f"{service.base_url}/api/v1/data/notes/a", headers={"Authorization": f"Bearer {ours}"})
    assert response.headers["ETag"] == record["etag"]
    assert json_of(response) == {"text": "Grüße", "none": None, "n": 10**18}
    read = await result(service, token, "get_document", **NOTE)
    assert read["structuredContent"] == {
        **{name: value for name, value in record.items() if name != "created"},
        "content": json_of(response),
    }
    assert json.loads(read["content"][0]["text"]) == read["structuredContent"]
    # Nobody else's change is overwritten.
    assert "condition" in await said(service, token, "save_document", **NOTE, content=1, only_if_new=True)
    assert "condition" in await said(service, token, "save_document", **NOTE, content=1, if_match='"999"')
    changed = await result(service, token, "save_document", **NOTE, content=[1], if_match=record["etag"])
    assert changed["structuredContent"]["created"] is False
    assert "condition" in await said(service, token, "delete_document", **NOTE, if_match=record["etag"])
    for name in ("b", "c"):
        await result(service, token, "save_document", collection="notes", id=name, content=0)
    page = (await result(service, token, "list_documents", collection="notes", limit=2))["structuredContent"]
    assert [item["id"] for item in page["items"]] == ["a", "b"]
    rest = await result(service, token, "list_documents", collection="notes", cursor=page["nextCursor"])
    assert [item["id"] for item in rest["structuredContent"]["items"]] == ["c"]
    listed = (await result(service, token, "list_collections"))["structuredContent"]
    assert listed["collections"] == [{"name": "notes", "documents": 3, "bytes": 5}]
    assert (await result(service, token, "delete_document", **NOTE))["structuredContent"] == {"deleted": True}
    assert "no such document" in await said(service, token, "get_document", **NOTE)


async def test_a_number_that_is_no_double_stays_as_the_app_stored_it(service: Service) -> None:
    token = (await spender(service)).token
    ours = (await service.tokens(scope="data:read data:write"))["access_token"]
    headers = {"Authorization": f"Bearer {ours}", "Content-Type": "application/json"}
    large = b'{"a": 1e999}'
    await send(f"{service.base_url}/api/v1/data/notes/a", "PUT", body=large, headers=headers)
    read = await result(service, token, "get_document", **NOTE)
    assert read["structuredContent"]["content"] == large.decode()
    assert '"content":{"a": 1e999}}' in read["content"][0]["text"]
    wide = await post(
        service,
        token,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"save_document","arguments":'
        b'{"collection":"notes","id":"b","content":123456789012345678901234567890}}}',
    )
    assert json_of(wide)["result"]["isError"] is True


async def test_a_long_document_is_counted_once_where_documents_are(service: Service) -> None:
    token = (await spender(service)).token
    text = "x" * 200_000
    first = await call(service, token, "save_document", **NOTE, content=text)
    assert first.headers["X-RateLimit-Limit"] == "60"
    assert first.headers["X-RateLimit-Remaining"] == "59"
    assert len((await result(service, token, "get_document", **NOTE))["structuredContent"]["content"]) == 200_000
    assert "at most 262144 bytes" in await said(service, token, "save_document", **NOTE, content="x" * 262_200)


async def test_a_full_window_is_said_to_the_model(service: Service) -> None:
    token = (await spender(service)).token
    await service.store.client.set(keys.limit(service.ada, "data-write", "web-app"), full(60))
    response = await call(service, token, "save_document", **NOTE, content=1)
    assert (response.code, response.headers["X-RateLimit-Remaining"]) == (200, "0")
    answer = json_of(response)["result"]
    assert answer["isError"] is True
    assert "Try again in" in answer["content"][0]["text"]


async def test_a_model_is_asked_held_and_settled_like_any_call(service: Service, upstream: ScriptedUpstream) -> None:
    payer = await spender(service)
    upstream.script(Plan())
    found = (await result(service, payer.token, "ask_model", prompt="Hi", system="Be brief.", max_tokens=100))[
        "structuredContent"
    ]
    due = cost(USAGE["input_tokens"], USAGE["output_tokens"])
    assert (found["text"], found["model"], found["charged"]) == (TEXT, MODEL, due)
    assert found["remaining"] == 1_000_000 - due
    asked = upstream.calls[0].question
    assert asked["messages"] == [{"role": "user", "content": "Hi"}]
    assert (asked["system"], asked["max_tokens"]) == ("Be brief.", 100)
    assert await payer.charged() == [due]
    rows = (await result(service, payer.token, "list_models"))["structuredContent"]["models"]
    assert [row["id"] for row in rows] == [MODEL]


async def test_a_failed_call_costs_nothing_and_says_so(service: Service, upstream: ScriptedUpstream) -> None:
    payer = await spender(service)
    upstream.script(failing(404, "not_found_error"))
    assert "Nothing was charged" in await said(service, payer.token, "ask_model", prompt="Hi")
    assert await payer.charged() == []
    assert "no model of this name" in await said(service, payer.token, "ask_model", prompt="Hi", model="none")
    assert (await call(service, payer.token, "ask_model", prompt="x" * 400_000)).code == 413


async def test_an_assistant_spends_no_more_than_the_person_has(service: Service) -> None:
    payer = await spender(service, 1)
    assert "credits do not cover" in await said(service, payer.token, "ask_model", prompt="Hi")
    assert len((await payer.account()).entries) == 1


async def test_a_call_that_takes_long_shows_that_it_lives(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "BREATH", 0.05)
    payer, opens = await spender(service), asyncio.Event()
    body = message("tools/call", {"name": "ask_model", "arguments": {"prompt": "Hi"}})
    upstream.script(Plan(opens=opens), Plan(opens=opens))
    waiting = asyncio.ensure_future(post(service, payer.token, body))
    plain = asyncio.ensure_future(post(service, payer.token, body, {"Accept": "application/json"}))
    await reached(upstream, 2)
    await asyncio.sleep(0.2)
    opens.set()
    response = await waiting
    assert response.headers["Content-Type"] == "text/event-stream"
    *signs, event, end = response.body.decode().split("\n\n")
    assert {*signs} == {": in progress"}
    assert end == ""
    assert json.loads(event.removeprefix("event: message\ndata: "))["result"]["structuredContent"]["text"] == TEXT
    assert json_of(await plain)["result"]["structuredContent"]["text"] == TEXT
    await at_rest(app)
    assert len(await payer.charged()) == 2


async def test_a_bound_token_needs_a_proof_for_each_message(service: Service) -> None:
    bound = BoundApp(service.web)
    app = await service.store.apps.find("web-app")
    assert app is not None
    tokens = await service.store.tokens.mint(service.ada, app, ALL_SCOPES, api="mcp", jkt=bound.device.jkt)
    url, token = f"{service.base_url}/mcp", tokens.access_token
    kind = {"Content-Type": "application/json"}

    async def ask(body: dict[str, Any], proof: str | None = None) -> Any:
        text = json.dumps(body)
        return await bound.device.send(url, "POST", token=token, proof=proof, body=text, headers=kind)

    assert (await post(service, token, message("tools/list"))).code == 401
    long = message("tools/call", {"name": "save_document", "arguments": {**NOTE, "content": "x" * 50_000}})
    wrong = message("tools/call", {"name": "save_document", "arguments": {}})
    for body in (message("tools/list"), message("tools/call", {"name": "who_am_i"}), long, wrong):
        assert (await ask(body)).code == 200, body
    proof = bound.device.proof("POST", url, token)
    assert (await ask(long, proof)).code == 200
    assert (await ask(long, proof)).code == 401
    assert (await ask(message("tools/list"), proof)).code == 401


async def test_tools_that_an_app_can_never_use_are_not_listed(service: Service) -> None:
    reader = await service.add_app("reader", scopes=("profile", "data:read"))
    token = (await service.tokens(reader, scope="profile", resource=f"{service.base_url}/mcp"))["access_token"]
    listed = json_of(await post(service, token, message("tools/list")))["result"]["tools"]
    names = [tool["name"] for tool in listed]
    assert names == ["who_am_i", "list_collections", "list_documents", "get_document"]
    refused = await call(service, token, "save_document", **NOTE, content=1)
    assert json_of(refused)["error"]["code"] == -32602
