"""What strangers and broken clients send to the MCP server is refused, and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.core.site import Site
from handlers.mcp.messages import TOOLS
from store import keys
from store.wiring import Store
from tests.support.http.driver import ALL_SCOPES, Service, json_of, send
from tests.support.http.mcp_app import LEGACY, MODERN, call, mcp_site, message, post, result
from tests.support.store.windows import full

pytestmark = [pytest.mark.gen_test]
OTHER = "https://evil.example"


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return mcp_site(memory_store, base_url, mcp_origins=("https://inspector.example",))


async def token_of(service: Service, scope: str = " ".join(ALL_SCOPES)) -> str:
    found: str = (await service.tokens(scope=scope, resource=f"{service.base_url}/mcp"))["access_token"]
    return found


def code_of(response: Any) -> int:
    found: int = json_of(response)["error"]["code"]
    return found


async def test_scripts_of_another_site_are_refused(service: Service) -> None:
    token = await token_of(service)
    for origin in (OTHER, "null", "", "http://localhost.evil.example", service.base_url + ".evil.example"):
        response = await post(service, token, message("tools/list"), {"Origin": origin})
        assert response.code == 403, origin
        assert "WWW-Authenticate" not in response.headers
    for origin in (service.base_url, "https://inspector.example"):
        assert (await post(service, token, message("tools/list"), {"Origin": origin})).code == 200
    preflight = await send(f"{service.base_url}/mcp", "OPTIONS", headers={"Origin": OTHER})
    allowed = preflight.headers["Access-Control-Allow-Headers"]
    assert preflight.code == 204
    assert {"MCP-Protocol-Version", "Mcp-Method", "Authorization", "Mcp-Session-Id"} <= {*allowed.split(", ")}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param(b"", 400, -32700, id="empty"),
        pytest.param(b"{", 400, -32700, id="half"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, -32700, id="repeated-key"),
        pytest.param(b"[" * 100_000, 400, -32700, id="deep"),
        pytest.param(b'{"a":' * 50_000 + b"1" + b"}" * 50_000, 400, -32700, id="deep-objects"),
        pytest.param(b"\xff\xfe", 400, -32700, id="no-utf8"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', 400, -32700, id="half-a-character"),
        pytest.param(json.dumps([message("ping")] * 2).encode(), 400, -32600, id="batch"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":{}}', 400, -32600, id="response"),
        pytest.param(b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600, id="other-version"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600, id="null-id"),
        pytest.param(b'{"jsonrpc":"2.0","id":[],"method":"ping"}', 400, -32600, id="list-as-id"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":7}', 400, -32600, id="number-as-method"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 400, -32600, id="list-as-params"),
        pytest.param(b"null", 400, -32600, id="null"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":' + b"9" * 4000 + b',"method":"ping"}', 400, -32600, id="long-number-as-id"
        ),
        pytest.param(json.dumps({**message("ping"), "id": "x" * 300}).encode(), 400, -32600, id="long-text-as-id"),
        pytest.param(json.dumps({**message("ping"), "id": True}).encode(), 400, -32600, id="true-as-id"),
        pytest.param(json.dumps(message("x" * 300)).encode(), 400, -32600, id="long-method"),
        pytest.param(
            json.dumps(message("initialize", {"capabilities": {"a": "x" * 20_000}})).encode(),
            400,
            -32700,
            id="long-params",
        ),
        pytest.param(
            json.dumps(message("tools/call", {"name": "who_am_i", "_meta": {"a": "x" * 20_000}})).encode(),
            400,
            -32700,
            id="long-meta",
        ),
        pytest.param(
            json.dumps(message("tools/call", {"name": "get_document", "arguments": {"id": "\0"}})).encode(),
            400,
            -32700,
            id="nul",
        ),
    ],
)
async def test_a_body_that_is_no_message_is_refused(service: Service, body: bytes, status: int, code: int) -> None:
    token = await token_of(service)
    response = await post(service, token, body)
    assert (response.code, code_of(response)) == (status, code)
    assert "X-RateLimit-Remaining" in response.headers, "a mistake counts"
    # Nobody else learns anything.
    assert (await post(service, "lk_at_forged", body)).code == 401


async def test_a_megabyte_is_refused_before_it_is_read(service: Service) -> None:
    token = await token_of(service)
    response = await post(service, token, b'{"a":"' + b"x" * 2**20 + b'"}')
    assert response.code == 413
    many = json.dumps(message("tools/call", {"name": "who_am_i", "arguments": {"a": [1] * 100_000}})).encode()
    response = await post(service, token, many)
    assert (response.code, code_of(response)) == (400, -32700)


async def test_only_json_by_post_is_answered(service: Service) -> None:
    token = await token_of(service)
    for method in ("GET", "DELETE", "PUT", "HEAD"):
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream", "Mcp-Session-Id": "x"}
        response = await send(f"{service.base_url}/mcp", method, headers=headers)
        assert (response.code, response.headers["Allow"]) == (405, "POST, OPTIONS"), method
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        response = await post(service, token, message("tools/list"), {"Content-Type": kind})
        assert response.code == 415
    response = await post(service, token, message("tools/list"), {"Mcp-Session-Id": "mine"})
    assert response.code == 200
    assert "Mcp-Session-Id" not in response.headers


@pytest.mark.parametrize("version", [LEGACY, MODERN])
async def test_an_unknown_method_and_tool_are_errors_of_the_protocol(service: Service, version: str) -> None:
    token = await token_of(service)
    headers: dict[str, str | None] = {"MCP-Protocol-Version": version, "Mcp-Method": "no/such"}
    response = await post(service, token, message("no/such", version=version), headers)
    assert (response.code, code_of(response)) == (404 if version == MODERN else 200, -32601)
    headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "no_such"}
    body = message("tools/call", {"name": "no_such", "arguments": {}}, version=version)
    response = await post(service, token, body, headers)
    assert (response.code, code_of(response)) == (400 if version == MODERN else 200, -32602)


async def test_headers_that_contradict_the_body_are_refused(service: Service) -> None:
    token = await token_of(service)
    fine: dict[str, str | None] = {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "who_am_i",
    }
    body = message("tools/call", {"name": "who_am_i", "arguments": {}}, version=MODERN)
    answer = json_of(await post(service, token, body, fine))["result"]
    assert (answer["resultType"], answer["structuredContent"]["sub"]) == ("complete", service.ada)
    assert "io.modelcontextprotocol/serverInfo" in answer["_meta"]
    for wrong in (
        {"Mcp-Name": "delete_document"},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Name": None},
        {"Mcp-Method": None},
        {"MCP-Protocol-Version": LEGACY},
        {"MCP-Protocol-Version": None},
    ):
        response = await post(service, token, body, {**fine, **wrong})
        assert (response.code, code_of(response)) == (400, -32020), wrong
    response = await post(service, token, message("tools/list"), {"MCP-Protocol-Version": "1900-01-01"})
    assert response.code == 400
    elsewhere = message("tools/list", version=MODERN)
    elsewhere["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1900-01-01"
    response = await post(service, token, elsewhere, {"MCP-Protocol-Version": "1900-01-01", "Mcp-Method": "tools/list"})
    assert (response.code, code_of(response)) == (400, -32022)
    assert json_of(response)["error"]["data"]["supported"] == [MODERN]


WRONG: dict[str, Any] = {
    "text": [7, None, {}, [], True, "", "x" * 5000, "a/b", "../..", "%2e%2e", "é", "a b", ".a", "-", "\u202e"],
    "whole": ["1", 0, -1, 10**30, 1.5, True, {}, []],
    "flag": ["true", 1, 0, {}, []],
}


PREFIXES = (".a", "-")
"""Of the wrong texts those that are good beginnings of ids."""


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_wrong_arguments_and_odd_names_are_errors_that_a_model_reads(service: Service, tool: Any) -> None:
    token = await token_of(service)
    kinds = {"string": "text", "integer": "whole", "boolean": "flag"}
    given: dict[str, Any] = {"collection": "notes", "id": "a", "content": 1, "prompt": "x"}
    fine = {name: given[name] for name in tool.required}
    tried = [{**fine, "no_such": 1}, {**fine, "x" * 10_000: 1}, *({} for _ in tool.required[:1])]
    for name, schema in tool.takes.items():
        missing = () if name in tool.required else (None, "")
        any_text = name in ("prompt", "system")
        for value in WRONG.get("" if any_text else kinds.get(schema.get("type"), ""), ()):
            if value not in (*missing, *(PREFIXES if name == "prefix" else ())):
                tried.append({**fine, name: value})
    for arguments in tried:
        response = await call(service, token, tool.name, **arguments)
        assert response.code == 200, (arguments, response.body)
        assert json_of(response)["result"]["isError"] is True, arguments
        assert len(response.body) < 4000
    for wrong in (7, "x", [1], True):
        response = await post(service, token, message("tools/call", {"name": tool.name, "arguments": wrong}))
        assert code_of(response) == -32602
    assert (await result(service, token, "list_collections"))["structuredContent"]["collections"] == []


async def test_a_dead_token_learns_nothing_about_arguments(service: Service) -> None:
    token = await token_of(service)
    await service.web.revoke(token)
    for name, arguments in (("who_am_i", {"a": 1}), ("get_document", {}), ("get_document", {"id": 7}), ("no_such", {})):
        response = await post(service, token, message("tools/call", {"name": name, "arguments": arguments}))
        assert response.code == 401, (name, arguments)
    assert (await post(service, token, b"{")).code == 401


async def test_messages_and_mistakes_count_in_a_window_of_their_own(service: Service) -> None:
    token = await token_of(service)
    await service.store.client.set(keys.limit(service.ada, "mcp", "web-app"), full(300))
    for body in (message("tools/list"), message("ping"), message("no/such"), b"{"):
        response = await post(service, token, body)
        assert response.code == 429, response.body
        assert int(response.headers["Retry-After"]) == json_of(response)["error"]["data"]["retryAfter"] > 0
    # A tool counts where the call that it is counts.
    assert (await call(service, token, "who_am_i")).code == 200
